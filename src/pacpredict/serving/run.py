"""Start the server: one process, or several that share a PostgreSQL ledger."""

import gc
import logging
import os
import resource
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from tempfile import TemporaryDirectory

import numpy as np
import uvicorn
from starlette.applications import Starlette
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from pacpredict.curator import Curator
from pacpredict.deployment import Deployment
from pacpredict.exceptions import InvalidInput, LedgerDamaged, PacPredictError
from pacpredict.mechanism.question import Request
from pacpredict.mechanism.session import Session
from pacpredict.serving.access import Access, Anybody, Keyed
from pacpredict.serving.app import build_app
from pacpredict.serving.connection import Connection
from pacpredict.serving.draining import interrupted_by_signals
from pacpredict.serving.limits import Limits
from pacpredict.serving.logs import announce, begin_log, logging_config
from pacpredict.serving.metrics import SHARED_COUNTS, Counted
from pacpredict.serving.service import Service
from pacpredict.serving.settings import Settings

# How long answers that are on their way may take after the server was told to stop.
_SECONDS_TO_FINISH = 30
# Connections that may wait to be accepted. All of them can be accepted before the first is refused.
_BACKLOG = 256
# Descriptors beside those of connections: files of the ledger, of the program, of the event loop.
_DESCRIPTORS = 64
# Objects that are made, and stay, before the garbage collector looks at them.
_OBJECTS_BETWEEN_LOOKS = 5_000

# For how long a thread keeps the interpreter while others wait: with Python's 5 ms, whoever comes back from models or
# from the disk would wait for the event loop longer than for these.
_SWITCH_S = 0.0005

_log = logging.getLogger("pacpredict.serving")


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT, then finish what was begun, close the ledger and return."""
    begin(settings)
    reserve_descriptors(settings.limits)
    with suppress(KeyboardInterrupt), interrupted_by_signals() as ignore_signals, ExitStack() as opened:
        deployment = opened.enter_context(_open(settings))
        opened.callback(ignore_signals)  # before the ledger is closed
        access = access_of(settings, deployment)
        listening = opened.enter_context(listen(settings.host, settings.port))
        warm_up(deployment.curator)  # takes longest; clients that connect meanwhile wait
        host, port = listening.getsockname()[:2]
        scheme = "http" if settings.tls_certificate is None else "https"
        shown = f"[{host}]" if ":" in host else host
        announce(settings.log, logging.INFO, f"serving {settings.name!r} at {scheme}://{shown}:{port}")
        if isinstance(access, Anybody):
            _warn_of_openness(settings)
        if settings.workers == 1:
            app = _build(settings, deployment, access)
            uvicorn.Server(uvicorn_config(lambda: app, settings)).run([listening])
        else:
            # What is wrong with the artifact or the ledger has been said by now, once, and not by each worker.
            deployment.close()
            os.environ[SHARED_COUNTS] = opened.enter_context(TemporaryDirectory(prefix="pacpredict-"))
            factory = partial(_open_in_worker, settings)
            supervisor = Multiprocess(uvicorn_config(factory, settings), [listening])
            supervisor.run()
            if any(worker.exitcode == STARTUP_FAILURE for worker in supervisor.processes):
                sys.exit(STARTUP_FAILURE)  # its log says why


def begin(settings: Settings) -> None:
    """Make this process one that serves."""
    begin_log(settings.log)
    sys.setswitchinterval(_SWITCH_S)


def check(settings: Settings) -> str:
    """Find out whether a server could start; says who may ask."""
    with _open(settings) as deployment:
        access = access_of(settings, deployment)
        n_valid = sum(key.is_valid() for key in deployment.keys.all())
    if isinstance(access, Anybody):
        return "whoever can reach it may ask"
    return f"whoever has a key may ask; there are {n_valid} that are valid"


def access_of(settings: Settings, deployment: Deployment) -> Access:
    """Decide how callers are known. Once there was a key, everybody needs one."""
    keys = deployment.keys.all()
    if settings.open:
        if any(key.is_valid() for key in keys):
            raise InvalidInput(
                "there are keys, and with --open nobody would need one: leave it out, or revoke them all"
            )
        return Anybody()
    if keys:
        return Keyed(deployment.keys)
    if deployment.was_keyed:
        raise LedgerDamaged(
            f"clients of this deployment had keys, and the ledger at {deployment.location} has none any more: somebody "
            "has deleted them, or put back a backup that is older. Without keys everybody could ask. Bring them back, "
            f"make others (`pacpredict keys make {settings.artifact} NAME`), or say --open if everybody shall ask"
        )
    if settings.is_reachable:
        raise InvalidInput(
            f"without keys, whoever reaches {settings.host} could spend the budget. Make one (`pacpredict keys make "
            f"{settings.artifact} NAME`), or say --open if everybody shall ask"
        )
    return Anybody()


def _warn_of_openness(settings: Settings) -> None:
    whoever = "whoever reaches this address" if settings.is_reachable else "every user of this machine"
    text = f"there are no keys: {whoever} may ask and spend the budget (`pacpredict keys make`)"
    announce(settings.log, logging.WARNING, text)


def _build(
    settings: Settings, deployment: Deployment, access: Access, at_end: Callable[[], None] | None = None
) -> Starlette:
    service = Service(
        deployment.curator,
        settings.name,
        settings.limits,
        keyring=deployment.keys,
        metrics=Counted() if settings.metrics else None,
        separate=settings.separate_answers,
    )
    app = build_app(
        service,
        access,
        settings.visitors(),
        service.page(deployment.course),
        drain_seconds=settings.drain_seconds,
        ids=settings.log == "json",
        at_end=at_end,
    )
    keep_what_is_there()
    return app


def keep_what_is_there() -> None:
    """Let the garbage collector pass over models and libraries, which stay for as long as the server does.

    To look through them takes 0.1 s, in which nobody is answered, every few seconds while many ask. It also looks less
    often than after every 700 objects: a turn makes thousands, and nearly all are gone at its end without it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_LOOKS)


