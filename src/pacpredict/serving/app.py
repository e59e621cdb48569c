"""The app: its routes, and what every request passes before."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from pacpredict.serving.access import Access
from pacpredict.serving.binary_tensors import LENGTH_HEADER
from pacpredict.serving.draining import drain_first
from pacpredict.serving.endpoint import refuse_route
from pacpredict.serving.gate import Gate, Visitors
from pacpredict.serving.page.page import Page
from pacpredict.serving.routes import routes
from pacpredict.serving.service import Service


def build_app(
    service: Service,
    access: Access,
    visitors: Visitors | None = None,
    page: Page | None = None,
    *,
    drain_seconds: float = 0.0,
    ids: bool = False,
    at_end: Callable[[], None] | None = None,
) -> Starlette:
    """Build the app; with `ids` each request has one. After SIGTERM it goes on for a while, but is not ready.

    `at_end` is called when everything that was begun is finished.
    """
    visitors = visitors or Visitors()

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        access.start()
        try:
            async with service.life():
                with drain_first(drain_seconds, service.drain):
                    yield
        finally:
            access.close()
            if at_end is not None:
                at_end()

    app = Starlette(
        routes=routes(service, page or service.page(), access),
        middleware=[Middleware(Gate, visitors, service.metrics, ids=ids), *_cross_origin(visitors)],
        exception_handlers={HTTPException: refuse_route},
        lifespan=life,
    )
    app.router.redirect_slashes = False  # whoever is sent elsewhere may send a key along
    return app


def _cross_origin(visitors: Visitors) -> list[Middleware]:
    """Let browsers show the answers to the pages that may ask."""
    if not visitors.origins:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=sorted(visitors.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            expose_headers=[LENGTH_HEADER],
        )
    ]
