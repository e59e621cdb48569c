"""What both protocols have in common: bodies are read into messages, and answers are written into replies."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import orjson

from pacpredict.curator import Answers, Inquiry
from pacpredict.exceptions import InvalidQuery
from pacpredict.serving.limits import Limits
from pacpredict.show import show

# What Python's json module writes for floats that are no numbers.
_NOT_IN_JSON = ("NaN", "nan", "Infinity")
# By which files of PNG, JPEG, WebP and BMP begin, and no JSON does.
_SIGNATURES = (b"\x89PNG", b"\xff\xd8\xff", b"RIFF", b"BM")


class Message(NamedTuple):
    """What the body of a request says."""

    inquiry: Inquiry
    is_binary: bool = False  # the labels of the answer are wanted as bytes behind the JSON


class Reply(NamedTuple):
    content: bytes
    headers: Mapping[str, str]


class Wire(Protocol):
    """A protocol by which clients ask. Reading takes time and is done in a thread; writing is short."""

    def read(self, body: bytes, headers: Mapping[str, str], limits: Limits) -> Message:
        """Return what a body says; InvalidQuery if that cannot be understood.

        Whether there are too many rows is found out first: to make rows of what was sent takes most of the time.
        """

    def write(self, message: Message, answers: Answers) -> Reply:
        """Return what the client gets."""


def parse_json(body: bytes) -> dict[str, Any]:
    """Return a JSON object.

    orjson takes no NaN, no infinities, no half surrogate pairs and no nesting deeper than 1,024, and gives every number
    as the nearest float64, or as an exact integer of 64 bits.
    """
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as problem:
        raise InvalidQuery(f"the body is not JSON: {_explain(problem, body)}") from None
    if not isinstance(parsed, dict):
        raise InvalidQuery("the body must be a JSON object")
    return parsed


def _explain(problem: orjson.JSONDecodeError, body: bytes) -> str:
    """Say more to those who send a file as it is, or a table, and to those who let Python write JSON.

    Of what is missing Python makes words that JSON does not have.
    """
    if body.startswith(_SIGNATURES):
        return 'it is the file of an image, which comes in base64: {"instances": ["..."]}'
    if body.lstrip()[:1] not in (b"{", b"["):
        return f"{problem}; a table as CSV goes to /invocations with Content-Type: text/csv"
    word = next((word for word in _NOT_IN_JSON if problem.doc.startswith(word, problem.pos)), None)
    return str(problem) if word is None else f"{problem}; JSON has no {word}, a missing value is null"


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
