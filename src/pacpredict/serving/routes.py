"""Every route of the server, with what its callers need. There is no other way to add one."""

from typing import NamedTuple

from starlette.routing import Route

from pacpredict.serving.access import Access, Needs
from pacpredict.serving.endpoint import Endpoint, Handler
from pacpredict.serving.openapi.handlers import Description
from pacpredict.serving.page import shell
from pacpredict.serving.page.page import Page
from pacpredict.serving.service import Service

_MODELS = ("/v2/models/{name}", "/v2/models/{name}/versions/{version}")


class Way(NamedTuple):
    """A path, what is done there, and who may have it done."""

    method: str
    path: str
    needs: Needs
    handler: Handler


def ways(service: Service, page: Page, description: Description) -> list[Way]:
    """List all routes. Whoever has no key learns whether the server runs, and gets empty pages."""
    return [
        *_pages(page, description),
        Way("GET", "/v2/health/live", Needs.NOTHING, service.live),
        Way("GET", "/v2/health/ready", Needs.NOTHING, service.ready),
        *(Way("POST", f"{model}/infer", Needs.QUERY, service.infer) for model in _MODELS),
        Way("POST", "/invocations", Needs.QUERY, service.invocations),
        Way("GET", "/privacy", Needs.KEY, service.privacy),
        *_figures(service),
        Way("GET", "/keys", Needs.ADMIN, service.list_keys),
        Way("GET", "/ping", Needs.KEY, service.ping),
        Way("GET", "/v2", Needs.KEY, service.server),
        Way("GET", "/v2/models", Needs.KEY, service.models),
        Way("POST", "/v2/repository/index", Needs.KEY, service.index),
        *(Way("GET", model, Needs.KEY, service.model) for model in _MODELS),
        *(Way("GET", f"{model}/ready", Needs.KEY, service.model_ready) for model in _MODELS),
    ]


def _figures(service: Service) -> list[Way]:
    return [Way("GET", "/metrics", Needs.READ, service.figures)] if service.metrics.is_counting else []


def _pages(page: Page, description: Description) -> list[Way]:
    """List what browsers fetch: frames that are the same for every deployment, and what fills them, by role."""
    return [
        Way("GET", "/", Needs.NOTHING, shell.home),
        Way("GET", "/docs", Needs.NOTHING, shell.interface),
        Way("GET", "/page.js", Needs.NOTHING, shell.script),
        Way("GET", "/page.css", Needs.NOTHING, shell.style),
        Way("GET", "/page/promise", Needs.KEY, page.promise),
        Way("GET", "/page/planner", Needs.KEY, page.planner),
        Way("GET", "/page/plan", Needs.KEY, page.plan),
        Way("GET", "/page/form", Needs.QUERY, page.form),
        Way("GET", "/page/live", Needs.READ, page.live),
        Way("GET", "/page/keys", Needs.ADMIN, page.keys),
        Way("GET", "/page/interface", Needs.KEY, description.for_people),
        Way("GET", "/openapi.json", Needs.KEY, description.for_programs),
    ]


def routes(service: Service, page: Page, access: Access) -> list[Route]:
    description = service.description(is_open=access.unnamed.role is not None)
    return [
        Route(
            way.path,
            Endpoint(way.path, way.handler, way.needs, access, service.at),
            methods=[way.method],
        )
        for way in ways(service, page, description)
    ]
