"""How many requests per second the private server answers, beside the same server with one unprotected model.

Census income with 128 XGBoost models, on loopback, one server process. Clients are connections that send the next
request when the last was answered; all of them are driven by one other process, which only writes prepared bytes and
looks for the end of each reply. Every row is asked once: a repeated one would be answered from the ledger.

The unprotected server has the same HTTP stack and the same threads, one of the 128 models, and no ledger. At last, one
client that asks for single rows does so beside six others that ask for 500 rows at a time. The two servers are asked in
turns, since the machine's speed changes from minute to minute. Of each case that round is shown which is the median by
its throughput. Ratios are the medians of all rounds' ratios, each of two cases that were measured one after the other.
On a machine that has other work, the fastest twentieth (p5) and the processor time of the server tell more than the
rest.

    python benchmarks/serving.py            a table, and the private server's figures as parts of the other's
    python benchmarks/serving.py --fastapi  the private server beside a model that FastAPI serves as in its tutorials
    python benchmarks/serving.py --access   the private server with keys and metrics beside itself without, in turns
    python benchmarks/serving.py --votes    leave-one-out votes beside plain ones, in turns
    python benchmarks/serving.py --json     an object with `cases`

The artifact is fitted once (a few minutes) and kept in the user's cache; PACPREDICT_DATA says where the data is.
"""

import argparse
import asyncio
import json
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import count, cycle, product
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

import census
import numpy as np
import orjson
import pandas as pd
import uvicorn
import uvloop

from pacpredict.artifact.artifact import WITNESS, Artifact, model_name
from pacpredict.curator import Answers, Inquiry
from pacpredict.deployment import Deployment, home_of
from pacpredict.experiments.tabular import split
from pacpredict.ledger.keys import Terms
from pacpredict.mechanism.question import Ballots, Release, Request
from pacpredict.mechanism.session import Session
from pacpredict.serving.access import Anybody
from pacpredict.serving.app import build_app
from pacpredict.serving.metrics import Counted
from pacpredict.serving.run import begin, keep_what_is_there, listen, uvicorn_config
from pacpredict.serving.service import Service
from pacpredict.serving.settings import Settings
from pacpredict.tables.schema import Rows
from pacpredict.training.ensemble import Ensemble
from pacpredict.types import Votes

CLIENTS, ROWS = (1, 32), (1, 32)
OTHERS, OTHERS_ROWS = 6, 500  # in the last case
NAME = census.NAME
ROUNDS = 5  # the machine's speed changes from minute to minute
WARM_UP_S = 0.5


Measured = dict[str, Any]


class Kind(NamedTuple):
    """Of a case: what is asked by how many."""

    clients: int
    rows: int
    others: int  # clients beside these


class Case(NamedTuple):
    clients: int
    rows: int
    others: int
    first: int  # a hundred thousand fractions from here on are this case's own


class Running(NamedTuple):
    process: subprocess.Popen[bytes]
    port: int
    key: str  # empty if there is none


# ---- the unprotected server


class Unprotected:
    """Stands where the server expects a curator: one model answers, nothing is noised, charged or recorded.

    Its session is one that nobody asks: the page of the server shows a history.
    """

    def __init__(self, artifact: Artifact) -> None:
        model = artifact.learner.load((artifact.path / model_name(0, "ubj")).read_bytes())
        classes = [np.arange(len(artifact.classes))]
        voter = artifact.learner.voter([model], classes, len(artifact.classes), artifact.schema)
        self.ensemble = Ensemble(
            artifact.schema, artifact.classes, artifact.learner, voter, 1, artifact.space
        )
        self.session = Session(len(artifact.classes), artifact.recipe.budget, artifact.recipe.n_models)
        self._numbers = count(1)

    def requests(self, inquiries: Sequence[Inquiry], n_threads: int = 1) -> list[Request]:  # noqa: ARG002
        votes = self.ensemble.votes(Rows.join([inquiry.rows for inquiry in inquiries]))
        ends = np.cumsum([len(inquiry.rows) for inquiry in inquiries])
        return [Request.of(Ballots(part, [1] * len(part))) for part in np.split(votes, ends[:-1])]

    def serve(self, requests: Sequence[Request]) -> list[Answers]:
        return [self._answers(request.ballots.votes[:, 0]) for request in requests]

    def _answers(self, labels: Votes) -> Answers:
        releases = [Release(next(self._numbers), label, 0.0) for label in labels.tolist()]
        return Answers(self.ensemble.labels(labels.astype(np.int64)), releases)

    def keep_up(self) -> None:
        """Be alone."""

    def check_ledger(self) -> None:
        """Be always ready."""


