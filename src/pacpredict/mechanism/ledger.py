"""What a deployment remembers, the protocol of whatever keeps it, and a ledger in memory."""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Protocol

from pacpredict.core.validate import FloatArray, Votes
from pacpredict.exceptions import LedgerConflict

# Called with the name of each step of a turn. Tests pass one that interrupts or kills the process there.
Failpoints = Callable[[str], None]

NO_REQUESTS: Mapping[str, bytes] = MappingProxyType({})


def nowhere(point: str) -> None:
    """Let every step pass."""


@dataclass(frozen=True, eq=False, slots=True)
class State:
    """Everything that the next release depends on, except the secret, and what binds it to its deployment."""

    sequence: int  # releases so far
    contested: int  # of which the models disagreed
    spent_steps: int
    log_belief: FloatArray = field(repr=False)
    step: float | None = None  # nats that one charged step stands for, once a session has recorded it
    deployment: str | None = None  # the identity of the artifact whose secret this is about
    origin: bytes | None = field(default=None, repr=False)  # a digest of the prior and the number of classes

    def __post_init__(self) -> None:
        self.log_belief.setflags(write=False)


class Entry(NamedTuple):
    """One release as the ledger keeps it.

    For a contested query it holds the question (the votes, or real outputs) and the noisy coordinates that were
    released, from which the noisy vector and the belief can be replayed. These never leave the ledger: only the
    label does.
    """

    sequence: int
    charged_steps: int
    label: int | None  # None for a release of real outputs
    question: Votes | FloatArray | None = None
    noisy: FloatArray | None = None
    digest: bytes | None = None  # of the canonical query; the same query is never answered twice
    id: str | None = None  # of the request, chosen by the client
    client: str | None = None

    def __repr__(self) -> str:
        return f"Entry(sequence={self.sequence}, charged_steps={self.charged_steps}, label={self.label})"


class Answer(NamedTuple):
    """What was answered to a query that is asked again."""

    sequence: int
    label: int


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

    def request(self, request_id: str) -> bytes | None:
        """Return the digest of the request that used this id, if there was one."""

    def commit(
        self, entries: Sequence[Entry], state: State, requests: Mapping[str, bytes] = NO_REQUESTS
    ) -> None:
        """Append entries, numbered from the present sequence, replace the state and note request ids, atomically.

        Without entries, the state of a used ledger stays what it is. Outside a turn this takes one of its own.
        """

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
        self._requests: dict[str, bytes] = {}
        self._lock = threading.RLock()
        self._is_closed = False

    def turn(self) -> AbstractContextManager[object]:
        return self._lock

    def load(self) -> State | None:
        return self._state

    def recall(self, digests: Collection[bytes]) -> dict[bytes, Answer]:
        known = self._answers
        return {digest: known[digest] for digest in digests if digest in known}

    def request(self, request_id: str) -> bytes | None:
        return self._requests.get(request_id)

    def commit(
        self, entries: Sequence[Entry], state: State, requests: Mapping[str, bytes] = NO_REQUESTS
    ) -> None:
        with self._lock:
            if self._is_closed:
                raise LedgerConflict(
                    "this ledger was closed; the history may go on elsewhere. Nothing was released"
                )
            check_continues(self._state, entries, state)
            answers = {
                entry.digest: Answer(entry.sequence, entry.label)
                for entry in entries
                if entry.digest is not None and entry.label is not None
            }
            if answers:
                self._check_new(answers, entries)
            if requests:
                self._note(requests)
            self._entries += [_owned(entry) for entry in entries]
            if answers:
                self._answers.update(answers)
            if entries or self._state is None:
                self._state = state

    def entries(self) -> Iterator[Entry]:
        return iter(tuple(self._entries))

    def close(self) -> None:
        """End the history here: nothing more is recorded, so nothing more is released."""
        self._is_closed = True

    def _note(self, requests: Mapping[str, bytes]) -> None:
        if any(self._requests.get(name, digest) != digest for name, digest in requests.items()):
            raise reuse_conflict()
        self._requests.update(requests)

    def _check_new(self, answers: Mapping[bytes, Answer], entries: Sequence[Entry]) -> None:
        n_digests = sum(entry.digest is not None for entry in entries)
        if len(answers) != n_digests or not self._answers.keys().isdisjoint(answers):
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
