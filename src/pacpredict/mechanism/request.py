"""What clients ask in one go, and how the requests of a group become one batch of releases."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pacpredict.core.release import count_voted
from pacpredict.core.validate import Votes, check_votes
from pacpredict.exceptions import IdConflict, InvalidInput, InvalidVotes
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import Answer

_DIGEST_SIZE = hashlib.sha256().digest_size

# Long enough for any identifier in use; a limit, because ledgers keep and index them for ever.
_LONGEST_NAME = 1000


class Question(NamedTuple):
    """One row of a request.

    Two questions with the same digest are the same query: the second gets the answer of the first. Without a digest
    a question is never looked up. The votes (n_models,) may be left out if the digest is known to be in the ledger.
    """

    digest: bytes | None
    votes: Votes | None


class Request(NamedTuple):
    """What one client asked in one go: answered whole, or with `partial` as far as the budget goes.

    A request that is sent again with the same id gets the same answers; an id that comes with other questions is
    refused.
    """

    questions: Sequence[Question]
    id: str | None = None
    client: str | None = None
    partial: bool = False


class Release(NamedTuple):
    """An answer: the label, its number in the history and what it was charged, in nats.

    A repeated query has the number of its first answer, and a charge of 0.
    """

    sequence: int
    label: int
    charge: float


class Asked(NamedTuple):
    """A request that was checked, with what can be computed before it is its turn."""

    request: Request
    digest: bytes  # of all questions in order
    votes: list[Votes | None]
    n_voted: list[int]


class Place(NamedTuple):
    """Where a question stands in the batch of its group, and the steps that it is charged there."""

    row: int
    charged: int


class Tag(NamedTuple):
    """What an entry says about the request that it answers."""

    digest: bytes | None = None
    id: str | None = None
    client: str | None = None


def check_request(request: Request, n_classes: int, n_models: int) -> Asked:
    """Refuse what cannot be asked, before anything is charged."""
    questions, request_id, client, _ = request
    digests = [question.digest for question in questions]
    if not digests:
        raise InvalidInput("a request needs at least one question")
    if any(digest is not None and len(digest) != _DIGEST_SIZE for digest in digests):
        raise InvalidInput(f"the digest of a query must be {_DIGEST_SIZE} bytes, as of SHA-256")
    if request_id is not None and None in digests:
        raise InvalidInput("a request with an id needs a digest for each question, to be known again by")
    _check_name("id", request_id)
    _check_name("client", client)
    votes, n_voted = _check_rows([question.votes for question in questions], n_classes, n_models)
    return Asked(request, hashlib.sha256(b"".join(d or b"" for d in digests)).digest(), votes, n_voted)


def _check_rows(
    rows: Sequence[Votes | None], n_classes: int, n_models: int
) -> tuple[list[Votes | None], list[int]]:
    given = [row for row in rows if row is not None]
    if not given:
        return [None] * len(rows), [0] * len(rows)
    votes = check_votes(given[0] if len(given) == 1 else given, n_classes, n_models)
    if len(votes) != len(given):
        raise InvalidVotes("a question takes the votes of one query")
    votes.setflags(write=False)
    checked = iter(votes)
    counts = iter(count_voted(votes, n_classes).tolist())
    return (
        [None if row is None else next(checked) for row in rows],
        [0 if row is None else next(counts) for row in rows],
    )


def _check_name(what: str, name: str | None) -> None:
    if name is None:
        return
    if (
        not isinstance(name, str)
        or not 0 < len(name) <= _LONGEST_NAME
        or "\0" in name
        or not _is_unicode(name)
    ):
        raise InvalidInput(
            f"the {what} of a request must be a text of 1 to {_LONGEST_NAME} characters, without NUL or lone surrogates"
        )


def _is_unicode(name: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in name)


class Group:
    """The questions of several requests that are still to be answered, as one batch.

    Requests are admitted one after the other, each to what those before it left of the budget. One that is refused
    leaves no trace.
    """

    def __init__(
        self, budget: Budget, spent: int, known: Mapping[bytes, Answer], ids: Mapping[str, bytes]
    ) -> None:
        self.votes: list[Votes] = []
        self.n_voted: list[int] = []
        self.charged: list[int] = []
        self.tags: list[Tag] = []
        self.new_ids: dict[str, bytes] = {}
        self._budget = budget
        self._spent = spent
        self._known = known
        self._ids = ids
        self._rows: dict[bytes, int] = {}  # where in the batch a digest is answered

    def admit(self, asked: Asked) -> list[Answer | Place]:
        """Say for each question which answer it repeats, or where it stands in the batch."""
        request_id = asked.request.id
        if request_id is not None:
            self._check_id(request_id, asked.digest)
        fresh = self._find_fresh(asked)
        contested = [asked.n_voted[i] > 1 for i in fresh]
        charge = self._budget.charge_first if asked.request.partial else self._budget.charge
        charged = charge(contested, self._spent)
        end = len(asked.votes) if len(charged) == len(fresh) else fresh[len(charged)]
        if end == 0:  # not even the first: say so as for any request
            self._budget.charge(contested, self._spent)
        return self._take(asked, dict(zip(fresh, charged, strict=False)), end)

    def _check_id(self, request_id: str, digest: bytes) -> None:
        earlier = self._ids.get(request_id) or self.new_ids.get(request_id)
        if earlier not in (None, digest):
            raise IdConflict(
                "this request id was used for a request with other questions; nothing was charged. "
                "Send a new request with a new id, and the same request with the same"
            )

    def _find_fresh(self, asked: Asked) -> list[int]:
        """List the questions that were not answered before, nor stand in the batch already."""
        fresh: list[int] = []
        mine: set[bytes] = set()
        for i, (digest, _) in enumerate(asked.request.questions):
            if digest is not None:
                if digest in self._known or digest in self._rows or digest in mine:
                    continue
                mine.add(digest)
            if asked.votes[i] is None:
                raise InvalidVotes(
                    "a question that is not in the ledger came without votes; ask the models first"
                )
            fresh.append(i)
        return fresh

    def _take(self, asked: Asked, charged: Mapping[int, int], end: int) -> list[Answer | Place]:
        questions, request_id, client, _ = asked.request
        places: list[Answer | Place] = []
        for i, (digest, _) in enumerate(questions[:end]):
            votes = asked.votes[i]
            if i in charged and votes is not None:
                places.append(Place(len(self.votes), charged[i]))
                if digest is not None:
                    self._rows[digest] = len(self.votes)
                self.votes.append(votes)
                self.n_voted.append(asked.n_voted[i])
                self.charged.append(charged[i])
                self.tags.append(Tag(digest, request_id, client))
            elif digest is not None:
                places.append(self._known.get(digest) or Place(self._rows[digest], 0))
        if request_id is not None and request_id not in self._ids:
            self.new_ids[request_id] = asked.digest
        self._spent += sum(charged.values())
        return places