def run_fastapi(path: Path, port: int) -> None:
    import fastapi_server  # noqa: PLC0415  # which nobody else needs

    fastapi_server.run(path, NAME, port)


def run_unprotected(path: Path, port: int) -> None:
    """Serve as the private server does, which logs and counts what is asked."""
    settings = Settings(path, NAME)
    begin(settings)
    service = Service(Unprotected(Artifact.open(path)), NAME, metrics=Counted())  # type: ignore[arg-type]
    app = build_app(service, Anybody())
    keep_what_is_there()
    with listen("127.0.0.1", port) as listening:
        uvicorn.Server(uvicorn_config(lambda: app, settings)).run([listening])


STAND_INS = {"unprotected": run_unprotected, "fastapi": run_fastapi}


# ---- the load


class Requests:
    """Bytes to send, without end: real records, each time with another fraction of a unit in their weight."""

    def __init__(self, table: pd.DataFrame, n_rows: int, first: int, key: str) -> None:
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
            varied = b",".join(b"%d.%%08d" % weight for weight in columns["fnlwgt"][start : start + n_rows])
            body = body.replace(b"%", b"%%").replace(b"[%s]" % weights, b"[%s]" % varied)
            head = (
                b"POST /v2/models/%s/infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n%s\r\n"
            )
            size = len(body % ((0,) * n_rows))
            shown = f"Authorization: Bearer {key}\r\n".encode() if key else b""
            self._bodies.append(head % (NAME.encode(), size, shown) + body)
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
    p5, p50, p99 = np.percentile(times, [5, 50, 99])
    return {
        "n_requests": sum(len(client.times) for client in clients),  # also those before it was measured
        "requests_per_s": round(len(times) / seconds, 1),
        "p5_ms": round(1e3 * p5, 3),
        "p50_ms": round(1e3 * p50, 3),
        "p99_ms": round(1e3 * p99, 3),
    }


async def drive_beside(
    port: int, table: pd.DataFrame, case: Case, seconds: float, key: str
) -> dict[str, float]:
    """Drive the clients of a case, while others ask for many rows."""
    asked = drive(port, case.clients, iter(Requests(table, case.rows, case.first, key)), seconds)
    if not case.others:
        return await asked
    large = iter(Requests(table, OTHERS_ROWS, case.first + 10**5, key))
    return (await asyncio.gather(asked, drive(port, case.others, large, seconds)))[0]


def load(port: int, case: Case, seconds: float, key: str) -> None:
    """Print what one case measured; this is the other process."""
    table = split("census")[1].drop(columns="income")
    print(json.dumps(uvloop.run(drive_beside(port, table, case, seconds, key))))


# ---- the comparison


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def start(server: str, artifact: Path, port: int) -> subprocess.Popen[bytes]:
    serve = [str(Path(sys.executable).parent / "pacpredict"), "serve", str(artifact), "--name", NAME]
    own = {"plain": ["--no-metrics"], "leave-one-out": ["--votes", "leave-one-out"]}.get(server, [])
    stand_in = [sys.executable, __file__, "--stand-in", server, str(artifact)]
    command = [*(stand_in if server in STAND_INS else [*serve, *own]), "--port", str(port)]
    # XGBoost's own threads, of which only FastAPI's server has some, would be slower than one.
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    while process.poll() is None:
        try:
            with urlopen(f"http://127.0.0.1:{port}/v2/health/live", timeout=600):
                return process
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"the {server} server did not start")


def copy(fitted: Path, artifact: Path) -> None:
    """Copy an artifact that was asked nothing, and say so: otherwise the copy would be refused as a second history."""
    shutil.copytree(fitted, artifact)
    (artifact / WITNESS).unlink()
    home_of(Artifact.open(artifact)).moved(None, None, 0)


def run_load(running: Running, case: Case, seconds: float) -> Measured:
    """Measure one case, and what it cost the server; beside others who ask, that is not told apart."""
    command = [sys.executable, __file__, "--load", *map(str, (running.port, *case, seconds)), running.key]
    before = processor_seconds(running.process.pid)
    measured: dict[str, float] = json.loads(
        subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    )
    used, n = processor_seconds(running.process.pid) - before, measured.pop("n_requests")
    return {**measured, "cpu_ms": None if case.others else round(1e3 * used / n, 3)}


def processor_seconds(process: int) -> float:
    """Return how long all threads of a process have been at work, as Linux says."""
    _, _, figures = Path(f"/proc/{process}/stat").read_text().rpartition(")")
    user, system = map(int, figures.split()[11:13])
    return (user + system) / os.sysconf("SC_CLK_TCK")


