"""The frame of the pages, the same for every deployment: whoever has no key sees nothing else.

What a page says is fetched by its script, with the key of whoever looks at it, as pieces of HTML that the server has
made. So there is one implementation of every number, and the script is small.
"""

from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from pacpredict.pages.document import read_style
from pacpredict.pages.markup import Child, Markup, join, tag

# Nothing from elsewhere, nothing inline, no frame around it and none inside, no form that is sent by the browser.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": _POLICY,
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}

_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Crect width='16' height='16' rx='3' fill='%231f6f50'/%3E"
    "%3Cpath d='M4 8.5l3 3 5-6' fill='none' stroke='white' stroke-width='2'/%3E%3C/svg%3E"
)


async def home(_: Request) -> Response:
    return _page(
        "pacpredict",
        _part("promise", "What is promised", every=60),
        _part("live", "Budget and answers", every=5),
        _part("form", "Try a query"),
        _part("planner", "Plan"),
        _part("keys", "Keys", every=15),
    )


async def interface(_: Request) -> Response:
    return _page("pacpredict: HTTP interface", _part("interface", "HTTP interface"))


async def script(_: Request) -> Response:
    return Response(_read("page.js"), headers=HEADERS, media_type="text/javascript")


async def style(_: Request) -> Response:
    return Response(read_style() + _read("page.css"), headers=HEADERS, media_type="text/css")


def fragment(*content: Child) -> Response:
    """Return a piece of HTML that the script puts into its part of the page."""
    return Response(join(*content), headers=HEADERS, media_type="text/html")


@cache
def _read(name: str) -> str:
    return (files(__package__) / name).read_text()


def _part(name: str, what: str, every: int | None = None) -> Markup:
    """Return an empty place; `every` so many seconds it is filled again."""
    return tag("div", id=name, aria_label=what, role="region", data_part=f"page/{name}", data_every=every)


def _page(title: str, *parts: Markup) -> Response:
    # Paths are relative, so that a proxy may put the server below a path of its own.
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("link", rel="icon", href=_ICON),
        tag("link", rel="stylesheet", href="page.css"),
        tag("script", src="page.js", defer=True),
    )
    body = tag(
        "body",
        tag("a", "Skip to content", class_="skip", href="#main"),
        tag("header", tag("h1", title), _navigation(), class_="top"),
        _key_form(),
        tag("p", id="trouble", class_="notice", role="alert", hidden=True),
        tag("noscript", tag("p", "This page needs JavaScript; ", tag("code", "/privacy"), " does not.")),
        tag("main", *parts, id="main", tabindex="-1"),
    )
    return Response(
        f"<!doctype html>\n{tag('html', head, body, lang='en')}\n", headers=HEADERS, media_type="text/html"
    )


def _navigation() -> Markup:
    return tag(
        "nav",
        tag("a", "Overview", href="."),
        tag("a", "HTTP interface", href="docs"),
        tag("button", "Forget the key", id="forget", type="button", hidden=True),
        aria_label="Pages",
    )


def _key_form() -> Markup:
    return tag(
        "form",
        tag("h2", "This server needs a key", id="key-title"),
        tag("p", "Its operator makes one with ", tag("code", "pacpredict keys make"), ". "),
        tag("label", "Key", for_="key"),
        tag(
            "div",
            tag("input", id="key", type="password", autocomplete="off", spellcheck="false", required=True),
            tag("button", "Show", type="submit"),
            class_="line",
        ),
        tag("p", "It is kept in this tab until it is closed, and sent to this server only.", class_="faint"),
        id="key-form",
        aria_labelledby="key-title",
        class_="card",
        hidden=True,
    )
