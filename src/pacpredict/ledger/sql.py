"""What ledgers in SQL databases have in common: a turn is a transaction, and a commit ends it."""

import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from pacpredict.exceptions import ForeignLedger, LedgerConflict, LedgerDamaged, LedgerUnavailable
from pacpredict.ledger.closing import Closing
from pacpredict.ledger.connections import Connection, Connections
from pacpredict.ledger.records import COLUMNS, Record, Row, first_link, from_row, to_rows
from pacpredict.ledger.schema import MIGRATIONS, Migration
from pacpredict.mechanism.ledger import (
    NO_REQUESTS,
    Answer,
    Entry,
    Failpoints,
    State,
    check_continues,
    nowhere,
)

# After a connection was lost during a commit: how long to try to find out what became of it.
_INQUIRY_S = 5.0

# Queries looked up by one statement, and records read by one.
_PAGE = 500

_HEAD = "SELECT ledger, deployment, moved_to, chain, sequence FROM state"
_STATE = "SELECT sequence, contested, spent_steps, log_belief, step, origin, chain FROM state"
_UPDATE = (
    "UPDATE state SET sequence = ?, contested = ?, spent_steps = ?, log_belief = ?, step = ?, origin = ?, "
    "chain = ?"
)
# In one statement, so that no commit comes between.
_END = (
    "SELECT ledger, deployment, state.sequence, state.chain, records.sequence, records.chain FROM state "
    "LEFT JOIN records ON records.sequence = (SELECT max(sequence) FROM records)"
)
_NAMES, _MARKS = ", ".join(COLUMNS), ", ".join("?" * len(COLUMNS))
_INSERT = f"INSERT INTO records ({_NAMES}) VALUES ({_MARKS})"  # noqa: S608  # all of it is written here
_READ = f"SELECT {_NAMES} FROM records WHERE sequence > ? AND sequence <= ? ORDER BY sequence LIMIT ?"  # noqa: S608
_CHAIN_AT = "SELECT chain FROM records WHERE sequence = ?"
_RECALL = "SELECT digest, sequence, label FROM records WHERE digest IN ({})"
# An id that is there with another digest would become NULL, which its column does not take.
_NOTE = (
    "INSERT INTO requests (id, digest) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET digest = "
    "CASE WHEN requests.digest = excluded.digest THEN excluded.digest END"
)
_FOUND = "INSERT INTO state (one, ledger, deployment, created, chain) VALUES (1, ?, ?, ?, ?)"


class Head(NamedTuple):
    """Whose ledger this is and where it stands."""

    ledger: str
    deployment: str | None
    moved_to: str | None
    chain: bytes
    sequence: int | None  # None before the first commit


def found_ledger(connection: Connection, deployment: str | None) -> None:
    """Give a ledger with empty tables its identity, in a transaction of the caller."""
    ledger_id = uuid.uuid4().hex
    connection.run(_FOUND, (ledger_id, deployment, _now(), first_link(ledger_id, deployment)))


