"""What a deployment remembers, the protocol of whatever keeps it, and a ledger in memory."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from pacpredict.core.validate import FloatArray, Votes
from pacpredict.exceptions import LedgerConflict


@dataclass(frozen=True, eq=False, slots=True)
class State:
    """Everything that the next release depends on, except the secret."""

    sequence: int  # releases so far
    contested: int  # of which the models disagreed
    spent_steps: int
    log_belief: FloatArray = field(repr=False)
    step: float | None = None  # nats that one charged step stands for, once a session has recorded it

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

    def __repr__(self) -> str:
        return f"Entry(sequence={self.sequence}, charged_steps={self.charged_steps}, label={self.label})"


class Ledger(Protocol):
    """Keeps entries and the state after them, together or not at all.

    A session commits before it shows an answer. Implementations must refuse, with LedgerConflict and without
    writing anything, a commit that does not continue where they are: that another writer came first, or that
    an earlier commit went through although it seemed to fail, must never lead to two histories.
    """

    def load(self) -> State | None:
        """Return the state after the last entry, or None for a ledger that nothing was committed to."""

    def commit(self, entries: Sequence[Entry], state: State) -> None:
        """Append entries, numbered from the present sequence, and replace the state, atomically."""

    def entries(self) -> Iterator[Entry]:
        """Yield all entries in order."""


class MemoryLedger:
    """A ledger for sessions that end with the process: experiments, tests, notebooks."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._state: State | None = None
        self._lock = threading.Lock()

    def load(self) -> State | None:
        return self._state

    def commit(self, entries: Sequence[Entry], state: State) -> None:
        with self._lock:
            here = self._state.sequence if self._state else state.sequence - len(entries)
            check_continues(here, entries, state)
            self._entries += [_owned(entry) for entry in entries]
            self._state = state

    def entries(self) -> Iterator[Entry]:
        return iter(tuple(self._entries))


def _owned(entry: Entry) -> Entry:
    """Copy arrays that the caller could still change; those of a session are read-only."""
    question, noisy = entry.question, entry.noisy
    if question is not None and question.flags.writeable:
        entry = entry._replace(question=question.copy())
    if noisy is not None and noisy.flags.writeable:
        entry = entry._replace(noisy=noisy.copy())
    return entry


def check_continues(here: int, entries: Sequence[Entry], state: State) -> None:
    """Refuse entries that do not follow entry number `here` without a gap."""
    numbers = [entry.sequence for entry in entries]
    if state.sequence != here + len(numbers) or numbers != list(range(here + 1, state.sequence + 1)):
        raise LedgerConflict(
            f"the ledger holds {here} releases, but this session wanted to write "
            f"{numbers or 'none'} and end at {state.sequence}; "
            "another session writes to the same ledger. Nothing was released: start from the ledger's state"
        )
