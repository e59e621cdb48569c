"""How many requests per second the private server answers, beside the same server with one unprotected model.

Census income with 128 XGBoost models, on loopback, one server process. Clients are connections that send the next
request when the last was answered; all of them are driven by one other process, which only writes prepared bytes and
looks for the end of each reply. Every row is asked once: a repeated one would be answered from the ledger.

The unprotected server has the same HTTP stack and the same threads, one of the 128 models, and no ledger.

    python benchmarks/serving.py            a table
    python benchmarks/serving.py --json     an object with `cases`

The artifact is fitted once (a few minutes) and kept in the user's cache; PACPREDICT_DATA says where the data is.
"""

import argparse
import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count, cycle, islice, product
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pandas as pd
import uvicorn
import uvloop

from pacpredict.curator import Answers, Curator
from pacpredict.ensemble.artifact.artifact import Artifact, model_name
from pacpredict.ensemble.ensemble import Ensemble
from pacpredict.ensemble.tables.schema import Rows
from pacpredict.experiments.tabular import fit, split
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.mechanism.request import Question, Release, Request
from pacpredict.serving.app import Service, build_app
from pacpredict.serving.run import LOGGING

CLIENTS, ROWS = (1, 32), (1, 32)
NAME = "census"
WARM_UP_S = 0.5


# ---- the unprotected server


class Unprotected:
    """Stands where the server expects a curator: one model answers, nothing is noised, charged or recorded."""

    def __init__(self, artifact: Artifact) -> None:
        self.recipe, self.ledger, self.session = artifact.recipe, MemoryLedger(), self
        model = artifact.learner.load((artifact.path / model_name(0, "ubj")).read_bytes())
        classes = [np.arange(len(artifact.classes))]
        voter = artifact.learner.voter([model], classes, len(artifact.classes), artifact.schema)
        self.ensemble = Ensemble(artifact.schema, artifact.classes, artifact.learner, voter, 1)
        self._numbers = count(1)

    def questions(self, tables: list[Rows], n_threads: int = 1) -> list[list[Question]]:  # noqa: ARG002
        questions = iter([Question(None, votes) for votes in self.ensemble.votes(Rows.join(tables))])
        return [list(islice(questions, len(table))) for table in tables]

    def serve(self, requests: list[Request]) -> list[list[Release]]:
        return [
            [Release(next(self._numbers), int(question.votes[0]), 0.0) for question in request.questions]
            for request in requests
        ]

    def answers(self, releases: list[Release]) -> Answers:
        return Curator.answers(self, releases)  # type: ignore[arg-type]

    def snapshot(self) -> None:
        """Be always ready."""

    def close(self) -> None:
        """Nothing is open."""


def run_unprotected(path: Path, port: int) -> None:
    app = build_app(Service(Unprotected(Artifact.open(path)), NAME))  # type: ignore[arg-type]
    uvicorn.run(
        app,
        port=port,
        http="httptools",
        ws="none",
        log_config=LOGGING,
        access_log=False,
        proxy_headers=False,
        server_header=False,
    )


# ---- the load


class Requests:
    """Bytes to send, without end: real records, each time with another fraction of a unit in their weight."""

    def __init__(self, table: pd.DataFrame, n_rows: int, first: int) -> None:
        columns = {
            name: table[name].astype(object).where(table[name].notna(), None).tolist() for name in table
        }
        kinds = {name: "FP64" if pd.api.types.is_numeric_dtype(table[name]) else "BYTES" for name in table}
        self._fraction = first
        self._bodies = []
        for start in range(0, len(table) - n_rows, n_rows):
            inputs = [
                {
                    "name": name,
                    "shape": [n_rows],
                    "datatype": kinds[name],
                    "data": values[start : start + n_rows],
                }
                for name, values in columns.items()
            ]
            body = orjson.dumps({"inputs": inputs})
            weights = b",".join(b"%d" % weight for weight in columns["fnlwgt"][start : start + n_rows])
            varied = b",".join(b"%d.%%07d" % weight for weight in columns["fnlwgt"][start : start + n_rows])
            body = body.replace(b"%", b"%%").replace(b"[%s]" % weights, b"[%s]" % varied)
            head = b"POST /v2/models/%s/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
            size = len(body % ((0,) * n_rows))
            self._bodies.append(head % (NAME.encode(), size) + body)
        self._n_rows = n_rows

    def __iter__(self) -> Iterator[bytes]:
        for body in cycle(self._bodies):
            self._fraction += 1
            yield body % ((self._fraction,) * self._n_rows)