def reserve_descriptors(limits: Limits) -> None:
    """See to it that as many connections as are allowed leave the ledger the files that it needs."""
    needed = limits.connections + _BACKLOG + _DESCRIPTORS
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed != resource.RLIM_INFINITY and allowed < needed:
        if most != resource.RLIM_INFINITY and most < needed:
            raise InvalidInput(
                f"{limits.connections:,} connections need {needed:,} file descriptors, and this process may have "
                f"{most:,}; raise that (ulimit -n), or lower --max-connections"
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, most))


def _open(settings: Settings) -> Deployment:
    return Deployment.open(
        settings.artifact,
        ledger=settings.ledger,
        anchor=settings.anchor,
        trust=settings.trust,
        decode=settings.decode,
        votes=settings.votes,
        voters=settings.voters,
    )


def warm_up(curator: Curator) -> None:
    """Let all models vote on a row and a session answer it, both of no consequence, so that kernels are compiled.

    The first client then waits no longer than the others.
    """
    votes = curator.ensemble.votes(curator.ensemble.schema.example())
    session = Session(len(curator.ensemble.classes), curator.recipe.budget, curator.recipe.n_models)
    contested = np.arange(curator.recipe.n_models) % 2
    session.serve([Request.of(session.ballots([*votes, contested]))])


def _open_in_worker(settings: Settings) -> Starlette:
    begin(settings)
    try:
        deployment = _open(settings)
        access = access_of(settings, deployment)
        warm_up(deployment.curator)
    except PacPredictError as problem:
        _log.error("%s: %s", type(problem).__name__, problem)  # words, not a traceback
        sys.exit(STARTUP_FAILURE)  # the supervisor then stops, where it would otherwise try for ever
    return _build(settings, deployment, access, at_end=deployment.close)


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends without delay only on sockets that say they are TCP; a reply in two parts would wait 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(_BACKLOG)  # now, so that whoever connects meanwhile waits, and is not turned away
    except (OSError, OverflowError) as problem:
        listening.close()
        raise InvalidInput(
            f"cannot listen at {host} port {port}: {problem}; choose others with --host, --port"
        ) from None
    listening.set_inheritable(True)
    return listening


def uvicorn_config(factory: Callable[[], Starlette], settings: Settings) -> uvicorn.Config:
    http = partial(Connection, limits=settings.limits, proxies=settings.proxies)
    return uvicorn.Config(
        factory,
        factory=True,
        workers=settings.workers,
        http=http,  # type: ignore[arg-type]  # called as a class would be
        ws="none",
        lifespan="on",
        log_config=logging_config(settings.log),
        access_log=False,  # the app logs, and says less
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
        server_header=False,
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=_SECONDS_TO_FINISH,
        timeout_worker_healthcheck=_SECONDS_TO_FINISH,
    )
