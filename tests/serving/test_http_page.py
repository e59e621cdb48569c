"""docs/http.md has every route of the server, who may call it, and what the description says of it."""

import re
from pathlib import Path

from live_server import curator_of

from pacpredict.serving.access import Anybody
from pacpredict.serving.app import build_app
from pacpredict.serving.metrics import Counted
from pacpredict.serving.openapi.operations import OPERATIONS
from pacpredict.serving.responses import REFUSALS
from pacpredict.serving.service import Service

DOCS = Path(__file__).parents[2] / "docs"
ROW = re.compile(r"^\| `(GET|POST) ([^`]+)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def who(roles):
    if None in roles:
        return "anybody"
    return "any key" if len(roles) == 3 else ", ".join(f"`{role}`" for role in sorted(roles, reverse=True))


def test_every_route_is_on_the_page(fitted):
    """The table is that of the app, row by row."""
    app = build_app(Service(curator_of(fitted), "mixed", metrics=Counted()), Anybody())
    expected = {
        (method, route.path): (who(route.app.needs.value), OPERATIONS[method, route.path].summary)
        for route in app.routes
        for method in route.methods - {"HEAD"}
    }
    on_page = {
        (method, path): (roles, what)
        for method, path, roles, what in ROW.findall((DOCS / "http.md").read_text())
    }
    assert on_page == expected


def test_every_refusal_is_on_the_page():
    """Each status with its codes, and no other."""
    rows = re.findall(r"^\| (\d{3}) \| ([^|]+) \|", (DOCS / "http.md").read_text(), re.MULTILINE)
    on_page = {(int(status), code) for status, codes in rows for code in re.findall(r"`([^`]+)`", codes)}
    no_route = {(404, "no-such-route"), (405, "no-such-route")}
    assert on_page == {(refusal.status, refusal.code) for refusal in REFUSALS.values()} | no_route
