"""From a handler to an ASGI app: whoever may not call is refused, what it returns is sent, errors become responses."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from pacpredict.exceptions import LedgerUnavailable
from pacpredict.mechanism.ledger import Failpoints
from pacpredict.serving.access import STRANGER, Access, Caller, Needs, admit
from pacpredict.serving.responses import code_of, json_response, refuse
from pacpredict.serving.visit import VISIT, Visit

Handler = Callable[[Request], Awaitable[Response]]

_CALLER = "pacpredict.caller"
_NO_ROUTE = "no-such-route"


class Endpoint:
    """Lets a handler see only the requests of those who may call it; sends what it returns or its error becomes."""

    def __init__(
        self,
        path: str,
        handler: Handler,
        needs: Needs,
        access: Access,
        at: Failpoints,
    ) -> None:
        self._path = path
        self.needs = needs
        self._handler = handler
        self._access = access
        self._at = at

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        visit: Visit = scope[VISIT]
        visit.route = self._path
        self._access.enter()
        try:
            response = await self._respond(request, visit)
        except Exception as problem:  # noqa: BLE001  # every failure has its response
            response = _refuse(problem, visit)
        except asyncio.CancelledError:  # the server ends, and waits no longer for the ledger
            response = _refuse(LedgerUnavailable("the server ended before the answer was on record"), visit)
        finally:
            self._access.leave()
        self._at("before-send")
        await response(scope, receive, send)
        self._at("after-send")

    async def _respond(self, request: Request, visit: Visit) -> Response:
        caller = await admit(self._access, self.needs, request.scope["headers"])
        request.scope[_CALLER] = caller
        visit.client = caller.name
        return await self._handler(request)


def _refuse(problem: Exception, visit: Visit) -> Response:
    visit.code = code_of(problem)
    return refuse(problem)


def caller_of(request: Request) -> Caller:
    """Return who calls, as the endpoint has found out."""
    caller: Caller = request.scope.get(_CALLER, STRANGER)
    return caller


async def refuse_route(request: Request, problem: Exception) -> Response:
    """Answer for paths and methods that there are not."""
    request.scope[VISIT].code = _NO_ROUTE
    status = problem.status_code if isinstance(problem, HTTPException) else 500
    headers = dict(problem.headers or {}) if isinstance(problem, HTTPException) else {}
    text = "this path cannot be used with this method" if status == 405 else "there is nothing at this path"
    return json_response({"error": text, "code": _NO_ROUTE}, status, headers)
