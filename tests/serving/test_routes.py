"""Who may call what: one table, and no route beside it."""

import pytest
from live_server import LiveServer, curator_of
from starlette.routing import Route
from who_may import EMPTY_PAGES, WHO_MAY

from pacpredict.serving.access import Anybody, Needs
from pacpredict.serving.app import build_app
from pacpredict.serving.endpoint import Endpoint
from pacpredict.serving.metrics import Counted
from pacpredict.serving.service import Service


@pytest.fixture(scope="module")
def app(fitted):
    return build_app(Service(curator_of(fitted), "mixed", metrics=Counted()), Anybody())


def test_every_route_is_guarded(app):
    """Every route of the app leads to an endpoint that looks at who calls, and is in the table above."""
    assert all(type(route) is Route and type(route.app) is Endpoint for route in app.routes)
    found = {
        (method, route.path): set(route.app.needs.value)
        for route in app.routes
        for method in route.methods - {"HEAD"}
    }
    assert found == WHO_MAY


def test_what_needs_nothing(app):
    """Without a key one learns whether the server runs and is ready, and gets pages without content."""
    unguarded = {route.path for route in app.routes if route.app.needs is Needs.NOTHING}
    assert unguarded == {"/v2/health/live", "/v2/health/ready", *EMPTY_PAGES}


def test_nobody_is_sent_elsewhere(fitted):
    """A path that is nearly right is no path: whoever follows a redirect may send a key along."""
    with LiveServer(curator_of(fitted)) as server:
        for path in ("/privacy/", "/v2/models/", "/v2/health/live/"):
            assert server.http.get(path, follow_redirects=False).status_code == 404
