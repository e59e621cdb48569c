"""How much one request may ask of the server, and reading of bodies within these limits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.requests import ClientDisconnect, Request

from pacpredict.exceptions import BodyTooLarge, BodyTooSlow, InvalidQuery, ServerBusy, UnsupportedEncoding


@dataclass(frozen=True)
class Limits:
    """The defaults let a client label ten thousand rows of a wide table in one go."""

    body_bytes: int = 8 * 2**20
    body_seconds: float = (
        30.0  # for a body to arrive; who sends slower than this holds a connection for nothing
    )
    held_bytes: int = 256 * 2**20  # of all bodies that are being read or answered
    rows: int = 10_000
    waiting: int = 2_000  # requests that have arrived and are not answered; more would only wait longer

    def check_rows(self, n_rows: int) -> None:
        if n_rows > self.rows:
            raise InvalidQuery(f"{n_rows:,} rows in one request are too many; send at most {self.rows:,}")


class Bodies:
    """Reads bodies, and holds no more of them at a time than the limits allow."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._n_held = 0  # bytes

    @asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytes]:
        """Lend the whole body of a request, to be forgotten at the end of the `with`."""
        self._check_headers(request)
        parts: list[bytes] = []
        try:
            yield await self._collect(request, parts)
        finally:
            self._n_held -= sum(map(len, parts))

    def _check_headers(self, request: Request) -> None:
        if request.headers.get("content-encoding", "identity") != "identity":
            raise UnsupportedEncoding("compressed bodies are not taken; send the body as it is")
        announced = request.headers.get("content-length", "")
        if announced.isdigit() and int(announced) > self._limits.body_bytes:
            raise self._too_large()

    async def _collect(self, request: Request, parts: list[bytes]) -> bytes:
        size = 0
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                async for part in request.stream():
                    parts.append(part)
                    size += len(part)
                    self._n_held += len(part)
                    if size > self._limits.body_bytes:
                        raise self._too_large()
                    if self._n_held > self._limits.held_bytes:
                        raise ServerBusy("the server has many large requests; try again in a moment")
        except TimeoutError:
            seconds = self._limits.body_seconds
            raise BodyTooSlow(f"the body did not arrive within {seconds:g} seconds") from None
        except ClientDisconnect:
            raise InvalidQuery("the body was cut off") from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _too_large(self) -> BodyTooLarge:
        most = self._limits.body_bytes
        return BodyTooLarge(f"the body is larger than {most:,} bytes; send fewer rows at a time")


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
