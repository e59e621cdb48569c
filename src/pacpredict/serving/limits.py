"""How much one request may ask of the server, and reading of bodies within these limits."""

import asyncio
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.requests import ClientDisconnect, Request

from pacpredict.exceptions import BodyTooLarge, BodyTooSlow, InvalidQuery, UnsupportedEncoding


@dataclass(frozen=True)
class Limits:
    """The defaults let a client label ten thousand rows of a wide table in one go."""

    body_bytes: int = 8 * 2**20
    body_seconds: float = (
        30.0  # for a body to arrive; who sends slower than this holds a connection for nothing
    )
    rows: int = 10_000
    waiting: int = 2_000  # requests that have arrived and are not answered; more would only wait longer

    def check_rows(self, n_rows: int) -> None:
        if n_rows > self.rows:
            raise InvalidQuery(f"{n_rows:,} rows in one request are too many; send at most {self.rows:,}")


async def read_body(request: Request, limits: Limits) -> bytes:
    """Return the whole body, having kept no more of it than the limit."""
    encoding = request.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise UnsupportedEncoding("compressed bodies are not taken; send the body as it is")
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > limits.body_bytes:
        raise _too_large(limits)
    try:
        async with asyncio.timeout(limits.body_seconds):
            return await _collect(request, limits)
    except TimeoutError:
        raise BodyTooSlow(f"the body did not arrive within {limits.body_seconds:g} seconds") from None
    except ClientDisconnect:
        raise InvalidQuery("the body was cut off") from None


async def _collect(request: Request, limits: Limits) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limits.body_bytes:
            raise _too_large(limits)
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(limits: Limits) -> BodyTooLarge:
    return BodyTooLarge(f"the body is larger than {limits.body_bytes:,} bytes; send fewer rows at a time")


def parse_json(body: bytes | memoryview) -> dict[str, Any]:
    """Return a JSON object.

    orjson takes no NaN, no infinities, no half surrogate pairs and no nesting deeper than 1,024, and gives every number
    as the nearest float64, or as an exact integer of 64 bits.
    """
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as problem:
        raise InvalidQuery(f"the body is not JSON: {problem}") from None
    if not isinstance(parsed, dict):
        raise InvalidQuery("the body must be a JSON object")
    return parsed