class Client(asyncio.Protocol):
    """One connection: send, wait for the reply, send the next."""

    def __init__(self, requests: Iterator[bytes], until: float) -> None:
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.times: list[tuple[float, float]] = []  # when it began, how long it took
        self._requests, self._until = requests, until
        self._received = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def connection_lost(self, _: Exception | None) -> None:
        if not self.finished.done():
            self.finished.set_exception(
                ConnectionError(f"the server closed a connection after {self._received!r}")
            )

    def _send(self) -> None:
        request = next(self._requests)
        self._began = time.perf_counter()
        if self._began < self._until:
            self._transport.write(request)
        else:
            self.finished.set_result(None)
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        if not found or len(body) < int(head.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0]):
            return
        if not head.startswith(b"HTTP/1.1 200"):
            self._transport.close()
            return
        self._received = b""
        self.times.append((self._began, time.perf_counter() - self._began))
        self._send()


async def drive(port: int, n_clients: int, requests: Iterator[bytes], seconds: float) -> dict[str, float]:
    began = time.perf_counter() + WARM_UP_S
    loop = asyncio.get_running_loop()
    clients = [
        (await loop.create_connection(lambda: Client(requests, began + seconds), "127.0.0.1", port))[1]
        for _ in range(n_clients)
    ]
    await asyncio.gather(*(client.finished for client in clients))
    times = [took for client in clients for at, took in client.times if at >= began]
    p50, p99 = np.percentile(times, [50, 99])
    return {
        "requests_per_s": round(len(times) / seconds, 1),
        "p50_ms": round(1e3 * p50, 3),
        "p99_ms": round(1e3 * p99, 3),
    }


def load(port: int, n_clients: int, n_rows: int, first: int, seconds: float) -> None:
    """Print what one case measured; this is the other process."""
    table = split("census")[1].drop(columns="income")
    requests = iter(Requests(table, n_rows, first))
    print(json.dumps(uvloop.run(drive(port, n_clients, requests, seconds))))


# ---- the comparison


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def start(server: str, artifact: Path, port: int) -> subprocess.Popen[bytes]:
    serve = [str(Path(sys.executable).parent / "pacpredict"), "serve", str(artifact), "--name", NAME]
    stand_in = [sys.executable, __file__, "--unprotected", str(artifact)]
    command = [*(serve if server == "private" else stand_in), "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return process
    raise SystemExit(f"the {server} server did not start")


def measure(fitted: Path, seconds: float) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        artifact = Path(folder) / f"{NAME}.pac"
        shutil.copytree(fitted, artifact)
        for server in ("private", "unprotected"):
            port = free_port()
            process = start(server, artifact, port)
            try:
                for n_rows, n_clients in product(ROWS, CLIENTS):
                    # Each case has a million fractions of its own.
                    numbers = (port, n_clients, n_rows, 10**6 * len(cases), seconds)
                    command = [sys.executable, __file__, "--load", *map(str, numbers)]
                    measured = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
                    cases.append({"server": server, "clients": n_clients, "rows": n_rows, **measured})
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait()
    return cases


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each case (default: 4)")
    parser.add_argument(
        "--artifact", type=Path, help="where the fitted models are kept (default: the user's cache)"
    )
    parser.add_argument("--unprotected", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--load", nargs=5, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        load(*map(int, options.load[:4]), float(options.load[4]))
        return
    if options.unprotected:
        run_unprotected(options.unprotected, options.port)
        return
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pacpredict" / "census.pac"
    fitted = fit("census", options.artifact or cache, "none", 128, os.cpu_count() or 1).path
    cases = measure(fitted, options.seconds)
    if options.json:
        print(json.dumps({"cases": cases}, indent=2))
        return
    print(f"{'server':12} clients  rows   requests/s   rows/s   p50 ms   p99 ms")
    for case in cases:
        print(
            f"{case['server']:12} {case['clients']:7} {case['rows']:5} {case['requests_per_s']:12,.0f} "
            f"{case['requests_per_s'] * case['rows']:8,.0f} {case['p50_ms']:8.2f} {case['p99_ms']:8.2f}"
        )


if __name__ == "__main__":
    main()
