"""A client that knows nothing but HTTP: what a program of the clinic would send."""

import json
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from pacpredict.demo.patients import Row
from pacpredict.exceptions import DemoFailed

PATH = "/invocations"
_SECONDS = 300.0  # for an answer, on a machine that has much else to do


class Answer(NamedTuple):
    label: str
    charge_nats: float


class Client:
    """Asks one server, with a key."""

    def __init__(self, url: str, key: str) -> None:
        self._url = f"{url}{PATH}"
        self._headers = {"Authorization": f"Bearer {key}"}

    def ask(self, row: Row) -> Answer | None:
        """Return the answer to one question, or None when the budget is spent."""
        request = Request(self._url, body_of(row).encode(), self._headers)  # noqa: S310  # our own address
        try:
            with urlopen(request, timeout=_SECONDS) as reply:  # noqa: S310
                found: dict[str, Any] = json.load(reply)
        except HTTPError as problem:
            with problem:
                refusal = json.load(problem)
            if refusal["code"] != "budget-exhausted":
                raise DemoFailed(f"the server refused a question: {refusal['error']}") from None
            return None
        except OSError as problem:
            raise DemoFailed(f"the server cannot be reached any more: {problem}") from None
        return Answer(found["predictions"][0], found["parameters"]["charge_nats"][0])


def body_of(row: Row) -> str:
    return json.dumps({"dataframe_records": [row]})
