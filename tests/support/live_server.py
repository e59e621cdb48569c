"""A server on a real socket in this process, or `pacpredict serve` in another one, for tests."""

import asyncio
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import numpy as np
import uvicorn

from pacpredict.curator import Curator
from pacpredict.mechanism.ledger import MemoryLedger, nowhere
from pacpredict.mechanism.secret import Secret
from pacpredict.mechanism.session import Session
from pacpredict.serving.access import Anybody
from pacpredict.serving.app import build_app
from pacpredict.serving.limits import Limits
from pacpredict.serving.run import listen, uvicorn_config
from pacpredict.serving.service import Service
from pacpredict.serving.settings import Settings

PROGRAM = Path(sys.executable).parent / "pacpredict"
NAME = "mixed"


class LiveServer:
    """Serves a curator from a thread, with the settings of the real program; use it in a `with`."""

    def __init__(
        self,
        curator,
        name=NAME,
        limits=None,
        visitors=None,
        at=nowhere,
        access=None,
        ids=False,
        course=None,
        **options,
    ):
        self.curator = curator
        self._socket = listen("127.0.0.1", 0)
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.infer_url = f"{self.url}/v2/models/{name}/infer"
        self.service = Service(curator, name, limits, at=at, **options)
        settings = Settings(Path(name), name, limits=limits or Limits())
        app = build_app(self.service, access or Anybody(), visitors, self.service.page(course), ids=ids)
        self._server = uvicorn.Server(uvicorn_config(lambda: app, settings))
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        with asyncio.Runner(loop_factory=self._server.config.get_loop_factory()) as runner:
            runner.run(self._server._serve([self._socket]))

    def __enter__(self):
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            time.sleep(0.005)
        self.http = httpx.Client(base_url=self.url, timeout=30)
        return self

    def __exit__(self, *_):
        self.http.close()
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    def give_up(self):
        """Wait for no request any more, as uvicorn does when a server that was stopped takes too long to finish."""
        tasks = list(self._server.server_state.tasks)
        tasks[0].get_loop().call_soon_threadsafe(lambda: [task.cancel() for task in tasks])

    @property
    def spent(self):
        return self.curator.session.snapshot().spent_steps

    @property
    def n_released(self):
        return self.curator.session.snapshot().sequence

    @property
    def n_connections(self):
        return len(self._server.server_state.connections)

    @property
    def n_waiting(self):
        """Requests that were read and not answered."""
        return self.service._pipeline._n_waiting

    def infer(self, inputs, **fields):
        return self.http.post(f"/v2/models/{NAME}/infer", json={"inputs": inputs, **fields})


class ServerProcess:
    """`pacpredict serve` as a user starts it, if need be with fewer file descriptors."""

    def __init__(self, artifact, *options, name=NAME, descriptors=None, verify=True):
        limit = ["sh", "-c", f'ulimit -n {descriptors} && exec "$@"', "sh"] if descriptors else []
        self._process = subprocess.Popen(
            [
                *limit,
                PROGRAM,
                "serve",
                artifact,
                "--port",
                "0",
                "--name",
                name,
                "--drain-seconds",
                "0",
                *options,
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
        first = next(line for line in self._process.stderr if "serving" in line or "error" in line)
        found = re.search(r" at (https?://[^\s\"]+)", first)
        if found is None:
            self._process.wait(30)
            self._process.stderr.close()
            raise AssertionError(first)
        self.url = found[1]
        self.log = [first]
        self._reading = threading.Thread(target=lambda: self.log.extend(self._process.stderr))
        self._reading.start()
        self.http = httpx.Client(base_url=self.url, timeout=30, verify=verify)
        for _ in range(500):  # the socket is bound, but only listened to when the app is up
            try:
                self.http.get("/v2/health/live")
            except httpx.TransportError:
                time.sleep(0.01)
            else:
                break

    def stop(self, how=signal.SIGTERM):
        """Send a signal, wait, and return the exit code."""
        self.http.close()
        self.signal(how)
        return self.wait()

    def signal(self, how):
        self._process.send_signal(how)

    def wait(self):
        """Wait for the end, and return the exit code."""
        self.http.close()
        code = self._process.wait(30)
        self._reading.join()
        self._process.stderr.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self.stop(signal.SIGKILL)


def curator_of(fitted, ledger=None, secret=0, seed=None):
    """Return a curator of a fit with a known secret; with a seed, also with known noise."""
    ledger = MemoryLedger() if ledger is None else ledger
    hidden = Secret(secret, fitted.recipe.n_models)
    curator = Curator(fitted.ensemble, fitted.recipe, ledger, secret=hidden)
    if seed is not None:
        curator.session = Session(
            len(fitted.ensemble.classes),
            fitted.recipe.budget,
            fitted.recipe.n_models,
            secret=hidden,
            decode=fitted.recipe.decode,
            ledger=ledger,
            generator=np.random.default_rng(seed),
        )
    return curator


def plain_rows(table):
    """Return the rows of a frame as JSON has them: one object each, with None for what is missing."""
    plain = table.astype(object).where(table.notna(), None)
    return [{name: as_plain(value) for name, value in row.items()} for row in plain.to_dict("records")]


def as_plain(value):
    return value.item() if isinstance(value, np.generic) else value


DATATYPES = {
    "age": "INT64",
    "hours": "FP64",
    "job": "BYTES",
    "married": "BOOL",
    "grade": "BYTES",
    "note": "BYTES",
}


def tensors(rows, datatypes=DATATYPES):
    """Return rows as one input tensor for each column."""
    return [
        {"name": name, "datatype": datatype, "shape": [len(rows)], "data": [row[name] for row in rows]}
        for name, datatype in datatypes.items()
    ]
