"""The description of a server: made of its table of routes, its table of refusals and the schema of its queries."""

from collections.abc import Sequence
from importlib.metadata import version
from itertools import groupby

from pacpredict.exceptions import RateReached
from pacpredict.serving.access import Needs
from pacpredict.serving.inference_protocol import VERSION
from pacpredict.serving.openapi.operations import ANYBODY, HEADINGS, KEYED, OPERATIONS, Errors, Operation
from pacpredict.serving.openapi.schemas import Json, object_of, reference
from pacpredict.serving.responses import REFUSALS, Refusal

_KEY = "key"
_ABOUT = (
    "Labels, each at a proven price in privacy. Nothing is charged for a request that gets an error, but for a 503 "
    "while an answer is recorded; a query that was answered before gets the same answer at no charge."
)


def describe(
    model: str, schemas: Json, examples: Json, routes: Sequence[tuple[str, str, Needs]], *, is_open: bool
) -> Json:
    """Return the description; of an open server, everybody may call everything without a key.

    Examples are of bodies, by the name of their schema or by their type of content.
    """
    paths: dict[str, Json] = {}
    for method, path, needs in routes:
        operation = OPERATIONS[method, path]
        paths.setdefault(path, {})[method.lower()] = _operation(
            method, path, operation, needs, model, is_open
        )
    security = {} if is_open else {"securitySchemes": {_KEY: {"type": "http", "scheme": "bearer"}}}
    described = {
        "openapi": "3.1.0",
        "info": {"title": f"pacpredict: {model}", "version": version("pacpredict"), "description": _ABOUT},
        "tags": [{"name": heading} for heading in HEADINGS],
        "paths": paths,
        "components": {"schemas": schemas, **security},
    }
    return _show_examples(described, examples)


def _show_examples(description: Json, examples: Json) -> Json:
    """Put an example beside every body of a request or an answer that there is one of."""
    for operations in description["paths"].values():
        for operation in operations.values():
            bodies = [operation.get("requestBody", {}), operation["responses"]["200"]]
            for kind, content in (each for body in bodies for each in body.get("content", {}).items()):
                name = content["schema"].get("$ref", kind).rpartition("/schemas/")[2]
                if name in examples:
                    content["example"] = examples[name]
    return description


def _operation(method: str, path: str, operation: Operation, needs: Needs, model: str, is_open: bool) -> Json:
    is_guarded = needs is not Needs.NOTHING and not is_open
    refused = (*ANYBODY, *operation.refuses, *(KEYED if is_guarded else ()))
    described: Json = {
        "operationId": f"{method.lower()} {path}",
        "summary": operation.summary,
        "tags": [operation.about],
        "responses": {**_answers(operation), **_refusals(refused)},
    }
    for status, meaning in operation.also.items():
        described["responses"][str(status)] = _either(
            described["responses"].get(str(status)), meaning, operation
        )
    if parameters := _parameters(path, operation, model):
        described["parameters"] = parameters
    if operation.takes:
        content = {kind: {"schema": schema} for kind, schema in operation.takes.items()}
        described["requestBody"] = {"required": operation.needs_body, "content": content}
    if is_guarded:
        described["security"] = [{_KEY: []}]
        described["description"] = "Roles: " + ", ".join(sorted(role for role in needs.value if role)) + "."
    return described


def _answers(operation: Operation) -> Json:
    return {"200": {"description": operation.summary, **_content(operation)}}


def _content(operation: Operation) -> Json:
    content = {
        kind: {"schema": schema or {"type": "string"}} for kind, schema in operation.gives.items() if kind
    }
    return {"content": content} if content else {}


def _either(refusal: Json | None, meaning: str, operation: Operation) -> Json:
    """Describe a status that can mean either an answer or a refusal."""
    schemas = [
        response["content"]["application/json"]["schema"]
        for response in (refusal or {}, _content(operation))
        if "application/json" in response.get("content", {})
    ]
    text = meaning if refusal is None else f"{meaning}; or {refusal['description']}"
    headers = {} if refusal is None else {"headers": refusal.get("headers", {})}
    return {"description": text, **headers, "content": {"application/json": {"schema": {"anyOf": schemas}}}}


def _refusals(errors: Errors) -> Json:
    """Describe what errors become, by status, from the table that the server goes by."""
    found = sorted({_refusal(error) for error in errors})
    return {
        str(status): _refused([code for _, code, _ in group], {name for *_, names in group for name in names})
        for status, group in ((status, list(group)) for status, group in groupby(found, lambda each: each[0]))
    }


def _refusal(error: type[Exception]) -> tuple[int, str, tuple[str, ...]]:
    refusal: Refusal = REFUSALS[error]
    headers = (
        {"retry-after"}
        if error is RateReached
        else {name for name in refusal.headers if name != "connection"}
    )
    return refusal.status, refusal.code, tuple(sorted(headers))


def _refused(codes: list[str], headers: set[str]) -> Json:
    said: Json = object_of({"code": {"enum": codes}})
    if "budget-exhausted" in codes:
        nats = {"type": "number", "minimum": 0}
        said["properties"] |= {"needed_nats": nats, "left_nats": nats}
    return {
        "description": " or ".join(codes),
        "headers": {name.title(): {"schema": {"type": "string"}} for name in sorted(headers)},
        "content": {"application/json": {"schema": {"allOf": [reference("Error"), said]}}},
    }


def _parameters(path: str, operation: Operation, model: str) -> list[Json]:
    known = {"name": model, "version": VERSION}
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "enum": [value]}}
        for name, value in known.items()
        if f"{{{name}}}" in path
    ]
    in_query = [
        {"name": name, "in": "query", "schema": {"type": "string"}, "example": example}
        for name, example in operation.query.items()
    ]
    return [*in_path, *in_query]
