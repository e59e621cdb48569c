"""What a deployment remembers, the protocol of whatever keeps it, and a ledger in memory."""

import os
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from pacpredict.core.vote_rule import VoteRule
from pacpredict.exceptions import LedgerConflict
from pacpredict.mechanism.allowance import Allowance
from pacpredict.types import FloatArray, Votes

# Called with the name of each step of a turn. Tests pass one that interrupts or kills the process there.
Failpoints = Callable[[str], None]

# How an answer came about: all models agreed, or a decoder read it off a noisy release, or it was the release itself
# ("sample"), or it was drawn from the belief without the secret; "vector" is a release of real outputs.
Kind = Literal["agreed", "argmax", "map", "sample", "belief", "vector"]


def nowhere(point: str) -> None:
    """Let every step pass."""


@dataclass(frozen=True, eq=False, slots=True)
class State:
    """Everything that the next release depends on, except the secret, and what binds it to its deployment."""

    sequence: int  # releases so far
    contested: int  # of which the models disagreed
    spent_steps: int
    log_belief: FloatArray = field(repr=False)
    # What a session that continues must have in common with the one that began; None if replayed from entries.
    step: float | None = None  # nats that one charged step stands for
    deployment: str | None = None  # the identity of the artifact whose secret this is about
    origin: bytes | None = field(default=None, repr=False)  # a digest of the prior and the number of classes
    total: float | None = None  # nats that the guarantee is for
    secret: bytes | None = field(default=None, repr=False)  # the secret's commitment
    noisy: int = 0  # releases with Gaussian noise: each of them may have passed the limit on odds

    def __post_init__(self) -> None:
        self.log_belief.setflags(write=False)


class Entry(NamedTuple):
    """One release as the ledger keeps it.

    For a contested query it holds the question (the votes, or real outputs) and the noisy coordinates that were
    released, if there were some, from which the noisy vector and the belief can be replayed. These never leave the
    ledger: only the label does.
    """

    sequence: int
    charged_steps: int
    label: int | None  # None for a release of real outputs
    kind: Kind
    question: Votes | FloatArray | None = None
    noisy: FloatArray | None = None
    digest: bytes | None = None  # of the canonical query; the same query is never answered twice
    client: str | None = None
    request: bytes | None = None  # digest of the request's id and client
    asked: bytes | None = None  # digest of all questions of that request
    votes: VoteRule = "plain"  # how the votes came from those of the models

    def __repr__(self) -> str:
        return f"Entry(sequence={self.sequence}, charged_steps={self.charged_steps}, label={self.label})"


class Answer(NamedTuple):
    """What was answered to a query that is asked again."""

    sequence: int
    label: int
    charged_steps: int = 0  # when it was given first


class Ledger(Protocol):
    """Keeps entries and the state after them, together or not at all, for all sessions of one deployment.

    Sessions in several threads, processes or hosts share a ledger by taking turns: whoever has the turn loads the
    state, releases, commits, and only then shows an answer. Implementations must refuse, with LedgerConflict and
    without writing anything, a commit that does not continue where they are, so that there are never two
    histories, whatever goes wrong with a turn.
    """

    def turn(self) -> AbstractContextManager[object]:
        """Wait for the exclusive right to continue the history. Leaving without a commit discards."""

    def load(self) -> State | None:
        """Return the state after the last entry, or None for a ledger that nothing was committed to.

        Returns the same object as long as nobody has committed.
        """

    def recall(self, digests: Collection[bytes]) -> dict[bytes, Answer]:
        """Look up which of these queries were answered; also outside a turn, without waiting for one."""

    def request(self, request: bytes) -> bytes | None:
        """Return what was asked with this (digest of an) id, if it was used; also outside a turn."""

    def allowances(self, clients: Collection[str]) -> dict[str, Allowance]:
        """Say, in a turn, what those of these clients may still be answered whose answers are limited."""

    def commit(self, entries: Sequence[Entry], state: State) -> None:
        """Append entries, numbered from the present sequence, and replace the state, atomically.

        Without entries, the state of a used ledger stays what it is. Outside a turn this takes one of its own.
        """

    def confirm(self, sequence: int) -> None:
        """Return once all releases up to this number are beyond being forgotten. No answer leaves before."""

    def keep_up(self) -> None:
        """See how far others have come, so as to notice a history that goes back."""

    def check(self) -> None:
        """Raise LedgerError if a release could not be recorded now."""

    def entries(self) -> Iterator[Entry]:
        """Yield all entries in order."""

    def close(self) -> None:
        """Let go of files and connections. All that was committed stays."""


