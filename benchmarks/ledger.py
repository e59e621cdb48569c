"""What it costs to keep releases: one commit, and each release when many share a commit.

Requests of one contested query of 128 models and 10 classes each, answered by a Session on each kind of ledger. "serve"
is all of it: checks, charge, noise, record, commit and sync; "commit" is the ledger's part. "witnessed" is SQLite as a
deployment has it: what is released is noted by a witness, with a sync of its own, before it is shown.

    python benchmarks/ledger.py                                  memory and SQLite, in a temporary directory
    python benchmarks/ledger.py --directory . --postgres URL     on this disk, and in an empty database
    python benchmarks/ledger.py --json                           an object with `cases`
"""

import argparse
import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from pacpredict import Budget, Ledger, MemoryLedger, Request, Session
from pacpredict.ledger.home import Home
from pacpredict.ledger.sqlite import SqliteLedger
from pacpredict.types import Votes

M, CLASSES = 128, 10
N_RELEASES = {1: 150, 128: 1280}  # in each round, by the number that shares a commit
DEPLOYMENT, KEY = "benchmark", bytes(32)


class Stopwatch:
    """A ledger that measures how long it takes until a release may be shown."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.seconds = 0.0

    def __getattr__(self, name: str) -> object:
        return getattr(self.ledger, name)

    def commit(self, *arguments: object) -> None:
        self._time(self.ledger.commit, *arguments)

    def confirm(self, sequence: int) -> None:
        self._time(self.ledger.confirm, sequence)

    def _time(self, method: Callable[..., None], *arguments: object) -> None:
        started = time.perf_counter()
        method(*arguments)
        self.seconds += time.perf_counter() - started


def make_queries(n: int, rng: np.random.Generator) -> tuple[list[bytes], Votes]:
    majority = rng.integers(CLASSES, size=(n, 1))
    dissents = rng.random((n, M)) < 0.1
    votes = np.where(dissents, rng.integers(CLASSES, size=(n, M)), majority).astype(np.int16)
    return [hashlib.sha256(rng.bytes(32)).digest() for _ in range(n)], votes


def serve_group(session: Session, digests: list[bytes], votes: Votes) -> None:
    """Answer requests of one query each, whose votes were cast together, as the server does."""
    ballots = session.ballots(votes)
    session.serve([Request([digest], ballots, [row]) for row, digest in enumerate(digests)])


def measure(kind: str, ledger: Ledger, rounds: int) -> Iterator[dict[str, object]]:
    watch, rng = Stopwatch(ledger), np.random.default_rng(0)
    session = Session(CLASSES, Budget(2.0**-32, 1.0), M, ledger=watch, deployment=DEPLOYMENT)  # type: ignore[arg-type]
    for group, n in N_RELEASES.items():
        serve, commit = [], []
        for _ in range(rounds):
            (digests, votes), watch.seconds = make_queries(n, rng), 0.0
            started = time.perf_counter()
            for start in range(0, n, group):
                serve_group(session, digests[start : start + group], votes[start : start + group])
            serve.append((time.perf_counter() - started) / n * 1e6)
            commit.append(watch.seconds / n * 1e6)
        best = {"serve_us": round(min(serve), 1), "commit_us": round(min(commit), 1)}
        yield {"ledger": kind, "group": group, **best}


@contextmanager
def open_ledgers(directory: Path | None, url: str | None) -> Iterator[dict[str, Ledger]]:
    with tempfile.TemporaryDirectory(dir=directory) as name, ExitStack() as opened:
        folder = Path(name)
        home = Home(folder / "own", folder / "witness", DEPLOYMENT, KEY)
        home.found(str(home.ledger))
        sqlite = SqliteLedger(folder / "ledger", key=KEY, deployment=DEPLOYMENT)
        ledgers: dict[str, Ledger] = {
            "memory": MemoryLedger(),
            "sqlite": opened.enter_context(sqlite),
            "witnessed": opened.enter_context(home.open()),
        }
        if url is not None:
            from pacpredict.ledger.postgres import PostgresLedger  # noqa: PLC0415  # an extra

            postgres = PostgresLedger(url, key=KEY, deployment=DEPLOYMENT)
            ledgers["postgresql"] = opened.enter_context(postgres)
        yield ledgers


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
