"""What is found out about a request on its way through the app, for those who count and log it."""

from dataclasses import dataclass

# Where it is in the scope of the request.
VISIT = "pacpredict.visit"

_NOWHERE = "none"


@dataclass(slots=True)
class Visit:
    route: str = _NOWHERE  # as the table of routes writes it
    code: str | None = None  # of its refusal
    client: str | None = None  # the name of its key
    id: str | None = None  # where requests have ids
