"""One client's connection, within the limits.

uvicorn reads heads of any length for any time, takes connections until the process has no descriptors left, and waits
for ever for its replies to be read. With its other parser, h11, it limits the length of a head and nothing else, and is
slower. So this adds limits to the fast one, by extending its methods.
"""

import ipaddress
import logging
from asyncio import AbstractEventLoop, TimerHandle, Transport
from collections.abc import Callable, Sequence
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from pacpredict.exceptions import (
    HeadTooLarge,
    HeadTooSlow,
    InvalidHttp,
    InvalidInput,
    RequestRefused,
    ServerBusy,
    UrlTooLong,
)
from pacpredict.serving.limits import Limits
from pacpredict.serving.responses import SAFE_HEADERS, refuse

_log = logging.getLogger("pacpredict.serving")

# What a header costs beside its text, as HTTP/2 counts them (RFC 9113, 6.5.2): many empty ones need memory, too.
_PER_HEADER = 32


class Connection(HttpToolsProtocol):
    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: AbstractEventLoop | None = None,
        *,
        limits: Limits,
        proxies: Sequence[str] = (),
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.timeout_keep_alive = limits.idle_seconds  # type: ignore[assignment]  # it may be a fraction
        self.network: str | None = None
        self.idle_since: float | None = None  # None while something is received or answered
        self._limits = limits
        self._proxies = proxies  # behind whose addresses there are many clients
        self._head_size = 0
        self._is_in_head = True
        self._n_unparsed = 0  # bytes since something in them was understood
        self._refusal: RequestRefused | None = None
        self._clock: tuple[float, Callable[[], None]] | None = None
        self._timer: TimerHandle | None = None
        self._n_running = 0  # requests that the app has begun with
        self._is_lost = False
        self.app = self._keeping_its_place(self.app)

    # What the transport tells.

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.network = network_of(self.client[0]) if self.client else None
        self.idle_since = self.loop.time()
        self._watch()
        if not self._find_room():
            self._refuse(ServerBusy("there are too many connections; try again in a moment"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_clock(None)
        super().connection_lost(exc)
        self._is_lost = True
        if (
            self._n_running
        ):  # or one address could let as many wait as it likes, by going away and coming again
            self.connections.add(self)

    def data_received(self, data: bytes) -> None:
        self.idle_since = None
        self._n_unparsed += len(data)
        super().data_received(data)
        # The parser keeps what it does not understand yet: half a header, or half a line between two chunks.
        if self._n_unparsed > self._limits.head_bytes:
            self._refuse(self._too_large())
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._watch()

    # What the parser finds. It stops at what is raised here, and uvicorn then calls send_400_response.

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_size = 0
        self._is_in_head = True

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > self._limits.url_bytes:
            self._refusal = UrlTooLong(f"the URL has more than {self._limits.url_bytes:,} bytes")
            raise self._refusal
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count(len(name) + len(value) + _PER_HEADER)

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= self._limits.pipelined:
            self._refusal = ServerBusy("too many requests were sent without waiting for replies")
            raise self._refusal
        super().on_headers_complete()
        self._is_in_head = False

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._n_unparsed = 0

    # What the app has done.

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._is_answering():
            self.idle_since = self.loop.time()
        self._watch()

    def _keeping_its_place(self, app: ASGIApp) -> ASGIApp:
        """Let a connection that is lost count until its request was answered."""

        async def run(scope: Scope, receive: Receive, send: Send) -> None:
            self._n_running += 1
            try:
                await app(scope, receive, send)
            finally:
                self._n_running -= 1
                if self._is_lost and not self._n_running:
                    self.connections.discard(self)

        return run

    # How it ends.

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  # uvicorn's words
        self._refuse(self._refusal or InvalidHttp("this is not HTTP, or not as it should be"))

    def timeout_keep_alive_handler(self) -> None:
        self.let_go()

    def let_go(self) -> None:
        """Close now, whether or not all that was sent has been read."""
        self.connections.discard(self)
        self.transport.abort()

    def _refuse(self, problem: RequestRefused) -> None:
        if self.transport.is_closing():
            return
        _log.info("a connection from %s was refused: %s", self.network, problem)
        # A refusal does not get into a reply that is under way, nor wait for somebody who reads nothing.
        if self._is_answering() or self.transport.get_write_buffer_size():
            self.let_go()
            return
        response = refuse(problem)
        headers = {**dict(response.raw_headers), **dict(SAFE_HEADERS), b"connection": b"close"}
        lines = b"".join(b"%s: %s\r\n" % header for header in headers.items())
        self.transport.write(STATUS_LINE[response.status_code] + lines + b"\r\n" + bytes(response.body))
        self.connections.discard(self)
        self.transport.close()
        self._watch()

    def _count(self, size: int) -> None:
        self._n_unparsed = 0
        self._head_size += size
        if self._head_size > self._limits.head_bytes:
            self._refusal = self._too_large()
            raise self._refusal

    def _too_large(self) -> HeadTooLarge:
        return HeadTooLarge(f"URL and headers have more than {self._limits.head_bytes:,} bytes")

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _find_room(self) -> bool:
        """Take the place of the connection that has been idle longest, if there are too many."""
        others = [each for each in self.connections if isinstance(each, Connection) and each is not self]
        neighbours = [each for each in others if each.network == self.network]
        if not self._is_proxy() and len(neighbours) >= self._limits.connections_per_address:
            return _let_go_of_one(neighbours)
        return len(others) < self._limits.connections or _let_go_of_one(others)

    def _is_proxy(self) -> bool:
        if not self._proxies or not self.client:
            return False
        try:
            address = ipaddress.ip_address(self.client[0].partition("%")[0])
        except ValueError:
            return False
        return any(address in ipaddress.ip_network(proxy) for proxy in self._proxies)

    # How long it may take.

    def _watch(self) -> None:
        """Let the clock run that the state asks for, from when it first did."""
        if self.transport.is_closing() or self.flow.write_paused:
            self._set_clock((self._limits.unread_seconds, self.let_go))
        elif (
            self._is_answering() or self.timeout_keep_alive_task is not None
        ):  # uvicorn's own clock, of idleness
            self._set_clock(None)
        else:
            self._set_clock((self._limits.head_seconds, self._end_waiting))

    def _set_clock(self, clock: tuple[float, Callable[[], None]] | None) -> None:
        if clock == self._clock:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._clock = clock
        self._timer = None if clock is None else self.loop.call_later(*clock)

    def _end_waiting(self) -> None:
        if self._is_in_head:
            self._refuse(HeadTooSlow(f"no request arrived within {self._limits.head_seconds:g} seconds"))
        else:  # the rest of a body that was refused
            self.let_go()


# A version of uvicorn that calls other methods would switch limits off without a word.
_missing = {name for name in vars(Connection) if not name.startswith("_")} - {
    *dir(HttpToolsProtocol),
    "let_go",
}
if _missing:
    raise InvalidInput(
        f"this version of uvicorn has no {', '.join(sorted(_missing))} and cannot be limited; install an earlier one"
    )


def network_of(address: str) -> str:
    """Return whose an address is: of IPv6 anybody has 2^64, and all of them count as one."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.ip_network((int(ip), 64), strict=False))


def _let_go_of_one(crowd: list[Connection]) -> bool:
    idle = [(each.idle_since, each) for each in crowd if each.idle_since is not None]
    if not idle:
        return False
    min(idle, key=lambda pair: pair[0])[1].let_go()
    return True