class MemoryLedger:
    """A ledger for sessions that end with the process: experiments, tests, notebooks."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._state: State | None = None
        self._answers: dict[bytes, Answer] = {}
        self._requests: dict[bytes, bytes] = {}
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._is_closed = False

    def turn(self) -> AbstractContextManager[object]:
        self.check()
        return self._lock

    def load(self) -> State | None:
        return self._state

    def recall(self, digests: Collection[bytes]) -> dict[bytes, Answer]:
        known = self._answers
        return {digest: known[digest] for digest in digests if digest in known}

    def request(self, request: bytes) -> bytes | None:
        return self._requests.get(request)

    def allowances(self, clients: Collection[str]) -> dict[str, Allowance]:  # noqa: ARG002
        return {}  # it knows no keys

    def commit(self, entries: Sequence[Entry], state: State) -> None:
        with self._lock:
            self.check()
            check_continues(self._state, entries, state)
            answers = {
                entry.digest: Answer(entry.sequence, entry.label, entry.charged_steps)
                for entry in entries
                if entry.digest is not None and entry.label is not None
            }
            requests = {
                entry.request: entry.asked
                for entry in entries
                if entry.request is not None and entry.asked is not None
            }
            if answers or requests:
                self._check_new(answers, requests, entries)
            self._entries += [_owned(entry) for entry in entries]
            self._answers.update(answers)
            self._requests.update(requests)
            if entries or self._state is None:
                self._state = state

    def confirm(self, sequence: int) -> None:
        """Do nothing: the history ends with the process, and its answers with it."""

    def keep_up(self) -> None:
        """Do nothing: nobody else can be ahead."""

    def check(self) -> None:
        if self._is_closed:
            raise LedgerConflict(
                "this ledger was closed; the history may go on elsewhere. Nothing was released"
            )
        if (
            self._process != os.getpid()
        ):  # two processes that answer from one history would each spend all of it
            raise LedgerConflict(
                "this process was forked from the one that answers from this ledger, and a ledger in memory cannot be "
                "shared. Nothing was released: save the deployment, and let each process open the artifact"
            )

    def entries(self) -> Iterator[Entry]:
        return iter(tuple(self._entries))

    def close(self) -> None:
        """End the history here: nothing more is recorded, so nothing more is released."""
        self._is_closed = True

    def reopen(self) -> None:
        """Let the history go on here after all."""
        self._is_closed = False

    def _check_new(
        self, answers: dict[bytes, Answer], requests: dict[bytes, bytes], entries: Sequence[Entry]
    ) -> None:
        n_digests = sum(entry.digest is not None for entry in entries)
        is_repeated = len(answers) != n_digests or not self._answers.keys().isdisjoint(answers)
        if is_repeated or any(
            self._requests.get(request, asked) != asked for request, asked in requests.items()
        ):
            raise reuse_conflict()


def _owned(entry: Entry) -> Entry:
    """Copy arrays that the caller could still change; those of a session are read-only."""
    question, noisy = entry.question, entry.noisy
    if question is not None and question.flags.writeable:
        entry = entry._replace(question=question.copy())
    if noisy is not None and noisy.flags.writeable:
        entry = entry._replace(noisy=noisy.copy())
    return entry


def check_continues(here: State | None, entries: Sequence[Entry], state: State) -> None:
    """Refuse entries that do not follow the state `here` without a gap, or do not add up to the new one."""
    last = state.sequence - len(entries) if here is None else here.sequence
    follows, charges = True, 0
    for number, entry in enumerate(entries, last + 1):
        follows &= entry.sequence == number
        charges += entry.charged_steps
    if not follows or state.sequence != last + len(entries):
        raise LedgerConflict(
            f"the ledger holds {last} releases, but this session wanted to write "
            f"{[entry.sequence for entry in entries] or 'none'} and end at {state.sequence}; "
            "another session writes to the same ledger. Nothing was released: start from the ledger's state"
        )
    if here is not None and state.spent_steps != here.spent_steps + charges:
        raise LedgerConflict(
            f"the ledger has {here.spent_steps} charged steps and these entries add {charges}, which does not make "
            f"{state.spent_steps}. Nothing was released: start from the ledger's state"
        )


def reuse_conflict() -> LedgerConflict:
    return LedgerConflict(
        "a query or a request id of this commit is in the ledger already, with another answer or request. "
        "Nothing was released: look it up in the turn before answering"
    )
