"""Reading of bodies within the limits."""

import asyncio
import threading
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import ClientDisconnect, Request

from pacpredict.exceptions import BodyTooLarge, BodyTooSlow, InvalidQuery, ServerBusy, UnsupportedEncoding
from pacpredict.rows.images import Images
from pacpredict.rows.kind import AnyRows
from pacpredict.serving.limits import Limits


class Bodies:
    """Reads bodies, and holds no more of them at a time than the limits allow."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._n_held = 0  # bytes
        self._most_held = limits.held_bodies * limits.body_bytes

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
                    self._check_size(size)
        except TimeoutError:
            seconds = self._limits.body_seconds
            raise BodyTooSlow(f"the body did not arrive within {seconds:g} seconds") from None
        except ClientDisconnect:
            raise InvalidQuery("the body was cut off") from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _check_size(self, size: int) -> None:
        if size > self._limits.body_bytes:
            raise self._too_large()
        # As many small ones as there are connections always fit: large or slow ones do not keep them out.
        if size > self._limits.small_bytes and self._n_held > self._most_held:
            raise ServerBusy("the server has many large requests; try again in a moment")

    def _too_large(self) -> BodyTooLarge:
        most = self._limits.body_bytes
        return BodyTooLarge(f"the body is larger than {most:,} bytes; send fewer rows at a time")


class HeldPixels:
    """Counts the pixels of all images that were decoded and are still in memory: small files can have many."""

    def __init__(self, limits: Limits) -> None:
        self._n_held = 0  # bytes
        self._most_held = limits.held_bodies * limits.pixel_bytes
        self._lock = threading.RLock()  # memory may be given back at any moment, also within `hold`

    def hold(self, rows: AnyRows) -> None:
        """Count rows as long as they live, or raise ServerBusy."""
        if not isinstance(rows, Images):
            return
        size = rows.pixels.nbytes
        with self._lock:
            if self._n_held and self._n_held + size > self._most_held:
                raise ServerBusy("the server has many images to look at; try again in a moment")
            self._n_held += size
        weakref.finalize(rows, self._give_back, size).atexit = False

    def _give_back(self, size: int) -> None:
        with self._lock:
            self._n_held -= size
