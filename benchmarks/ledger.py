"""What it costs to keep releases: one commit, and each release when many share a commit.

Requests of one contested query of 128 models and 10 classes each, answered by a Session on each kind of ledger. "serve"
is all of it: checks, charge, noise, record, commit and sync; "commit" is the ledger's part.

    python benchmarks/ledger.py                                  memory and SQLite, in a temporary directory
    python benchmarks/ledger.py --directory . --postgres URL     on this disk, and in an empty database
    python benchmarks/ledger.py --json                           an object with `cases`
"""

import argparse
import hashlib
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from pacpredict import Budget, Ledger, MemoryLedger, Question, Request, Session
from pacpredict.ledger.sqlite import SqliteLedger

M, CLASSES = 128, 10
N_RELEASES = {1: 150, 128: 1280}  # in each round, by the number that shares a commit


class Stopwatch:
    """A ledger that measures its commits."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.seconds = 0.0

    def __getattr__(self, name: str) -> object:
        return getattr(self.ledger, name)

    def commit(self, *arguments: object) -> None:
        started = time.perf_counter()
        self.ledger.commit(*arguments)  # type: ignore[arg-type]
        self.seconds += time.perf_counter() - started


def make_requests(n: int, rng: np.random.Generator) -> list[Request]:
    majority = rng.integers(CLASSES, size=(n, 1))
    dissents = rng.random((n, M)) < 0.1
    votes = np.where(dissents, rng.integers(CLASSES, size=(n, M)), majority).astype(np.int16)
    return [Request([Question(hashlib.sha256(rng.bytes(32)).digest(), row)]) for row in votes]


def measure(kind: str, ledger: Ledger, rounds: int) -> Iterator[dict[str, object]]:
    watch, rng = Stopwatch(ledger), np.random.default_rng(0)
    session = Session(CLASSES, Budget(2.0**-32, 1.0), M, ledger=watch)  # type: ignore[arg-type]
    for group, n in N_RELEASES.items():
        serve, commit = [], []
        for _ in range(rounds):
            requests, watch.seconds = make_requests(n, rng), 0.0
            started = time.perf_counter()
            for start in range(0, n, group):
                session.serve(requests[start : start + group])
            serve.append((time.perf_counter() - started) / n * 1e6)
            commit.append(watch.seconds / n * 1e6)
        best = {"serve_us": round(min(serve), 1), "commit_us": round(min(commit), 1)}
        yield {"ledger": kind, "group": group, **best}


@contextmanager
def open_ledgers(directory: Path | None, url: str | None) -> Iterator[dict[str, Ledger]]:
    with tempfile.TemporaryDirectory(dir=directory) as home, SqliteLedger(Path(home, "ledger")) as sqlite:
        ledgers: dict[str, Ledger] = {"memory": MemoryLedger(), "sqlite": sqlite}
        if url is None:
            yield ledgers
            return
        from pacpredict.ledger.postgres import PostgresLedger  # noqa: PLC0415  # an extra

        with PostgresLedger(url) as postgres:
            yield {**ledgers, "postgresql": postgres}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    parser.add_argument(
        "--rounds", type=int, default=7, help="rounds per case, of which the best counts (default: 7)"
    )
    parser.add_argument(
        "--directory", type=Path, help="where the SQLite file is (default: a temporary directory)"
    )
    parser.add_argument("--postgres", metavar="URL", help="an empty PostgreSQL database to measure as well")
    options = parser.parse_args()
    with open_ledgers(options.directory, options.postgres) as ledgers:
        cases = [case for kind, ledger in ledgers.items() for case in measure(kind, ledger, options.rounds)]
    if options.json:
        print(json.dumps({"cases": cases}, indent=2))
        return
    print(f"{'ledger':<12} {'releases per commit':>20} {'serve, each':>14} {'commit, each':>14}")
    for case in cases:
        print(
            f"{case['ledger']:<12} {case['group']:>20} {case['serve_us']:>11} µs {case['commit_us']:>11} µs"
        )


if __name__ == "__main__":
    main()
