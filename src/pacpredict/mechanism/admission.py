"""How the requests of a group become one batch of releases."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pacpredict.exceptions import IdConflict, InvalidVotes
from pacpredict.mechanism.allowance import Allowance
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import Answer
from pacpredict.mechanism.question import UNVOTED, Ballots, Request
from pacpredict.types import Votes


class Place(NamedTuple):
    """Where a question stands in the batch; another question before it may be the same."""

    row: int
    is_first: bool


class Draft(NamedTuple):
    """What is known of an entry before it is answered."""

    digest: bytes | None = None
    client: str | None = None
    request: bytes | None = None
    asked: bytes | None = None


class Batch:
    """The questions of several requests that are still to be answered.

    Requests are admitted one after the other, each to what those before it left of the budget. One that is refused
    leaves no trace.
    """

    def __init__(
        self,
        budget: Budget,
        spent: int,
        known: Mapping[bytes, Answer],
        requests: Mapping[bytes, bytes],
        allowances: Mapping[str, Allowance],
    ) -> None:
        self.n_voted: list[int] = []
        self.drafts: list[Draft] = []
        self._rows: list[tuple[Ballots, int]] = []
        self._budget = budget
        self._spent = spent
        self._known = known
        self._requests = dict(requests)  # what was asked with each id
        self._allowances = dict(allowances)  # what each client may still be answered
        self._place_of: dict[bytes, int] = {}  # where in the batch a digest is answered

    def __len__(self) -> int:
        return len(self._rows)

    def votes(self) -> Votes:
        """Return the votes on all questions, in order; those of one set of ballots are taken together."""
        parts = [ballots.choose(rows) for ballots, rows in self._by_ballots()]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def admit(self, request: Request) -> list[Answer | Place]:
        """Say for each question which answer it repeats, or where it stands in the batch."""
        if request.key is not None:
            check_request_id(request, self._requests.get(request.key))
        fresh = self._find_fresh(request)
        allowed = fresh[: self._allow(request, len(fresh))]
        contested = [request.ballots.n_voted[request.rows[i]] > 1 for i in allowed]
        end = len(request.rows)
        if request.partial:
            charged = self._budget.charge_first(contested, self._spent)
            end = end if len(charged) == len(fresh) else fresh[len(charged)]
        if end == 0 or not request.partial:  # refuses, if it does not fit; also a part that is nothing
            charged = self._budget.charge(contested, self._spent, allowed, len(request.rows))
        return self._take(request, dict(zip(fresh, charged, strict=False)), end)

    def _allow(self, request: Request, n_fresh: int) -> int:
        """Return how many new questions the client may ask; refuses, if it is fewer than it must be."""
        allowance = self._allowances.get(request.client or "")
        return n_fresh if allowance is None else allowance.take(n_fresh, partial=request.partial)

    def _find_fresh(self, request: Request) -> list[int]:
        """List the questions that were not answered before, nor stand in the batch already."""
        fresh: list[int] = []
        mine: set[bytes] = set()
        for i, digest in enumerate(request.digests):
            if digest is not None:
                if digest in self._known or digest in self._place_of or digest in mine:
                    continue
                mine.add(digest)
            if request.rows[i] == UNVOTED:
                raise InvalidVotes(
                    "a question that is not in the ledger came without votes; ask the models first"
                )
            fresh.append(i)
        return fresh

    def _take(self, request: Request, charged: Mapping[int, int], end: int) -> list[Answer | Place]:
        places: list[Answer | Place] = []
        for i, digest in enumerate(request.digests[:end]):
            if i in charged:
                places.append(Place(len(self._rows), is_first=True))
                if digest is not None:
                    self._place_of[digest] = len(self._rows)
                self._add(request, i)
            elif digest is not None:
                places.append(self._known.get(digest) or Place(self._place_of[digest], is_first=False))
        if request.key is not None and charged:  # it is noted with what is new; a repetition is safe without
            self._requests[request.key] = request.asked
        self._spent += sum(charged.values())
        if request.client in self._allowances:
            self._allowances[request.client] = self._allowances[request.client].less(len(charged))
        return places

    def _add(self, request: Request, i: int) -> None:
        row = request.rows[i]
        self._rows.append((request.ballots, row))
        self.n_voted.append(request.ballots.n_voted[row])
        asked = None if request.key is None else request.asked
        self.drafts.append(Draft(request.digests[i], request.client, request.key, asked))

    def _by_ballots(self) -> Iterator[tuple[Ballots, list[int]]]:
        start = 0
        for i in range(1, len(self._rows) + 1):
            ballots = self._rows[start][0]
            if i == len(self._rows) or self._rows[i][0] is not ballots:
                yield ballots, [row for _, row in self._rows[start:i]]
                start = i


def check_request_id(request: Request, asked: bytes | None) -> None:
    """Refuse an id that was used for a request with other questions; `asked` is what it was used for, if it was."""
    if asked is not None and asked != request.asked:
        raise IdConflict(
            "this request id was used for a request with other questions; nothing was charged. "
            "Send a new request with a new id, and the same request with the same"
        )


def repeated(request: Request) -> Sequence[Answer] | None:
    """Return the answers to a request that are all on record, or None if one is not."""
    known = request.known.answers
    if not known:  # nearly always
        return None
    answers = [known.get(digest) for digest in request.digests if digest is not None]
    found = [answer for answer in answers if answer is not None]
    return found if len(found) == len(request.digests) else None
