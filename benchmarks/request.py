"""Where the time of one request goes, without HTTP: reading, votes, the turn with the ledger, commit, witness, reply.

Census income with 128 XGBoost models, as in serving.py, on a ledger in SQLite with its witness; requests of one row and
of 32, one after the other in one thread, every row new. Each part is timed without the parts that it calls, so that
they add up to the whole: "clock" is what passes, "processor" what this thread has of it. Of each the tenth percentile
is shown, which other work on the machine disturbs least. Timing itself takes about half a microsecond for each call.

    python benchmarks/request.py                     a table
    python benchmarks/request.py --directory .       with the ledger on this disk
    python benchmarks/request.py --json              an object with `cases`
"""

import argparse
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import census
import numpy as np

from pacpredict.curator import Curator
from pacpredict.deployment import Deployment
from pacpredict.experiments.tabular import split
from pacpredict.ledger.sqlite import SqliteConnection
from pacpredict.ledger.witness import FileWitness
from pacpredict.mechanism.admission import Batch
from pacpredict.mechanism.answering import Answering
from pacpredict.mechanism.session import Session
from pacpredict.serving.inference_protocol import InferenceProtocol
from pacpredict.serving.inputs import inputs_of
from pacpredict.serving.labels import Labels
from pacpredict.serving.limits import Limits
from pacpredict.tables.schema import Schema
from pacpredict.training.ensemble import Ensemble
from serving import Requests, copy

ROWS = (1, 32)
REST, COMMIT = "the rest", "SQLite, commit"

# A name, and the methods whose time it is.
PARTS: dict[str, tuple[tuple[type, str], ...]] = {
    "reading the body": ((InferenceProtocol, "read"),),
    "digests": ((Schema, "digests"),),
    "looking up what is known": ((Session, "recall"),),
    "votes": ((Ensemble, "votes"), (Session, "ballots")),
    "admission": ((Batch, "admit"), (Batch, "votes")),
    "drawing": ((Answering, "answer"),),
    "SQLite, statements": ((SqliteConnection, "run"), (SqliteConnection, "run_many")),
    COMMIT: ((SqliteConnection, "commit"),),
    "witness, reading": ((FileWitness, "read"),),
    "witness, noting": ((FileWitness, "advance"),),
    "other work of the turn": ((Curator, "serve"),),
    "writing the reply": ((InferenceProtocol, "write"),),
}


class Times(NamedTuple):
    clock: float
    processor: float


def now() -> Times:
    return Times(time.perf_counter(), time.thread_time())


class Stopwatch:
    """Gives the time that passes to the part that is at work: the one that was entered last."""

    def __init__(self) -> None:
        self.spent: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._entered = [REST]
        self._since = now()

    def lap(self) -> dict[str, Times]:
        """Return what was spent since the last lap."""
        self._pass_to(self._entered[-1])
        spent, self.spent = (
            {name: Times(*each) for name, each in self.spent.items()},
            defaultdict(lambda: [0.0, 0.0]),
        )
        return spent

    def time(self, part: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def timed(*arguments: Any, **named: Any) -> Any:
            if self._entered[-1] == COMMIT:  # whatever it runs is its own
                return method(*arguments, **named)
            self._pass_to(self._entered[-1])
            self._entered.append(part)
            try:
                return method(*arguments, **named)
            finally:
                self._pass_to(self._entered.pop())

        return timed

    def _pass_to(self, part: str) -> None:
        here = now()
        spent = self.spent[part]
        spent[0] += here.clock - self._since.clock
        spent[1] += here.processor - self._since.processor
        self._since = here


def watch() -> Stopwatch:
    stopwatch = Stopwatch()
    for part, methods in PARTS.items():
        for owner, name in methods:
            setattr(owner, name, stopwatch.time(part, getattr(owner, name)))
    return stopwatch


def measure(deployment: Deployment, bodies: Sequence[bytes], stopwatch: Stopwatch) -> list[dict[str, Times]]:
    """Answer bodies one after the other, as a server does for one client; returns what each part of each took."""
    curator = deployment.curator
    schema, labels = curator.ensemble.schema, Labels(curator.ensemble.classes)
    protocol = InferenceProtocol(census.NAME, inputs_of(schema), labels)
    laps = []
    for body in bodies:
        stopwatch.lap()
        message = protocol.read(body, {}, Limits())
        (answers,) = curator.serve(curator.requests([message.inquiry]))
        if isinstance(answers, Exception):
            raise answers
        protocol.write(message, answers)
        laps.append(stopwatch.lap())
    return laps


def bodies_of(n_rows: int, n: int) -> list[bytes]:
    table = split("census")[1].drop(columns="income")
    requests = iter(Requests(table, n_rows, 10**6 * n_rows, ""))
    return [next(requests).partition(b"\r\n\r\n")[2] for _ in range(n)]


def summarise(laps: Sequence[dict[str, Times]]) -> dict[str, dict[str, float]]:
    """Return what each part took in a tenth of the requests at most, in microseconds."""
    nothing = Times(0.0, 0.0)
    parts = {
        name: np.percentile([lap.get(name, nothing) for lap in laps], 10, axis=0) for name in (*PARTS, REST)
    }
    whole = np.percentile([np.sum(list(lap.values()), axis=0) for lap in laps], 10, axis=0)
    return {
        name: {"clock_us": round(1e6 * clock, 1), "processor_us": round(1e6 * processor, 1)}
        for name, (clock, processor) in {**parts, "in all": whole}.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    parser.add_argument("--directory", help="where the ledger is (default: a temporary directory)")
    parser.add_argument("--requests", type=int, default=400, help="of each size (default: 400)")
    parser.add_argument(
        "--artifact", type=Path, help="where the fitted models are kept (default: the user's cache)"
    )
    options = parser.parse_args()
    fitted = census.fitted(options.artifact).path
    stopwatch = watch()
    found = {}
    with tempfile.TemporaryDirectory(dir=options.directory) as folder:
        artifact = Path(folder) / "census.pac"
        copy(fitted, artifact)
        with Deployment.open(artifact) as deployment:
            for n_rows in ROWS:
                bodies = bodies_of(n_rows, options.requests)
                found[n_rows] = summarise(measure(deployment, bodies, stopwatch)[options.requests // 4 :])
    if options.json:
        print(
            json.dumps({"cases": [{"rows": rows, "parts": parts} for rows, parts in found.items()]}, indent=2)
        )
        return
    print(f"{'µs':28}" + "".join(f"{f'{rows} rows: clock':>18}{'processor':>11}" for rows in found))
    for name in (*PARTS, REST, "in all"):
        cells = (found[rows][name] for rows in found)
        print(
            f"{name:28}"
            + "".join(f"{each['clock_us']:18,.0f}{each['processor_us']:11,.0f}" for each in cells)
        )


if __name__ == "__main__":
    main()
