"""The routes of the server. Each reads, lets the pipeline answer, and writes; nothing is decided here."""

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from pacpredict.curator import Curator
from pacpredict.ensemble.tables.values import show
from pacpredict.exceptions import LedgerError, UnknownModel
from pacpredict.mechanism.ledger import Failpoints, nowhere
from pacpredict.serving.binary_tensors import LENGTH_HEADER
from pacpredict.serving.inference_protocol import VERSION, InferenceProtocol
from pacpredict.serving.labels import Labels
from pacpredict.serving.limits import Bodies, Limits
from pacpredict.serving.pipeline import Pipeline
from pacpredict.serving.responses import json_response, refuse
from pacpredict.serving.scoring import Scoring

Handler = Callable[[Request], Awaitable[Response]]

_log = logging.getLogger("pacpredict.serving")


class Service:
    """One artifact behind HTTP.

    `at` is called with "before-send" and "after-send" around each response, for tests that interrupt the server there.
    """

    def __init__(
        self,
        curator: Curator,
        name: str,
        limits: Limits | None = None,
        *,
        at: Failpoints = nowhere,
    ) -> None:
        limits = limits or Limits()
        self.at = at
        self._curator = curator
        self._bodies = Bodies(limits)
        self._pipeline = Pipeline(curator, limits.waiting)
        schema, labels = curator.ensemble.schema, Labels(curator.ensemble.classes)
        self._protocol = InferenceProtocol(name, schema, labels, limits)
        self._scoring = Scoring(schema, labels, limits)

    @asynccontextmanager
    async def life(self, _app: Starlette) -> AsyncIterator[None]:
        self._pipeline.start()
        try:
            yield
        finally:
            # What was begun is finished and sent; only then the ledger goes.
            await run_in_threadpool(self._pipeline.close)
            self._curator.close()

    async def infer(self, request: Request) -> Response:
        self._check_model(request)
        async with self._bodies.read(request) as body:
            read = partial(self._protocol.read, body, request.headers.get(LENGTH_HEADER))
            content, headers = self._protocol.write(*await self._pipeline.answer(read))
        return Response(content, headers=headers)

    async def invocations(self, request: Request) -> Response:
        async with self._bodies.read(request) as body:
            read = partial(self._scoring.read, body, request.headers.get("content-type", ""))
            content, headers = self._scoring.write(*await self._pipeline.answer(read))
        return Response(content, headers=headers)

    async def privacy(self, _: Request) -> Response:
        return json_response(await run_in_threadpool(self._curator.privacy))

    async def server(self, _: Request) -> Response:
        return json_response(
            {"name": "pacpredict", "version": version("pacpredict"), "extensions": ["binary_tensor_data"]}
        )

    async def model(self, request: Request) -> Response:
        self._check_model(request)
        return json_response(self._protocol.metadata())

    async def live(self, _: Request) -> Response:
        return json_response({"live": True, "ready": self._pipeline.is_ledger_well})

    async def ready(self, _: Request) -> Response:
        is_ready = await self._is_ready()
        return json_response({"live": True, "ready": is_ready}, 200 if is_ready else 503)

    async def model_ready(self, request: Request) -> Response:
        self._check_model(request)
        is_ready = await self._is_ready()
        return json_response({"name": self._protocol.name, "ready": is_ready}, 200 if is_ready else 503)

    async def ping(self, _: Request) -> Response:
        """Answer as MLflow's servers do, whose clients look at the status."""
        return Response(b"\n", 200 if await self._is_ready() else 503)

    async def _is_ready(self) -> bool:
        try:
            await run_in_threadpool(self._pipeline.check_ledger)
        except LedgerError:
            return False
        return True

    def _check_model(self, request: Request) -> None:
        name, wanted = request.path_params["name"], request.path_params.get("version", VERSION)
        if name != self._protocol.name:
            raise UnknownModel(f"there is no model {show(name)} here; ask for {self._protocol.name!r}")
        if wanted != VERSION:
            raise UnknownModel(
                f"model {show(name)} has no version {show(wanted)}; the only one is {VERSION!r}"
            )


class Endpoint:
    """Sends what a handler returns, or what its error becomes, and logs one line about it."""

    def __init__(self, handler: Handler, at: Failpoints) -> None:
        self._handler = handler
        self._at = at

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        try:
            response = await self._handler(Request(scope, receive))
        except Exception as problem:  # noqa: BLE001  # every failure has its response
            response = refuse(problem)
        self._at("before-send")
        await response(scope, receive, send)
        self._at("after-send")
        log_request(scope, response.status_code, time.perf_counter() - began)


def log_request(scope: Scope, status: int, seconds: float) -> None:
    """Log nothing that was asked or answered: method, path, status and time, which say nothing of the secret."""
    _log.info("%s %s %d %.1f ms", scope["method"], show(scope["path"]), status, 1e3 * seconds)


async def refuse_route(request: Request, problem: Exception) -> Response:
    """Answer for paths and methods that there are not."""
    status = problem.status_code if isinstance(problem, HTTPException) else 500
    headers = dict(problem.headers or {}) if isinstance(problem, HTTPException) else {}
    text = "this path cannot be used with this method" if status == 405 else "there is nothing at this path"
    log_request(request.scope, status, 0.0)
    return json_response({"error": text, "code": "no-such-route"}, status, headers)


def build_app(service: Service) -> Starlette:
    def route(path: str, handler: Handler, method: str = "GET") -> Route:
        return Route(path, Endpoint(handler, service.at), methods=[method])

    models = ("/v2/models/{name}", "/v2/models/{name}/versions/{version}")
    return Starlette(
        routes=[
            *(route(f"{model}/infer", service.infer, "POST") for model in models),
            route("/invocations", service.invocations, "POST"),
            route("/privacy", service.privacy),
            route("/ping", service.ping),
            route("/v2/health/live", service.live),
            route("/v2/health/ready", service.ready),
            route("/v2", service.server),
            *(route(model, service.model) for model in models),
            *(route(f"{model}/ready", service.model_ready) for model in models),
        ],
        exception_handlers={HTTPException: refuse_route},
        lifespan=service.life,
    )
