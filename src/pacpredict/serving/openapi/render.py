"""The description as HTML, for people: no library, no request to anywhere."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import orjson

from pacpredict.pages.document import commands, facts, figures, section
from pacpredict.pages.markup import Child, Markup, join, tag
from pacpredict.serving.openapi.schemas import Json

_METHODS = ("get", "post")
_PLAIN_LIST = re.compile(r"\[\n([^][{}]*)\n *\]")


class _Route(NamedTuple):
    method: str
    path: str
    operation: Json


def render(description: Json) -> Markup:
    """Return all operations under their headings, and the schemas that they refer to."""
    info, found = description["info"], list(_routes(description))
    headings = [heading["name"] for heading in description["tags"]]
    sections = [
        section(heading, [_operation(route) for route in found if heading in route.operation["tags"]])
        for heading in headings
    ]
    schemas = section(
        "Schemas",
        [_folded(name, _json(schema)) for name, schema in description["components"]["schemas"].items()],
    )
    raw = tag("p", "For programs: ", tag("code", "GET /openapi.json"), f", OpenAPI {description['openapi']}.")
    return join(
        tag("p", tag("strong", info["title"]), f" {info['version']}. {info['description']}"),
        raw,
        sections,
        schemas,
    )


def _routes(description: Json) -> Iterator[_Route]:
    for path, operations in description["paths"].items():
        for method in _METHODS:
            if method in operations:
                yield _Route(method.upper(), path, operations[method])


def _operation(route: _Route) -> Markup:
    method, path, operation = route
    title = join(tag("span", method, class_="method"), tag("code", path), f" {operation['summary']}")
    body = operation.get("requestBody", {}).get("content", {})
    return _folded(
        title,
        tag("p", operation.get("description", "Needs no key.")),
        _parameters(operation.get("parameters", [])),
        [_body(kind, content) for kind, content in body.items()],
        tag("h3", "Responses"),
        figures(
            ["status", "meaning", "content"],
            [_response(*each) for each in operation["responses"].items()],
            n_words=3,
        ),
        [_example(content) for content in operation["responses"]["200"].get("content", {}).values()],
    )


def _parameters(parameters: list[Json]) -> Child:
    if not parameters:
        return None
    rows: list[tuple[str, Child]] = [
        (each["name"], f"in the {each['in']}, as {each.get('example') or each['schema']['enum'][0]}")
        for each in parameters
    ]
    return join(tag("h3", "Parameters"), facts(rows))


def _body(kind: str, content: Json) -> Markup:
    return join(tag("h3", "Body: ", tag("code", kind)), _json(content["schema"]), _example(content))


def _example(content: Json) -> Child:
    if "example" not in content:
        return None
    example = content["example"]
    return join(tag("h3", "Example"), commands(example) if isinstance(example, str) else _json(example))


def _response(status: str, response: Json) -> list[Child]:
    return [status, response["description"], ", ".join(response.get("content", {}))]


def _folded(title: Child, *content: Child) -> Markup:
    return tag("details", tag("summary", title), tag("div", *content))


def _json(value: Json) -> Markup:
    """Show JSON with indents, but lists of plain values in one line."""
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    return commands(_PLAIN_LIST.sub(_in_one_line, text))


def _in_one_line(found: re.Match[str]) -> str:
    return f"[{' '.join(line.strip() for line in found[1].splitlines())}]"
