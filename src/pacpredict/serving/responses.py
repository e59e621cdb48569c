"""What each error becomes on the wire."""

import logging
import traceback
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson
from starlette.responses import Response

from pacpredict.exceptions import (
    BodyTooLarge,
    BodyTooSlow,
    BudgetExhausted,
    ForeignOrigin,
    HeadTooLarge,
    HeadTooSlow,
    IdConflict,
    InvalidHttp,
    InvalidInput,
    InvalidModel,
    InvalidOutputs,
    InvalidVotes,
    KeyMissing,
    LedgerDamaged,
    LedgerError,
    PacPredictError,
    QuotaReached,
    RateReached,
    RoleMissing,
    ServerBusy,
    UnknownHost,
    UnknownModel,
    UnsupportedEncoding,
    UrlTooLong,
    VotersUnavailable,
)

_log = logging.getLogger("pacpredict.serving")

# Of every response. No browser guesses what it is or keeps it, and no proxy gives one client's answer to another.
SAFE_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))

_AGAIN = {"retry-after": "1"}  # seconds; the ledger recovers as soon as its cause is gone
_CLOSE = {"connection": "close"}  # where the next request begins is not known, or will not be waited for


class Refusal(NamedTuple):
    status: int
    code: str  # for programs
    headers: dict[str, str] = {}  # noqa: RUF012  # never changed
    text: str | None = None  # said instead of the error's own text, which is for the owner's eyes


_LEDGER_TEXT = (
    "the ledger cannot record answers now, so none is given; try again later, with the same id if it had one"
)
_SPENT_TEXT = (
    "the privacy budget is spent, so this request is not answered and nothing was charged; what was answered before "
    "still is"
)
_INTERNAL = Refusal(500, "internal-error", text="the server failed and gives no answer; its log says where")

# An error that is not here is looked up by its bases.
REFUSALS: dict[type[Exception], Refusal] = {
    InvalidInput: Refusal(400, "invalid-request"),
    # These are about the models, not about what was sent.
    InvalidModel: _INTERNAL,
    InvalidOutputs: _INTERNAL,
    InvalidVotes: _INTERNAL,
    InvalidHttp: Refusal(400, "invalid-http", _CLOSE),
    KeyMissing: Refusal(401, "key-missing", {"www-authenticate": "Bearer"}),
    RoleMissing: Refusal(403, "role-missing"),
    BudgetExhausted: Refusal(403, "budget-exhausted"),
    QuotaReached: Refusal(403, "quota-reached"),
    RateReached: Refusal(429, "rate-reached"),
    ForeignOrigin: Refusal(403, "foreign-origin"),
    UnknownModel: Refusal(404, "unknown-model"),
    BodyTooSlow: Refusal(408, "body-too-slow", _CLOSE),
    HeadTooSlow: Refusal(408, "head-too-slow", _CLOSE),
    IdConflict: Refusal(409, "id-conflict"),
    BodyTooLarge: Refusal(413, "body-too-large"),
    UrlTooLong: Refusal(414, "url-too-long", _CLOSE),
    UnsupportedEncoding: Refusal(415, "unsupported-encoding"),
    UnknownHost: Refusal(421, "unknown-host"),
    HeadTooLarge: Refusal(431, "head-too-large", _CLOSE),
    ServerBusy: Refusal(503, "busy", _AGAIN),
    VotersUnavailable: Refusal(503, "voters-unavailable", _AGAIN),
    LedgerDamaged: Refusal(503, "ledger-damaged", text=_LEDGER_TEXT),
    LedgerError: Refusal(503, "ledger-unavailable", _AGAIN, _LEDGER_TEXT),
    Exception: _INTERNAL,
}


def code_of(problem: Exception) -> str:
    return _refusal_of(problem).code


def _refusal_of(problem: Exception) -> Refusal:
    return next(REFUSALS[kind] for kind in type(problem).__mro__ if kind in REFUSALS)


def refuse(problem: Exception) -> Response:
    """Return the response to a request that failed; the owner's log gets what the client is not told."""
    refusal = _refusal_of(problem)
    if refusal.text is not None:
        _log.error("%s", _describe(problem))
    content: dict[str, Any] = {"error": refusal.text or str(problem), "code": refusal.code}
    if isinstance(problem, BudgetExhausted):
        content |= _describe_budget(problem)
    headers = refusal.headers
    if isinstance(problem, RateReached):
        headers = {"retry-after": str(problem.seconds)}
    return json_response(content, refusal.status, headers)


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(orjson.dumps(content), status, headers, "application/json")


def _describe_budget(problem: BudgetExhausted) -> dict[str, Any]:
    if problem.left_nats:
        return {"needed_nats": problem.needed_nats, "left_nats": problem.left_nats}
    # What it would have needed tells on how many rows the models differ, and nobody is charged for that any more.
    return {"error": _SPENT_TEXT, "left_nats": 0.0}


def _describe(problem: Exception) -> str:
    if isinstance(problem, PacPredictError):
        return f"{type(problem).__name__}: {problem}"
    # A bug. Its text is not ours and might hold anything, also of the secret; where it happened is enough to find it.
    frames = traceback.extract_tb(problem.__traceback__)
    where = " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames))
    return f"{type(problem).__name__} at {where}"
