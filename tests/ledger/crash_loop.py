"""Serve from a ledger in processes that are killed again and again; run by test_crashes.py.

Each round forks workers that open the ledger, answer random requests and write every answer to a file, as a client
would have received it, until they are killed: at a failpoint, or from outside at a random moment. Forking from a
process that has compiled everything makes a round take milliseconds.
"""

import argparse
import os
import random
import signal
import time
import traceback
from functools import partial

from killing import killer
from small_deployment import DEPLOYMENT, KEY, ask, make_session

from pacpredict.exceptions import BudgetExhausted, LedgerUnavailable
from pacpredict.ledger.postgres import PostgresLedger
from pacpredict.ledger.sqlite import SqliteLedger
from pacpredict.mechanism.ledger import MemoryLedger

POINTS = ("before-draw", "after-draw", "before-insert", "after-insert", "before-commit", "after-commit")
N_QUERIES = 400


def start(where, steps, decode, at):
    """Open the ledger and a session, however long the database may be away."""
    ledger_type = PostgresLedger if where.startswith("postgresql:") else SqliteLedger
    while True:
        try:
            ledger = ledger_type(where, deployment=DEPLOYMENT, at=at, key=KEY)
            return make_session(ledger, steps, decode, at=at)
        except LedgerUnavailable:
            time.sleep(0.01)


def work(where, answers, steps, decode, point, rng):
    """Ask and answer until killed; a client that gets no answer asks again, as clients do."""
    session = start(where, steps, decode, killer(point, rng.randint(2, 6)))
    numbers = []
    while True:
        numbers = numbers or [rng.randrange(N_QUERIES) for _ in range(rng.randint(1, 3))]
        try:
            (result,) = session.serve([ask(*numbers)])
        except LedgerUnavailable:
            time.sleep(0.01)
            continue
        if not isinstance(result, BudgetExhausted):
            pairs = zip(numbers, result, strict=True)
            lines = [f"{number} {release.sequence} {release.label}\n" for number, release in pairs]
            os.write(answers, "".join(lines).encode())
        numbers = []


def fork(job):
    """Run a job in a child that never comes back."""
    child = os.fork()
    if child == 0:
        try:
            job()
        except BaseException:  # noqa: BLE001  # whatever it is, the parent's output shows it
            traceback.print_exc()
        finally:
            os._exit(1)
    return child


def wait_for_an_answer(children, answers):
    """Let the workers of a slow machine begin: until one has answered, or all are dead."""
    size, deadline = os.fstat(answers).st_size, time.monotonic() + 5
    while os.fstat(answers).st_size == size and time.monotonic() < deadline:
        dead = [os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG) for child in children]
        if all(dead):
            return
        time.sleep(0.001)


def main():
    parser = argparse.ArgumentParser()
    for name in ("where", "answers"):
        parser.add_argument(name)
    for name in ("rounds", "workers", "steps", "seed"):
        parser.add_argument(name, type=int)
    parser.add_argument("longest_s", type=float)
    parser.add_argument("decode")
    options = parser.parse_args()
    make_session(MemoryLedger()).serve([ask(0, 1)])  # compile before forking
    answers = os.open(options.answers, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    rng = random.Random(options.seed)
    killed = 0
    for i in range(options.rounds):
        point = POINTS[i % (2 * len(POINTS))] if i % (2 * len(POINTS)) < len(POINTS) else None
        seeds = [rng.random() for _ in range(options.workers)]
        job = partial(work, options.where, answers, options.steps, options.decode, point)
        children = [fork(partial(job, random.Random(seed))) for seed in seeds]
        wait_for_an_answer(children, answers)
        time.sleep(rng.uniform(0, options.longest_s))
        for child in children:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            killed += os.WIFSIGNALED(status)
    print(killed)  # noqa: T201  # how many had to be killed: all, unless one failed by itself


main()
