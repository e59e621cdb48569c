"""What each error becomes on the wire."""

import logging
import traceback
from typing import Any, NamedTuple

import orjson
from starlette.responses import Response

from pacpredict.exceptions import (
    BodyTooLarge,
    BodyTooSlow,
    BudgetExhausted,
    IdConflict,
    InvalidInput,
    LedgerDamaged,
    LedgerError,
    PacPredictError,
    ServerBusy,
    UnknownModel,
    UnsupportedEncoding,
)

_log = logging.getLogger("pacpredict.serving")

_AGAIN = {"retry-after": "1"}  # seconds; the ledger recovers as soon as its cause is gone
_CLOSE = {"connection": "close"}  # the rest of the body is not read


class Refusal(NamedTuple):
    status: int
    code: str  # for programs
    headers: dict[str, str] = {}  # noqa: RUF012  # never changed
    text: str | None = None  # said instead of the error's own text, which is for the owner's eyes


_LEDGER_TEXT = (
    "the ledger cannot record answers now, so none is given; try again later, with the same id if it had one"
)

# An error that is not here is looked up by its bases.
REFUSALS: dict[type[Exception], Refusal] = {
    InvalidInput: Refusal(400, "invalid-request"),
    BudgetExhausted: Refusal(403, "budget-exhausted"),
    UnknownModel: Refusal(404, "unknown-model"),
    BodyTooSlow: Refusal(408, "body-too-slow", _CLOSE),
    IdConflict: Refusal(409, "id-conflict"),
    BodyTooLarge: Refusal(413, "body-too-large", _CLOSE),
    UnsupportedEncoding: Refusal(415, "unsupported-encoding", _CLOSE),
    ServerBusy: Refusal(503, "busy", _AGAIN | _CLOSE),
    LedgerDamaged: Refusal(503, "ledger-damaged", text=_LEDGER_TEXT),
    LedgerError: Refusal(503, "ledger-unavailable", _AGAIN, _LEDGER_TEXT),
    Exception: Refusal(
        500, "internal-error", text="the server failed and gives no answer; its log says where"
    ),
}


def refuse(problem: Exception) -> Response:
    """Return the response to a request that failed; the owner's log gets what the client is not told."""
    refusal = next(REFUSALS[kind] for kind in type(problem).__mro__ if kind in REFUSALS)
    if refusal.text is not None:
        _log.error("%s", _describe(problem))
    content: dict[str, Any] = {"error": refusal.text or str(problem), "code": refusal.code}
    if isinstance(problem, BudgetExhausted):
        content |= {"needed_nats": problem.needed_nats, "left_nats": problem.left_nats}
    return json_response(content, refusal.status, refusal.headers)


def json_response(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(orjson.dumps(content), status, headers, "application/json")


def _describe(problem: Exception) -> str:
    if isinstance(problem, PacPredictError):
        return f"{type(problem).__name__}: {problem}"
    # A bug. Its text is not ours and might hold anything, also of the secret; where it happened is enough to find it.
    frames = traceback.extract_tb(problem.__traceback__)
    where = " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames))
    return f"{type(problem).__name__} at {where}"
