"""What the server does. Each handler reads, lets the pipeline answer, and writes; nothing is decided here."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib.metadata import version
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from pacpredict.curator import Curator, report_privacy
from pacpredict.exceptions import LedgerError, UnknownModel
from pacpredict.ledger.keyring import Keyring
from pacpredict.ledger.spending import Course
from pacpredict.mechanism.ledger import Failpoints, nowhere
from pacpredict.serving.bodies import Bodies, HeldPixels
from pacpredict.serving.endpoint import caller_of
from pacpredict.serving.inference_protocol import VERSION, InferenceProtocol
from pacpredict.serving.inputs import inputs_of
from pacpredict.serving.labels import Labels
from pacpredict.serving.limits import Limits
from pacpredict.serving.metrics import LedgerFigures, Metrics, Spent, Uncounted
from pacpredict.serving.openapi.examples import examples_of_queries
from pacpredict.serving.openapi.handlers import Description
from pacpredict.serving.openapi.schemas import Json, schemas
from pacpredict.serving.page.counting import Counting
from pacpredict.serving.page.page import Page
from pacpredict.serving.page.traffic import Traffic
from pacpredict.serving.pipeline import Pipeline
from pacpredict.serving.responses import json_response
from pacpredict.serving.scoring import Scoring
from pacpredict.serving.wire import Message, Wire, parse_json, read_flag
from pacpredict.show import show

_SECONDS_BETWEEN_LOOKS = 1.0

_log = logging.getLogger("pacpredict.serving")


class Service:
    """One artifact behind HTTP.

    With `separate` the answers on record of one key are not shown to another: each asks, and pays, for itself.
    `at` is called with "before-send" and "after-send" around each response, for tests that interrupt the server there.
    """

    def __init__(
        self,
        curator: Curator,
        name: str,
        limits: Limits | None = None,
        *,
        keyring: Keyring | None = None,
        metrics: Metrics | None = None,
        separate: bool = False,
        at: Failpoints = nowhere,
    ) -> None:
        limits = limits or Limits()
        self.at = at
        self.is_draining = False  # about to stop: balancers are told to send nobody here any more
        self._separate = separate
        self._curator = curator
        self._bodies, self._pixels = Bodies(limits), HeldPixels(limits)
        self.metrics: Metrics = metrics or Uncounted()
        self._keyring = keyring
        self._pipeline = Pipeline(curator, limits, self.metrics)
        self._looking: asyncio.Task[bool] | None = None  # whether an answer could be recorded now
        schema, labels = curator.ensemble.schema, Labels(curator.ensemble.classes)
        inputs = inputs_of(schema, limits)
        self._protocol = InferenceProtocol(name, inputs, labels)
        self._scoring = Scoring(inputs, labels)
        self._schemas = schemas(name, schema, labels, limits)
        self._traffic = Traffic(Counting(curator.session, self.metrics).read)

    def page(self, course: Course | None = None) -> Page:
        """Return what people see of this; the ledger's course, if it keeps times."""
        return Page(self._curator, self._protocol.name, self._traffic, course=course, keyring=self._keyring)

    def description(self, *, is_open: bool) -> Description:
        """Return what describes the interface; of an open server, everybody may call everything without a key."""
        return Description(self._protocol.name, self._schemas, self._examples, is_open=is_open)

    def _examples(self) -> Json:
        """Return bodies as this deployment takes and gives them; its figures as they are before any answer."""
        name, recipe, ensemble = self._protocol.name, self._curator.recipe, self._curator.ensemble
        return {
            **examples_of_queries(name, ensemble.schema, Labels(ensemble.classes), recipe.budget.step),
            "Model": self._protocol.metadata(),
            "Privacy": report_privacy(recipe, ensemble.space, None),
            "Health": {"live": True, "ready": True},
        }

    @asynccontextmanager
    async def life(self) -> AsyncIterator[None]:
        self._pipeline.start()
        looking = [asyncio.create_task(each()) for each in (self._keep_up, self._watch_traffic)]
        try:
            yield
        finally:
            for each in looking:
                each.cancel()
            await self._pipeline.close()  # what was begun is finished and sent

    async def _keep_up(self) -> None:
        """See how far other servers have come, also when nobody asks: a ledger that goes back is then noticed."""
        while True:
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
            await _look(self._pipeline.keep_up)

    async def _watch_traffic(self) -> None:
        while True:
            await _look(self._traffic.look)
            await asyncio.sleep(self._traffic.every)

    async def infer(self, request: Request) -> Response:
        self._check_model(request)
        return await self._answer(self._protocol, request)

    async def invocations(self, request: Request) -> Response:
        return await self._answer(self._scoring, request)

    async def privacy(self, _: Request) -> Response:
        return json_response(await run_in_threadpool(self._privacy))

    async def list_keys(self, _: Request) -> Response:
        return json_response({"keys": await run_in_threadpool(self._describe_keys)})

    async def figures(self, _: Request) -> Response:
        content = await run_in_threadpool(self._write_figures)
        return Response(content, media_type=CONTENT_TYPE_LATEST)

    async def server(self, _: Request) -> Response:
        return json_response(
            {"name": "pacpredict", "version": version("pacpredict"), "extensions": ["binary_tensor_data"]}
        )

    async def model(self, request: Request) -> Response:
        self._check_model(request)
        return json_response(self._protocol.metadata())

    async def models(self, _: Request) -> Response:
        """List the models by name, as KServe's servers do."""
        return json_response({"models": [self._protocol.name]})

    async def index(self, request: Request) -> Response:
        """List the models with their state, as Triton's servers do; with {"ready": true} those that answer."""
        async with self._bodies.read(request) as body:
            only_ready = read_flag(parse_json(body), "ready") if body else False
        is_ready = await self._is_ready()
        state, reason = ("READY", "") if is_ready else ("UNAVAILABLE", "the ledger cannot record answers now")
        about = {"name": self._protocol.name, "version": VERSION, "state": state, "reason": reason}
        return json_response([about] if is_ready or not only_ready else [])

    async def live(self, _: Request) -> Response:
        return json_response({"live": True, "ready": self._seems_ready()})

    async def ready(self, request: Request) -> Response:
        # Whoever has shown no key does not reach the ledger: the server has looked at it within the last second.
        is_known = caller_of(request).role is not None
        is_ready = await self._is_ready() if is_known else self._seems_ready()
        return json_response({"live": True, "ready": is_ready}, 200 if is_ready else 503)

    async def model_ready(self, request: Request) -> Response:
        self._check_model(request)
        is_ready = await self._is_ready()
        return json_response({"name": self._protocol.name, "ready": is_ready}, 200 if is_ready else 503)

    async def ping(self, _: Request) -> Response:
        """Answer as MLflow's servers do, whose clients look at the status."""
        return Response(b"\n", 200 if await self._is_ready() else 503)

    async def _answer(self, wire: Wire, request: Request) -> Response:
        async with self._bodies.read(request) as body:
            read = partial(self._read, wire, body, request)
            message, answers = await self._pipeline.answer(read, len(body))
        content, headers = wire.write(message, answers)
        return Response(content, headers=headers)

    def _read(self, wire: Wire, body: bytes, request: Request, limits: Limits) -> Message:
        message, caller = wire.read(body, request.headers, limits), caller_of(request)
        self._pixels.hold(message.inquiry.rows)
        inquiry = message.inquiry._replace(
            client=caller.name,
            separate=self._separate and caller.name is not None,
            allowance=caller.allowance,
        )
        return message._replace(inquiry=inquiry)

    def drain(self) -> None:
        """Be not ready any more, and go on."""
        self.is_draining = True

    def _privacy(self) -> dict[str, Any]:
        """Return what clients are told; on what models differ only as long as the charges of answers tell it, too."""
        steps, told = self._curator.session.snapshot().spent_steps, self._curator.privacy()
        budget = self._curator.recipe.budget
        return told | {"contested": None} if budget.charging == "flat" or budget.is_silent(steps) else told

    def _describe_keys(self) -> list[dict[str, Any]]:
        return [] if self._keyring is None else self._keyring.describe()

    def _write_figures(self) -> bytes:
        spent, keys = None, []
        with suppress(LedgerError):  # the figures of this process are there all the same
            state, budget = self._curator.session.snapshot(), self._curator.recipe.budget
            spent = Spent(
                budget.nats(state.spent_steps),
                budget.total,
                state.spent_steps,
                state.sequence - state.spent_steps,
            )
            keys = self._describe_keys()
        return self.metrics.write(
            LedgerFigures(self._pipeline.is_ledger_well, self._seems_ready(), spent, keys)
        )

    def _seems_ready(self) -> bool:
        return self._pipeline.is_ledger_well and not self.is_draining

    async def _is_ready(self) -> bool:
        if self.is_draining:
            return False
        # All who ask at a time share one look: with one for each, a ledger that hangs would take all threads there are.
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._could_record())
        return await asyncio.shield(self._looking)

    async def _could_record(self) -> bool:
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


async def _look(look: Callable[[], None]) -> None:
    """Look once, and survive it: whoever looks again and again must not end by what nobody foresaw."""
    try:
        await run_in_threadpool(look)
    except LedgerError:
        pass  # the next request, or the next look at readiness, says what is wrong
    except Exception:  # noqa: BLE001  # whatever it is
        _log.exception("a look at the ledger failed; the server goes on looking")
