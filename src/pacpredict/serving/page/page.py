"""The pieces of the pages, as handlers: each shows what its callers may know, and no more."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from pacpredict.curator import Curator
from pacpredict.ledger.keyring import Keyring
from pacpredict.ledger.spending import Course
from pacpredict.pages.markup import Markup
from pacpredict.serving.page.budget import look_at, render_budget
from pacpredict.serving.page.form import render_form
from pacpredict.serving.page.keys import render_keys
from pacpredict.serving.page.planner import render_plan, render_planner
from pacpredict.serving.page.promise import render_promise
from pacpredict.serving.page.shell import fragment
from pacpredict.serving.page.traffic import Traffic, render_traffic


class Page:
    """What people see of one deployment; without a course no times, without a keyring no keys."""

    def __init__(
        self,
        curator: Curator,
        name: str,
        traffic: Traffic,
        *,
        course: Course | None = None,
        keyring: Keyring | None = None,
    ) -> None:
        self._curator = curator
        self._name = name
        self._course = course
        self._keyring = keyring
        self._traffic = traffic

    async def promise(self, _: Request) -> Response:
        return fragment(await run_in_threadpool(self._promise))

    async def live(self, _: Request) -> Response:
        return fragment(await run_in_threadpool(self._live))

    async def form(self, _: Request) -> Response:
        return fragment(await run_in_threadpool(self._form))

    async def planner(self, _: Request) -> Response:
        return fragment(await run_in_threadpool(render_planner, self._curator.recipe.budget, self._prior))

    async def plan(self, request: Request) -> Response:
        return fragment(await run_in_threadpool(render_plan, request.query_params, self._prior))

    async def keys(self, _: Request) -> Response:
        keys = [] if self._keyring is None else await run_in_threadpool(self._keyring.describe)
        return fragment(render_keys(keys))

    @property
    def _prior(self) -> float:
        return self._curator.ensemble.space.priors["membership"]

    @property
    def _steps(self) -> int:
        return self._curator.session.snapshot().spent_steps

    def _promise(self) -> Markup:
        unit = self._curator.ensemble.space.units.kind
        return render_promise(self._name, unit, self._curator.privacy())

    def _live(self) -> list[Markup]:
        standing = look_at(self._curator.recipe.budget, self._steps, self._course)
        return [render_budget(standing), *render_traffic(self._traffic)]

    def _form(self) -> Markup:
        return render_form(self._curator.ensemble.schema, self._curator.recipe.budget, self._steps)