class SqlLedger(Closing):
    """A ledger in a database that threads, and processes with a ledger object each, may share."""

    kind: str  # of database
    # Whether a commit that was lost on the way may be found to have happened. Not where the ledger itself could not
    # write it: what can then be read may not be on disk.
    asks_after_lost_commits = False
    migrations: Sequence[Migration] = MIGRATIONS

    def __init__(self, deployment: str | None, at: Failpoints = nowhere) -> None:
        self.deployment = deployment
        self._at = at
        self._kept: tuple[bytes, State] | None = None  # the last state that was seen, and its chain value
        self._connections = Connections(self._open)
        self.id = ""  # not known before it was opened once
        self._head = self.head()  # in a turn, where it began
        self.id = self._head.ledger

    @property
    def location(self) -> str:
        """Where it is, without anything that gives access."""
        raise NotImplementedError

    def _connect(self) -> Connection:
        """Connect to the database, with the tables up to date."""
        raise NotImplementedError

    @contextmanager
    def turn(self) -> Iterator[None]:
        with self.exclusively() as (_, head):
            if head.moved_to is not None:
                raise LedgerConflict(
                    f"the ledger at {self.location} is continued at {head.moved_to}. Nothing was released: use that one"
                )
            yield

    @contextmanager
    def exclusively(self) -> Iterator[tuple[Connection, Head]]:
        """Take a turn even if the ledger has moved: for moving it."""
        with self._connections.turn() as writer:
            self._head = read_head(writer)
            yield writer, self._head

    def load(self) -> State | None:
        head = self.head() if self._connections.writer() is None else self._head
        kept = self._kept
        if kept is not None and kept[0] == head.chain:
            return kept[1]
        ((sequence, contested, spent, log_belief, step, origin, chain),) = self._connections.read(_STATE)
        if sequence is None:
            return None
        belief = np.frombuffer(log_belief, "<f8").astype(np.float64)
        state = State(sequence, contested, spent, belief, step, self.deployment, origin)
        self._kept = chain, state
        return state

    def recall(self, digests: Collection[bytes]) -> dict[bytes, Answer]:
        wanted = list(digests)
        found: dict[bytes, Answer] = {}
        for start in range(0, len(wanted), _PAGE):
            page = wanted[start : start + _PAGE]
            rows = self._connections.read(_RECALL.format(", ".join("?" * len(page))), page)
            found.update({digest: Answer(sequence, label) for digest, sequence, label in rows})
        return found

    def request(self, request_id: str) -> bytes | None:
        rows = self._connections.read("SELECT digest FROM requests WHERE id = ?", (request_id,))
        return rows[0][0] if rows else None

    def commit(
        self, entries: Sequence[Entry], state: State, requests: Mapping[str, bytes] = NO_REQUESTS
    ) -> None:
        writer = self._connections.writer()
        if writer is None:
            with self.turn():
                self.commit(entries, state, requests)
            return
        here = self.load()
        check_continues(here, entries, state)
        self._check_deployment(state.deployment)
        self._write(writer, entries, state, requests, is_first=here is None)

    def _write(
        self,
        writer: Connection,
        entries: Sequence[Entry],
        state: State,
        requests: Mapping[str, bytes],
        *,
        is_first: bool,
    ) -> None:
        chain = self._head.chain
        charged = sum(entry.charged_steps for entry in entries)
        rows = list(to_rows(entries, state.spent_steps - charged, _now(), chain))
        self._at("before-insert")
        if rows:
            chain = rows[-1][COLUMNS.index("chain")]
            writer.run_many(_INSERT, rows)
        if rows or is_first:
            log_belief = state.log_belief.astype("<f8", copy=False).tobytes()
            counts = state.sequence, state.contested, state.spent_steps
            writer.run(_UPDATE, (*counts, log_belief, state.step, state.origin, chain))
        if requests:
            writer.run_many(_NOTE, list(requests.items()))
        self._at("after-insert")
        self._at("before-commit")
        try:
            writer.commit()
        except LedgerUnavailable:
            if not (rows and self.asks_after_lost_commits and self._is_on_record(state.sequence, chain)):
                raise
        self._at("after-commit")
        if rows or is_first:
            self._kept = chain, state

    def _is_on_record(self, sequence: int, chain: bytes) -> bool:
        """Find out, over a new connection, whether a commit went through: its chain value is there or not."""
        deadline = time.monotonic() + _INQUIRY_S
        while True:
            try:
                connection = self._connect()
                try:
                    connection.begin()  # waits until the lost transaction has ended, one way or the other
                    return connection.run(_CHAIN_AT, (sequence,)) == [(chain,)]
                finally:
                    connection.close()
            except LedgerUnavailable:
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.1)

    def entries(self) -> Iterator[Entry]:
        return (record.entry for record in self.records())

    def records(self, until: int | None = None) -> Iterator[Record]:
        """Yield the records in order, up to a number; by default those that are there now."""
        last, end = -1, self.head().sequence if until is None else until
        while end is not None and last < end and (rows := self._connections.read(_READ, (last, end, _PAGE))):
            yield from map(from_row, rows)
            last = rows[-1][0]

    def head(self) -> Head:
        return _head(self._connections.read(_HEAD))

    def chain_at(self, sequence: int) -> bytes | None:
        """Return the chain value of a record, if it is there."""
        rows = self._connections.read(_CHAIN_AT, (sequence,))
        return rows[0][0] if rows else None

    def close(self) -> None:
        self._connections.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location!r})"

    def _open(self) -> Connection:
        """Connect, and refuse what is not the ledger that it should be."""
        connection = self._connect()
        try:
            head = read_head(connection)
            self._check_deployment(head.deployment)
            self._check_id(head.ledger)
            self._check_end(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_deployment(self, deployment: str | None) -> None:
        if deployment != self.deployment:
            raise ForeignLedger(
                f"the ledger at {self.location} and what uses it belong to different deployments "
                f"({deployment or 'none'} and {self.deployment or 'none'}): each deployment has a ledger of its own"
            )

    def _check_id(self, ledger_id: str) -> None:
        if self.id not in ("", ledger_id):
            raise ForeignLedger(
                f"at {self.location} there is another ledger than before. Nothing was released: bring the right "
                "one back"
            )

    def _check_end(self, connection: Connection) -> None:
        """Refuse a ledger whose records do not end where its state says."""
        ((ledger_id, deployment, sequence, chain, last, last_chain),) = connection.run(_END)
        if last is None and chain != first_link(ledger_id, deployment):
            problem = f"its state is at {sequence} and its records are gone"
        elif last is not None and (last, last_chain) != (sequence, chain):
            problem = f"its records end at {last} and its state is at {sequence}"
        else:
            return
        raise LedgerDamaged(
            f"the ledger at {self.location} is damaged: {problem}. Restore the latest backup; an older one would "
            "forget what was released since"
        )


def read_head(connection: Connection) -> Head:
    return _head(connection.run(_HEAD))


def _head(rows: Sequence[Row]) -> Head:
    if len(rows) != 1:
        raise LedgerDamaged("the ledger has lost its state; restore the latest backup")
    return Head(*rows[0])


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
