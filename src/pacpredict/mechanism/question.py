"""What is asked and what is answered: the words that clients, sessions and ledgers share."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pacpredict.core.release import count_voted
from pacpredict.core.validate import check_votes
from pacpredict.exceptions import InvalidInput
from pacpredict.mechanism.ledger import Answer
from pacpredict.types import Votes

_DIGEST_SIZE = hashlib.sha256().digest_size

# An id is kept as a digest, so its length costs nothing later; what is longer than this is no identifier.
_LONGEST_ID = 1000
_LONGEST_CLIENT = 100

# In the place of a row of votes: none are needed, the answer is on record.
UNVOTED = -1


@dataclass(frozen=True, eq=False)
class Ballots:
    """The votes of all models on some queries. They were checked and counted once and do not change any more."""

    votes: Votes  # (n_queries, n_models)
    n_voted: Sequence[int]  # distinct classes voted for in each row

    @classmethod
    def check(cls, votes: npt.ArrayLike, n_classes: int, n_models: int) -> "Ballots":
        checked = check_votes(votes, n_classes, n_models)
        checked.setflags(write=False)
        return cls(checked, count_voted(checked, n_classes).tolist())

    def __len__(self) -> int:
        return len(self.n_voted)

    def choose(self, rows: Sequence[int]) -> Votes:
        """Return the votes of some rows, in this order; of all of them, as nearly always, without a copy."""
        return self.votes if rows == list(range(len(self))) else self.votes[rows]


NO_BALLOTS = Ballots(np.empty((0, 0), np.int16), ())  # where every answer is on record


class Known(NamedTuple):
    """What a ledger was found to hold when it held `as_of` releases, or somewhat later."""

    as_of: int
    answers: Mapping[bytes, Answer]


_NOTHING = Known(-1, MappingProxyType({}))


@dataclass(frozen=True, eq=False)
class Request:
    """What one client asks in one go: answered whole, or with `partial` as far as the budget goes.

    Each question has a digest and a row of the ballots. Two questions with the same digest are the same query: the
    second gets the answer of the first. Without a digest (None) a question is never looked up. A question whose answer
    is `known` needs no votes: its row may be UNVOTED.

    A request that is sent again with the same id gets the same answers; an id that comes with other questions is
    refused. An id belongs to its client: those of others do not matter.
    """

    digests: Sequence[bytes | None]
    ballots: Ballots = field(repr=False)
    rows: Sequence[int] = field(repr=False)
    known: Known = field(default=_NOTHING, repr=False)
    id: str | None = None
    client: str | None = None
    partial: bool = False

    def __post_init__(self) -> None:
        if not self.digests or len(self.digests) != len(self.rows):
            raise InvalidInput("a request needs at least one question, and a row of votes or none for each")
        if any(digest is not None and len(digest) != _DIGEST_SIZE for digest in self.digests):
            raise InvalidInput(f"the digest of a query must be {_DIGEST_SIZE} bytes, as of SHA-256")
        if self.id is not None and None in self.digests:
            raise InvalidInput("a request with an id needs a digest for each question, to be known again by")
        check_id(self.id)
        _check_client(self.client)

    @classmethod
    def of(
        cls,
        ballots: Ballots,
        digests: Sequence[bytes | None] | None = None,
        *,
        id: str | None = None,  # noqa: A002  # what it is called everywhere
        client: str | None = None,
        partial: bool = False,
    ) -> "Request":
        """Ask one question for each row of the ballots."""
        n = len(ballots)
        return cls(
            [None] * n if digests is None else digests, ballots, range(n), _NOTHING, id, client, partial
        )

    @cached_property
    def asked(self) -> bytes:
        """Digest all questions in order."""
        return hashlib.sha256(b"".join(digest or b"" for digest in self.digests)).digest()

    @property
    def key(self) -> bytes | None:
        """Digest the id together with its client, of one size whatever they are; None without an id."""
        return None if self.id is None else self._key_of_id

    @cached_property
    def _key_of_id(self) -> bytes:
        return request_key(self.client, self.id or "")


def request_key(client: str | None, request_id: str) -> bytes:
    """Digest an id, scoped to its client: different pairs never have the same bytes."""
    scope = (client or "").encode()
    return hashlib.sha256(len(scope).to_bytes(8, "little") + scope + request_id.encode()).digest()


def own_digest(client: str | None, digest: bytes) -> bytes:
    """Digest a query of one client so that it is another than the same query of anybody else."""
    return hashlib.sha256(b"of one client" + request_key(client, digest.hex())).digest()


class Release(NamedTuple):
    """An answer: the label, its number in the history and what it was charged, in nats.

    A repeated query has the number of its first answer, and a charge of 0; `first_charge` is what that one was charged.
    """

    sequence: int
    label: int
    charge: float
    first_charge: float = 0.0


def check_id(name: str | None) -> None:
    """Refuse what is no id of a request; None is no id."""
    if name is not None and (
        not isinstance(name, str) or not 0 < len(name) <= _LONGEST_ID or not _is_unicode(name)
    ):
        raise InvalidInput(
            f"the id of a request must be a text of 1 to {_LONGEST_ID} characters, without lone surrogates"
        )


def _check_client(name: str | None) -> None:
    if name is not None and (
        not isinstance(name, str)
        or not 0 < len(name) <= _LONGEST_CLIENT
        or not (name.isascii() and name.isprintable())
    ):
        raise InvalidInput(
            f"the name of a client must be 1 to {_LONGEST_CLIENT} printable ASCII characters, which every database has"
        )


def _is_unicode(name: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in name)
