"""What each route does, takes, gives and refuses. A route that is not here cannot be served."""

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    KeyMissing,
    LedgerDamaged,
    LedgerError,
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
from pacpredict.serving.openapi.schemas import Json, object_of, reference

# In the order in which people want to read them.
HEADINGS = ("Ask", "Privacy", "Model", "Health", "Operators", "Pages")

Errors = tuple[type[Exception], ...]

# What can be refused: to anybody, to whoever needs a key, of what has a body, of what needs the ledger, of a query.
ANYBODY: Errors = (
    InvalidHttp,
    ForeignOrigin,
    UnknownHost,
    UrlTooLong,
    HeadTooLarge,
    HeadTooSlow,
    ServerBusy,
    Exception,
)
KEYED: Errors = (KeyMissing, RoleMissing, LedgerError, LedgerDamaged)
BODY: Errors = (InvalidInput, BodyTooLarge, BodyTooSlow, UnsupportedEncoding)
LEDGER: Errors = (LedgerError, LedgerDamaged)
QUERY: Errors = (*BODY, *LEDGER, BudgetExhausted, QuotaReached, RateReached, IdConflict, VotersUnavailable)
MODEL: Errors = (UnknownModel,)

JSON, HTML, CSV, BYTES = "application/json", "text/html", "text/csv", "application/octet-stream"


@dataclass(frozen=True)
class Operation:
    summary: str
    about: str  # under which heading it stands
    gives: Mapping[str, Json | None] = field(default_factory=dict)  # by type of content
    refuses: Errors = ()
    takes: Mapping[str, Json] = field(default_factory=dict)
    needs_body: bool = True
    also: Mapping[int, str] = field(default_factory=dict)  # other statuses that have the same content
    query: Mapping[str, str] = field(default_factory=dict)  # parameters in the URL, with an example each


_TEXT: Json = {"type": "string"}
_READY = {503: "not ready: no answer could be recorded now"}
_STATE = object_of(
    {"name": _TEXT, "version": _TEXT, "state": {"enum": ["READY", "UNAVAILABLE"]}, "reason": _TEXT}
)
_OR_NONE: dict[str, Json] = {kind: {"type": [kind, "null"]} for kind in ("string", "integer", "number")}
_USE = object_of(
    {
        "name": _TEXT,
        "role": {"enum": ["query", "read", "admin"]},
        "state": {"enum": ["valid", "expired", "revoked"]},
        "created": _TEXT,
        "used_queries": {"type": "integer"},
        "used_nats": {"type": "number"},
        **dict.fromkeys(("expires", "revoked"), _OR_NONE["string"]),
        **dict.fromkeys(("rate", "queries"), _OR_NONE["integer"]),
        "nats": _OR_NONE["number"],
    }
)


def _frame(summary: str, kind: str = HTML) -> Operation:
    return Operation(summary, "Pages", {kind: None})


def _piece(summary: str, refuses: Errors = LEDGER, query: Mapping[str, str] | None = None) -> Operation:
    return Operation(summary, "Pages", {HTML: None}, refuses, query=query or {})


def _of_model(path: str) -> dict[tuple[str, str], Operation]:
    return {
        ("POST", f"{path}/infer"): Operation(
            "Ask, by the Open Inference Protocol",
            "Ask",
            {JSON: reference("Inferred"), BYTES: None},
            (*QUERY, *MODEL),
            {JSON: reference("Inference"), BYTES: _TEXT},
        ),
        ("GET", path): Operation("Inputs and outputs", "Model", {JSON: reference("Model")}, MODEL),
        ("GET", f"{path}/ready"): Operation(
            "Does the model answer?",
            "Model",
            {JSON: object_of({"name": _TEXT, "ready": {"type": "boolean"}})},
            MODEL,
            also=_READY,
        ),
    }


OPERATIONS: dict[tuple[str, str], Operation] = {
    ("POST", "/invocations"): Operation(
        "Ask, as MLflow's servers are asked",
        "Ask",
        {JSON: reference("Predictions")},
        QUERY,
        {JSON: reference("Scoring"), CSV: _TEXT},
    ),
    **_of_model("/v2/models/{name}"),
    **_of_model("/v2/models/{name}/versions/{version}"),
    ("GET", "/privacy"): Operation(
        "What was spent, and what every attack can achieve", "Privacy", {JSON: reference("Privacy")}, LEDGER
    ),
    ("GET", "/v2"): Operation(
        "The server",
        "Model",
        {JSON: object_of({"name": _TEXT, "version": _TEXT, "extensions": {"type": "array", "items": _TEXT}})},
    ),
    ("GET", "/v2/models"): Operation(
        "Names of models", "Model", {JSON: object_of({"models": {"type": "array", "items": _TEXT}})}
    ),
    ("POST", "/v2/repository/index"): Operation(
        "Models and their state",
        "Model",
        {JSON: {"type": "array", "items": _STATE}},
        BODY,
        {JSON: object_of({}, {"ready": {"type": "boolean"}})},
        needs_body=False,
    ),
    ("GET", "/v2/health/live"): Operation("Does the server run?", "Health", {JSON: reference("Health")}),
    ("GET", "/v2/health/ready"): Operation(
        "Could an answer be recorded now?", "Health", {JSON: reference("Health")}, also=_READY
    ),
    ("GET", "/ping"): Operation("The same, as MLflow's servers say it", "Health", {"": None}, also=_READY),
    ("GET", "/openapi.json"): Operation("This description", "Pages", {JSON: {"type": "object"}}),
    ("GET", "/"): _frame("The page, without content"),
    ("GET", "/docs"): _frame("The description as a page, without content"),
    ("GET", "/page.js"): _frame("The script of the pages", "text/javascript"),
    ("GET", "/page.css"): _frame("The style of the pages", "text/css"),
    ("GET", "/page/promise"): _piece("What is promised"),
    ("GET", "/page/live"): _piece("Budget, answers and latency"),
    ("GET", "/page/form"): _piece("A form for one query"),
    ("GET", "/page/planner"): _piece("A form for a plan", ()),
    ("GET", "/page/plan"): _piece(
        "A plan: two of these give the others",
        (InvalidInput,),
        {"queries": "1e6", "success": "51.08 %", "tpr": "0.3 %", "step_budget": "2^-32"},
    ),
    ("GET", "/page/keys"): _piece("Keys and their use"),
    ("GET", "/page/interface"): _piece("The description as HTML", ()),
    ("GET", "/metrics"): Operation("Figures for Prometheus", "Operators", {"text/plain": None}, LEDGER),
    ("GET", "/keys"): Operation(
        "Keys and their use",
        "Operators",
        {JSON: object_of({"keys": {"type": "array", "items": _USE}})},
        LEDGER,
    ),
}
