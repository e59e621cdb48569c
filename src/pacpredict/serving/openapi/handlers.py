"""`/openapi.json`, and what the page of it is filled with."""

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pacpredict.serving.openapi.describe import describe
from pacpredict.serving.openapi.render import render
from pacpredict.serving.openapi.schemas import Json
from pacpredict.serving.page.shell import fragment
from pacpredict.serving.responses import json_response


class Description:
    """Describes the app that it is asked through: its routes as they are, not as somebody has written them down."""

    def __init__(self, model: str, schemas: Json, examples: Callable[[], Json], *, is_open: bool) -> None:
        self._model = model
        self._schemas = schemas
        self._examples = examples
        self._is_open = is_open

    async def for_programs(self, request: Request) -> Response:
        return json_response(self.of(request.app))

    async def for_people(self, request: Request) -> Response:
        return fragment(render(self.of(request.app)))

    def of(self, app: Any) -> Json:
        routes = [route for route in app.routes if isinstance(route, Route)]
        table = [
            (method, route.path, route.app.needs)  # type: ignore[attr-defined]  # each leads to an Endpoint
            for route in routes
            for method in sorted((route.methods or set()) - {"HEAD"})
        ]
        return describe(self._model, self._schemas, self._examples(), table, is_open=self._is_open)