def measure(
    fitted: Path, seconds: float, n_rounds: int, servers: Sequence[str], kinds: Sequence[Kind]
) -> dict[tuple[str, Kind], list[Measured]]:
    """Ask the servers in turns; returns all rounds of each case."""
    rounds: defaultdict[tuple[str, Kind], list[Measured]] = defaultdict(list)
    firsts = count(0, 2 * 10**5)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        asked = {}
        for server in servers:
            artifact, port = Path(folder) / f"{server}.pac", free_port()
            copy(fitted, artifact)
            key = make_key(artifact) if server == "guarded" else ""
            asked[server] = Running(start(server, artifact, port), port, key)
            running.callback(asked[server].process.wait)
            running.callback(asked[server].process.send_signal, signal.SIGINT)
        for _, kind, (server, one) in product(range(n_rounds), kinds, asked.items()):
            case = Case(*kind, next(firsts))
            rounds[server, kind].append({"server": server, **case._asdict(), **run_load(one, case, seconds)})
    return rounds


def make_key(artifact: Path) -> str:
    """Make a key that has every kind of limit, and reaches none."""
    with Deployment.open(artifact) as deployment:
        return deployment.keys.make(Terms(NAME, rate=10**9, queries=10**9, nats=10.0))


def _middle(rounds: Sequence[Measured]) -> Measured:
    return sorted(rounds, key=lambda each: each["requests_per_s"])[len(rounds) // 2]


def ratio(mine: Sequence[Measured], its: Sequence[Measured], name: str) -> float:
    """Return the median, over the rounds, of a figure of one server as a part of the other's."""
    return float(np.median([(a[name] or math.nan) / (b[name] or 1) for a, b in zip(mine, its, strict=True)]))


def show_parts(mine: Sequence[Measured], its: Sequence[Measured]) -> None:
    """Print the figures of the first server as parts of those of the second, in one case."""
    rate, p5, p50, cpu = (ratio(mine, its, name) for name in ("requests_per_s", "p5_ms", "p50_ms", "cpu_ms"))
    what = f"{mine[0]['clients']} clients, {mine[0]['rows']} rows, {mine[0]['others']} beside"
    print(
        f"{what}: {rate:.2f} of the rate; times the p5 {p5:.2f}, the p50 {p50:.2f}, the processor's {cpu:.2f}"
    )


def _servers(options: argparse.Namespace) -> tuple[str, str]:
    """Choose the two servers that are compared."""
    if options.access:
        return "guarded", "plain"
    if options.votes:
        return "leave-one-out", "private"
    return "private", "fastapi" if options.fastapi else "unprotected"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each case (default: 4)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of all cases (default: {ROUNDS})")
    parser.add_argument(
        "--artifact", type=Path, help="where the fitted models are kept (default: the user's cache)"
    )
    parser.add_argument("--stand-in", nargs=2, help=argparse.SUPPRESS)
    beside = parser.add_mutually_exclusive_group()
    beside.add_argument("--fastapi", action="store_true", help="compare with a model behind FastAPI")
    beside.add_argument("--access", action="store_true", help="compare with and without keys and metrics")
    beside.add_argument("--votes", action="store_true", help="compare leave-one-out votes with plain ones")
    parser.add_argument("--load", nargs=7, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        port, *case, seconds, key = options.load
        load(int(port), Case(*map(int, case)), float(seconds), key)
        return
    if options.stand_in:
        name, path = options.stand_in
        STAND_INS[name](Path(path), options.port)
        return
    servers = _servers(options)
    kinds = [Kind(n_clients, n_rows, 0) for n_rows, n_clients in product(ROWS, CLIENTS)]
    if not options.access and not options.votes:
        kinds.append(Kind(1, 1, OTHERS))
    rounds = measure(census.fitted(options.artifact).path, options.seconds, options.rounds, servers, kinds)
    cases = [_middle(rounds[each]) for each in product(servers, kinds)]
    if options.json:
        print(json.dumps({"cases": cases}, indent=2))
        return
    print(f"{'server':12} clients  rows  beside   requests/s   rows/s    p5 ms   p50 ms   p99 ms   cpu ms")
    for case in cases:
        print(
            f"{case['server']:12} {case['clients']:7} {case['rows']:5} {case['others']:7} "
            f"{case['requests_per_s']:12,.0f} "
            f"{case['requests_per_s'] * case['rows']:8,.0f} {case['p5_ms']:8.2f} "
            f"{case['p50_ms']:8.2f} {case['p99_ms']:8.2f} {case['cpu_ms'] or math.nan:8.2f}"
        )
    for kind in kinds:
        show_parts(*(rounds[server, kind] for server in servers))


if __name__ == "__main__":
    main()
