"""Start the server: one process, or several that share a PostgreSQL ledger."""

import logging
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from starlette.applications import Starlette
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from pacpredict.curator import Curator
from pacpredict.ensemble.tables.schema import Rows
from pacpredict.exceptions import InvalidInput, PacPredictError
from pacpredict.mechanism.request import Question, Request
from pacpredict.mechanism.session import Session
from pacpredict.serving.app import Service, build_app

# How long answers that are on their way may take after the server was told to stop.
_SECONDS_TO_FINISH = 30
_BACKLOG = 2048  # uvicorn's own

_BACKLOG = 2048  # connections that may wait to be accepted

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(message)s"}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "line", "stream": "ext://sys.stderr"}
    },
    "loggers": {
        "pacpredict.serving": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        # Of the HTTP server only what went wrong.
        "uvicorn": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
    },
}

_log = logging.getLogger("pacpredict.serving")


@dataclass(frozen=True)
class Settings:
    """What a server is started with; sent to the processes of its workers."""

    artifact: Path
    name: str
    ledger: str | None = None
    trust: bool = False
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1

    def __post_init__(self) -> None:
        if not self.name or "/" in self.name:
            raise InvalidInput(
                f"a model's name is part of a path, and {self.name!r} cannot be; choose another with --name"
            )
        if self.workers < 1:
            raise InvalidInput(f"there must be at least one worker, got {self.workers}")
        if self.workers > 1 and not (self.ledger or "").startswith(("postgresql://", "postgres://")):
            raise InvalidInput(
                "several workers need a PostgreSQL ledger: --ledger postgresql://... (`pacpredict ledger move` takes a "
                "deployment there). One worker answers many clients at a time, too"
            )


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT, then finish what was begun."""
    with listen(settings.host, settings.port) as listening:
        curator = Curator.open(settings.artifact, ledger=settings.ledger, trust=settings.trust)
        warm_up(curator)
        listening.listen(_BACKLOG)  # who connects from now on waits for the workers, and is not turned away
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        sys.stderr.write(f"pacpredict: serving {settings.name!r} at http://{shown}:{port}\n")
        if settings.workers == 1:
            app = build_app(Service(curator, settings.name))
            uvicorn.Server(uvicorn_config(lambda: app)).run([listening])
        else:
            # What is wrong with the artifact or the ledger has been said by now, once, and not by each worker.
            curator.close()
            Multiprocess(
                uvicorn_config(partial(_open_in_worker, settings), settings.workers), [listening]
            ).run()


def warm_up(curator: Curator) -> None:
    """Let all models vote on a row of zeros and a session of no consequence answer, so that kernels are compiled.

    The first client then waits no longer than the others.
    """
    schema = curator.ensemble.schema
    texts: dict[int, tuple[str, ...]] = {
        j: ("",) for j, column in enumerate(schema.columns) if column.kind == "text"
    }
    votes = curator.ensemble.votes(Rows(np.zeros((1, len(schema.columns))), texts))
    session = Session(len(curator.ensemble.classes), curator.recipe.budget, curator.recipe.n_models)
    contested = np.arange(curator.recipe.n_models) % 2
    session.serve([Request([Question(None, voted) for voted in (*votes, contested)])])


def _open_in_worker(settings: Settings) -> Starlette:
    try:
        curator = Curator.open(settings.artifact, ledger=settings.ledger, trust=settings.trust)
    except PacPredictError as problem:
        _log.error("%s: %s", type(problem).__name__, problem)  # words, not a traceback
        sys.exit(STARTUP_FAILURE)  # the supervisor then stops, where it would otherwise try for ever
    warm_up(curator)
    return build_app(Service(curator, settings.name))


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends without delay only on sockets that say they are TCP; a reply in two parts would wait 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(_BACKLOG)  # now, so that who was told the address can connect
    except (OSError, OverflowError) as problem:
        listening.close()
        raise InvalidInput(
            f"cannot listen at {host} port {port}: {problem}; choose others with --host, --port"
        ) from None
    listening.set_inheritable(True)
    return listening


def uvicorn_config(factory: Callable[[], Starlette], workers: int = 1) -> uvicorn.Config:
    return uvicorn.Config(
        factory,
        factory=True,
        workers=workers,
        http="httptools",
        ws="none",
        lifespan="on",
        log_config=LOGGING,
        access_log=False,  # the app logs, and says less
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_SECONDS_TO_FINISH,
        timeout_worker_healthcheck=_SECONDS_TO_FINISH,
    )
