"""Servers that are killed while their ledger goes back and comes again; run by test_turned_back.py.

Workers answer random queries and write every answer to a file, as a client would have received it. Meanwhile they are
killed and started anew, and the ledger is exchanged for an older copy of itself, now and then, and brought back.
"""

import argparse
import os
import random
import shutil
import signal
import sqlite3
import sys
import time
import traceback
from contextlib import closing, suppress
from pathlib import Path

from postgres_server import PostgresServer
from small_deployment import ask, check_history, found_home, home_at, make_session

from pacpredict.exceptions import BudgetExhausted, LedgerError
from pacpredict.mechanism.ledger import MemoryLedger

N_QUERIES = 4000
N_WORKERS, MOST_AT_ONCE = 3, 3


def work(home, url, anchor, answers, seed):
    """Ask and answer until killed; while the ledger is refused, try again."""
    rng, session = random.Random(seed), None
    while True:
        try:
            session = session or make_session(home.open(url, anchor))
            numbers = [rng.randrange(N_QUERIES) for _ in range(rng.randint(1, MOST_AT_ONCE))]
            (result,) = session.serve([ask(*numbers)])
        except LedgerError:
            time.sleep(0.02)
            session = None if rng.random() < 0.3 else session
            continue
        if not isinstance(result, BudgetExhausted):
            lines = [f"{n} {r.sequence} {r.label}\n" for n, r in zip(numbers, result, strict=True)]
            os.write(answers, "".join(lines).encode())


class Files:
    """A ledger in a file, which is exchanged, or written over, by an older copy."""

    def __init__(self, home):
        outside = home.ledger.parent.parent
        self._ledger, self._copy, self._live = home.ledger, outside / "copy", outside / "live"

    def copy(self):
        self._copy.unlink(missing_ok=True)
        backup(self._ledger, self._copy)

    def go_back(self, rng):
        """By another file in its place, or by other content of the same file; returns how to undo it."""
        if rng.random() < 0.5:
            beside = [self._ledger.with_name(self._ledger.name + s) for s in ("", "-wal", "-shm")]
            for file in beside:
                if file.exists():
                    file.rename(self._live.with_name("live" + file.name))
            shutil.copy(self._copy, self._ledger)
            return lambda: self._bring_back(beside)
        self._live.unlink(missing_ok=True)
        write_over(self._ledger, self._copy, keep=self._live)
        return lambda: write_over(self._ledger, self._live)

    def _bring_back(self, beside):
        for file in beside:
            file.unlink(missing_ok=True)
        for file in beside:
            live = self._live.with_name("live" + file.name)
            if live.exists():
                live.rename(file)


def backup(source, target):
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)


def write_over(ledger, source, keep=None):
    """Give a ledger the content of another in one transaction, and keep what it had: no commit comes between."""
    with closing(sqlite3.connect(ledger, isolation_level=None, timeout=30)) as database:
        database.execute("ATTACH ? AS source", (str(source),))
        database.execute("BEGIN IMMEDIATE")
        if keep is not None:
            backup(ledger, keep)
        for table in ("state", "records"):
            database.execute(f"DELETE FROM main.{table}")
            database.execute(f"INSERT INTO main.{table} SELECT * FROM source.{table}")
        database.execute("COMMIT")


class Server:
    """A ledger in a database server, whose data is exchanged for that of an earlier moment."""

    def __init__(self, server):
        self._server = server

    def copy(self):
        self._server.copy("lagging")

    def go_back(self, rng):
        self._server.exchange("lagging")
        return lambda: self._server.exchange("lagging")


def fork(job):
    child = os.fork()
    if child == 0:
        try:
            job()
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            os._exit(1)
    return child


def kill(child):
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def highest(answers):
    """Return the highest number that an answer had so far."""
    return max((int(line.split()[1]) for line in answers.read_text().splitlines()), default=0)


def wait_until_ahead(answers, copied):
    """Wait until a copy lacks something, also what was released and not yet written down when it was made."""
    while highest(answers) <= copied + N_WORKERS * MOST_AT_ONCE:
        time.sleep(0.02)


def disturb(place, start, answers, rng, until):
    """Kill workers and turn the ledger back until the time is over; returns how often each was done."""
    workers, n_killed, n_back = [start() for _ in range(N_WORKERS)], 0, 0
    time.sleep(0.5)
    place.copy()
    copied = highest(answers)
    while time.monotonic() < until or not n_back:  # a slow machine goes back once at least
        time.sleep(rng.uniform(0.02, 0.15))
        i = rng.randrange(N_WORKERS)
        n_killed += kill(workers[i])
        workers[i] = start()
        if rng.random() < 0.25 or time.monotonic() >= until:
            wait_until_ahead(answers, copied)  # or it would go on with the copy, rightly
            undo = place.go_back(rng)
            n_back += 1
            time.sleep(rng.uniform(0.1, 0.4))
            n_killed += kill(workers[i])
            workers[i] = start()
            time.sleep(rng.uniform(0.1, 0.4))
            undo()
            time.sleep(rng.uniform(0.2, 0.5))
            if rng.random() < 0.5:
                place.copy()
                copied = highest(answers)
    died = [child for child in workers if not kill(child)]
    assert not died, "a worker ended by itself"
    return n_killed, n_back


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("kind", choices=("sqlite", "postgresql"))
    parser.add_argument("seconds", type=float)
    parser.add_argument("seed", type=int)
    options = parser.parse_args()
    make_session(MemoryLedger()).serve([ask(0, 1)])  # compile before forking
    rng = random.Random(options.seed)
    home = found_home(options.directory / "a.pac")
    answers = os.open(options.directory / "answers", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    server = PostgresServer() if options.kind == "postgresql" else None
    try:
        url = None if server is None else server.create_database("turned")
        if url is not None:
            home.begin_at(url)

        def start():
            seed = rng.random()
            return fork(lambda: work(home_at(home.ledger.parent), url, None, answers, seed))

        place = Files(home) if server is None else Server(server)
        received = options.directory / "answers"
        n_killed, n_back = disturb(place, start, received, rng, time.monotonic() + options.seconds)
        with home.open(url) as ledger:
            records = check_history(ledger.ledger)
        with (options.directory / "records").open("w") as file:
            for record in records:
                file.write(f"{record.entry.sequence} {record.entry.digest.hex()} {record.entry.label}\n")
        print(n_killed, n_back)  # noqa: T201
    finally:
        if server is not None:
            with suppress(Exception):
                server.stop()


if __name__ == "__main__":
    sys.exit(main())
