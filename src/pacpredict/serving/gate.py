"""Where a request was sent to and by whom: a web page must not be able to spend a budget.

Browsers run the pages of strangers inside networks and on machines that these strangers cannot reach. Such a page can
send requests to any address, but its browser says whose page it is, in `Origin`; and it can give a name of its own
another address (DNS rebinding), but then that name is the `Host`. Both are looked at here, before anything else; the
type of the content is not, since good clients send none or another.
"""

import ipaddress
import logging
import re
import socket
import time
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pacpredict.exceptions import ForeignOrigin, InvalidHttp, InvalidInput, RequestRefused, UnknownHost
from pacpredict.serving.logs import fields, request_id
from pacpredict.serving.metrics import Metrics
from pacpredict.serving.metrics import Request as Counted
from pacpredict.serving.responses import SAFE_HEADERS, code_of, refuse
from pacpredict.serving.visit import VISIT, Visit
from pacpredict.show import show

_log = logging.getLogger("pacpredict.serving")

ANY = "*"
# A name, or an address of IPv6 in brackets; and the port, which does not matter here.
_AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:/?#@\s]+))(?::[0-9]*)?")


class Visitors:
    """Says by which names the server may be called, and whose pages may ask it.

    By an address it may always be called, and by the names of this machine: nobody else can let these mean another
    address. A host `*.example.org` stands for all names below it, `*` for all there are; an origin `*` for all pages.
    """

    def __init__(self, hosts: Collection[str] = (), origins: Collection[str] = ()) -> None:
        self.hosts = {"localhost", "*.localhost", socket.gethostname().lower(), *map(_check_host, hosts)}
        self.origins = set(map(_check_origin, origins))
        # Nearly all requests come with one of few values.
        self._knows_host = lru_cache(maxsize=256)(self._look_up_host)

    def check(self, headers: Iterable[tuple[bytes, bytes]], http_version: str) -> None:
        """Refuse a request that was sent to another host, or by a page of another origin."""
        hosts, origins = [], []
        for name, value in headers:
            if name == b"host":
                hosts.append(value.decode("latin-1").lower())
            elif name == b"origin":
                origins.append(value.decode("latin-1").lower())
        if len(hosts) > 1 or (not hosts and http_version != "1.0"):
            raise InvalidHttp("a request must have exactly one Host")
        if hosts and not self._knows_host(hosts[0]):
            raise UnknownHost(
                f"this server does not go by the name {show(hosts[0])}; its operator can allow it with --allow-host"
            )
        for origin in origins:
            if ANY not in self.origins and origin not in self.origins and not _is_own(origin, hosts):
                raise ForeignOrigin(
                    f"pages of {show(origin)} may not ask here; the operator can allow them with --allow-origin"
                )

    def _look_up_host(self, authority: str) -> bool:
        if ANY in self.hosts:
            return True
        match = _AUTHORITY.fullmatch(authority)
        host = (match[1] or match[2]).removesuffix(".") if match else ""
        if host in self.hosts or _is_address(host):
            return True
        return any(f"*.{parent}" in self.hosts for parent in _parents(host))


class Gate:
    """The outermost part of the app: what is refused here reaches no model and no ledger.

    All requests are counted and logged here. With `ids` each request has one, in its response and in the log.
    """

    def __init__(self, app: ASGIApp, visitors: Visitors, metrics: Metrics, ids: bool = False) -> None:
        self._app = app
        self._visitors = visitors
        self._metrics = metrics
        self._ids = ids

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0
        visit = scope[VISIT] = Visit()
        if self._ids:
            visit.id = request_id(scope["headers"])
        self._metrics.begin()

        async def send_safely(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = [] if visit.id is None else [(b"x-request-id", visit.id.encode())]
                message["headers"] = [*message["headers"], *SAFE_HEADERS, *own]
            await send(message)

        try:
            await self._let_in(scope, receive, send_safely, visit)
        finally:
            seconds = time.perf_counter() - began
            self._metrics.end(Counted(visit.route, status, seconds, visit.code, visit.client))
        # Nothing that was asked or answered is logged: these say nothing of the secret.
        _log.info(
            "%s %s %d %.1f ms",
            scope["method"],
            show(scope["path"]),
            status,
            1e3 * seconds,
            extra=self._describe(scope, visit, status, seconds) if self._ids else None,
        )

    async def _let_in(self, scope: Scope, receive: Receive, send: Send, visit: "Visit") -> None:
        try:
            self._visitors.check(scope["headers"], scope["http_version"])
        except RequestRefused as problem:
            visit.code = code_of(problem)
            await refuse(problem)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _describe(self, scope: Scope, visit: "Visit", status: int, seconds: float) -> dict[str, Any]:
        client = scope.get("client")
        return fields(
            request=visit.id,
            method=scope["method"],
            path=scope["path"],
            status=status,
            milliseconds=round(1e3 * seconds, 3),
            address=client[0] if client else None,
            key=visit.client,
            code=visit.code,
        )


def _is_own(origin: str, hosts: list[str]) -> bool:
    scheme, found, authority = origin.partition("://")
    return bool(found) and scheme in {"http", "https"} and [authority] == hosts


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _parents(host: str) -> Iterator[str]:
    while host:
        host = host.partition(".")[2]
        yield host


def _check_host(name: str) -> str:
    if not name or "/" in name or (":" in name and not _is_address(name)):
        raise InvalidInput(
            f"a host that is allowed is a name without a port, like model.example.org, not {show(name)}"
        )
    return name.lower()


def _check_origin(origin: str) -> str:
    scheme, _, authority = origin.partition("://")
    if origin != ANY and (scheme not in {"http", "https"} or not authority or set(authority) & set("/ ")):
        raise InvalidInput(
            f"an origin that is allowed is like https://app.example.org, without a path, not {show(origin)}"
        )
    return origin.lower()
