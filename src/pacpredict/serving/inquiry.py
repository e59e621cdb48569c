"""What a client asks, whatever protocol it came by."""

from typing import Any, NamedTuple

from pacpredict.ensemble.tables.schema import Rows
from pacpredict.ensemble.tables.values import show
from pacpredict.exceptions import InvalidQuery


class Inquiry(NamedTuple):
    rows: Rows
    id: str | None = None  # a repeated inquiry has the same
    partial: bool = False  # answer as many rows as the budget allows
    is_binary: bool = False  # the answer's labels as bytes behind the JSON


def read_id(given: Any) -> str | None:
    """Return the id of a request; an empty one is none. The session checks what it may be."""
    if given is None or given == "":
        return None
    if not isinstance(given, str):
        raise InvalidQuery(f"the id of a request must be a text, got {show(given)}")
    return given


def read_flag(parameters: dict[str, Any], name: str) -> bool:
    flag = parameters.get(name, False)
    if not isinstance(flag, bool):
        raise InvalidQuery(f"parameter {name!r} must be true or false, got {show(flag)}")
    return flag


def read_object(owner: dict[str, Any], field: str) -> dict[str, Any]:
    """Return a field that holds an object, and may be left out or null."""
    found = owner.get(field)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise InvalidQuery(f"{field!r} must be a JSON object, got {show(found)}")
    return found
