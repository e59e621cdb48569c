"""One session in many threads, and not in two processes."""

import os
import subprocess
import sys
import threading
import time

import pytest
from ledger_contract import same_state
from racing import race
from small_session import (
    CLASSES,
    CONTESTED,
    SECRET,
    M,
    make,
    random_outputs,
    random_votes,
)

from pacpredict.core.belief import Belief
from pacpredict.exceptions import (
    BudgetExhausted,
)
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.mechanism.replay import replay
from pacpredict.mechanism.session import Session


def test_threads_share_one_history():
    """Eight threads on one session: no gap, no double number, exact spending, and a history that replays."""
    n_threads, n_rounds = 8, 40
    ledger, releases, problems = MemoryLedger(), [], []
    session = Session(CLASSES, Budget(1e-4, 1.0), M, secret=SECRET, ledger=ledger)

    def ask(thread):
        try:
            for i in range(n_rounds):
                votes = random_votes(1000 * thread + i, 3)
                releases.extend(
                    session.answer_all(votes) if i % 3 else [session.answer(row) for row in votes]
                )
                if i % 5 == 0:
                    session.release(random_outputs(i))
                session.guarantee()
        except Exception as problem:  # noqa: BLE001  # whatever a thread raises is for the main thread to see
            problems.append(problem)

    race(ask, n_threads)
    assert problems == []
    entries, state = list(ledger.entries()), session.snapshot()
    n_labels, n_vectors = n_threads * n_rounds * 3, n_threads * n_rounds // 5
    assert [entry.sequence for entry in entries] == list(range(1, n_labels + n_vectors + 1))
    labelled = {entry.sequence: entry.label for entry in entries if entry.label is not None}
    assert {release.sequence: release.label for release in releases} == labelled
    assert len(releases) == n_labels
    assert state.spent_steps == sum(entry.charged_steps for entry in entries) == state.contested
    assert same_state(replay(entries, CLASSES, session.budget, Belief.uniform(M)), state)


def test_threads_cannot_overspend():
    """However many ask at once, exactly as many contested answers are given as the budget has steps."""
    session, _ = make(budget=Budget(2.0**-7, 0.5))
    answered = []

    def ask():
        for _ in range(30):
            try:
                answered.append(session.answer(CONTESTED).sequence)
            except BudgetExhausted:
                continue

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answered) == list(range(1, 65))


class MeanwhileLedger(MemoryLedger):
    """A ledger that lets something happen just after it was read."""

    meanwhile = None

    def load(self):
        state = super().load()
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return state


@pytest.mark.parametrize("look", ["snapshot", "guarantee", "belief"])
def test_looking_beside_an_answer(look):
    """A release between reading the ledger and comparing is no ledger that went back."""
    ledger = MeanwhileLedger()
    session, _ = make(ledger=ledger)
    session.answer(CONTESTED)
    ledger.meanwhile = lambda: session.answer(CONTESTED)
    if callable(seen := getattr(session, look)):
        seen()
    assert session.snapshot().sequence == 2


class SlowLedger(MemoryLedger):
    """A ledger that lets other threads go on when it is read, as a database does."""

    def load(self):
        state = super().load()
        time.sleep(0)
        return state


def test_looking_while_another_thread_answers():
    """However often it is looked at, a session that answers shows a state that grows, and no conflict."""
    session, _ = make(budget=Budget(2.0**-30, 1.0), ledger=SlowLedger())
    problems, seen, n_answers = [], [], 400
    done = threading.Event()

    def work(thread):
        try:
            if thread == 0:
                for _ in range(n_answers):
                    session.answer(CONTESTED)
            while thread and not done.is_set():
                seen.append(session.snapshot().sequence)
        except Exception as problem:  # noqa: BLE001  # whatever a thread raises is for the main thread to see
            problems.append(problem)
        finally:
            if thread == 0:
                done.set()

    race(work, 2)
    assert problems == []
    assert seen == sorted(seen)
    assert session.snapshot().sequence == n_answers


FORK = """
import os
import numpy as np
from pacpredict import Budget, MemoryLedger, PacPredictError, Request, Session

ledger = MemoryLedger()
session = Session(2, Budget(0.5, 10.0), 8, ledger=ledger)
contested = [0, 1] * 4
known = session.serve([Request.of(session.ballots([contested]), [bytes(32)])])
new = Request.of(session.ballots([contested]), [bytes(31) + b"1"])
asking = {
    "answer": lambda: session.answer(contested),
    "agreed": lambda: session.answer([1] * 8),
    "answer_all": lambda: session.answer_all([contested] * 2),
    "release": lambda: session.release(np.eye(8)),
    "serve": lambda: session.serve([new]),
    "ready": session.check_ledger,
    "another session": lambda: Session(2, Budget(0.5, 10.0), 8, ledger=ledger, secret=session._secret),
}
child = os.fork()
if child == 0:
    for name, ask in asking.items():
        try:
            ask()
            print(name, "was answered", flush=True)
        except PacPredictError as refusal:
            print(name, type(refusal).__name__, "forked" in str(refusal), flush=True)
    print("releases", session.snapshot().sequence, flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
for name, ask in asking.items():
    ask()
print("parent", session.snapshot().sequence, flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_forked_process_does_not_answer_from_the_same_history():
    """The child of a process that answers from memory is refused everything; the parent goes on."""
    run = subprocess.run([sys.executable, "-c", FORK], check=True, capture_output=True, text=True)
    *refused, released, parent = run.stdout.splitlines()
    ways = ("answer", "agreed", "answer_all", "release", "serve", "ready", "another session")
    assert refused == [f"{way} LedgerConflict True" for way in ways]
    assert released == "releases 1"
    assert parent == "parent 7"
