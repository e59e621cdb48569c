"""What ledgers in SQL databases have in common: a turn is a transaction, and a commit ends it.

Whatever is read is checked against the key when it is read. The object remembers the last link of the history that it
has seen, and adopts no head that does not contain it: a database that goes back, by a restored copy or a failover to a
standby that lagged behind, is refused.
"""

import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import NamedTuple, Self

from pacpredict.exceptions import ForeignLedger, LedgerConflict, LedgerDamaged, LedgerUnavailable
from pacpredict.ledger import head as heads
from pacpredict.ledger.connections import Connection, Connections, look_no_further
from pacpredict.ledger.ending import check_end, damaged
from pacpredict.ledger.head import Head
from pacpredict.ledger.history import CHAIN_AT, History
from pacpredict.ledger.keys import ANY, count_use, find_by
from pacpredict.ledger.records import CHAIN, COLUMNS, Row, first_link, to_rows
from pacpredict.mechanism.allowance import Allowance
from pacpredict.mechanism.ledger import Entry, Failpoints, State, check_continues, nowhere

# After a connection was lost during a commit: how long to try to find out what became of it.
_INQUIRY_S = 5.0

_HEAD = f"SELECT {', '.join(heads.COLUMNS)} FROM state"  # noqa: S608  # all of it is written here
_UPDATE = "UPDATE state SET " + ", ".join(f"{column} = ?" for column in heads.COLUMNS)  # noqa: S608
_FOUND = (
    f"INSERT INTO state (one, {', '.join(heads.COLUMNS)}) VALUES (1, {', '.join('?' * len(heads.COLUMNS))})"  # noqa: S608
)
_NAMES, _MARKS = ", ".join(COLUMNS), ", ".join("?" * len(COLUMNS))
_INSERT = f"INSERT INTO records ({_NAMES}) VALUES ({_MARKS})"  # noqa: S608

# What a turn has written: the chain of the state, that of a record, and how many records come after another. There are
# no more than the limit, which tells PostgreSQL not to read all of a table of which it has no statistics yet.
WRITTEN = (
    "SELECT chain, (SELECT records.chain FROM records WHERE sequence = ?), "
    "(SELECT count(*) FROM (SELECT sequence FROM records WHERE sequence > ? ORDER BY sequence LIMIT ?) AS newest) "
    "FROM state"
)


class Link(NamedTuple):
    """A point of a history: whoever knows its chain value knows everything up to it."""

    sequence: int
    chain: bytes


def found_ledger(connection: Connection, key: bytes, deployment: str | None) -> None:
    """Give a ledger with empty tables its identity, in a transaction of the caller."""
    ledger_id = uuid.uuid4().hex
    head = Head(ledger_id, deployment, _now(), None, first_link(key, ledger_id, deployment), None)
    connection.run(_FOUND, heads.to_row(key, head))


class SqlLedger(History):
    """A ledger in a database that threads, and processes with a ledger object each, may share.

    `key` protects the history: the same at every opening, and known to nobody who may only write to the database.
    """

    kind: str  # of database
    # Whether a commit that was lost on the way may be found to have happened. Not where the ledger itself could not
    # write it: what can then be read may not be on disk.
    asks_after_lost_commits = False

    def __init__(self, key: bytes, deployment: str | None, at: Failpoints = nowhere) -> None:
        self.deployment = deployment
        self.key = key
        self._at = at
        self._kept: tuple[bytes, State] | None = None  # the last state that was seen, and its chain value
        self._genuine: tuple[Row, Head] | None = None  # the last row of the state whose MAC was right
        self._connections = Connections(self.connect)
        self._seen: Link | None = None
        self._seen_lock = threading.Lock()
        self.place = ""  # which file or database server it is, not known before it was opened once
        self.may_fail_over = False  # to another server: an anchor sees to it that nothing gets lost
        self.id = ""
        self._head = self.head()  # in a turn, where it began
        self.id = self._head.ledger

    def _connect(self) -> Connection:
        """Connect to a database whose tables have the format of this version."""
        raise NotImplementedError

    def database(self) -> str | None:
        """Name the database of a server that it is in, however that is reached; None for a file."""
        return None

    @property
    def n_connections(self) -> int:
        """How often it had to connect in order to write: a database that goes back loses its connections."""
        return self._connections.n_made

    @property
    def seen(self) -> Link:
        """The farthest point of the history that was seen here."""
        return self._seen or Link(0, b"")

    def turn(self, look: Callable[[], None] = look_no_further) -> AbstractContextManager[object]:
        """Take a turn, unless the ledger has moved; `look` is called when it has begun, and may refuse it."""

        def begin() -> None:
            self._head = self.head()
            self.check_is_here(self._head)
            look()

        return self._connections.turn(begin)

    @contextmanager
    def exclusively(self) -> Iterator[tuple[Connection, Head]]:
        """Take a turn even if the ledger has moved: for moving it."""
        with self._connections.turn() as writer:
            self._head = self.head()
            yield writer, self._head

    def load(self) -> State | None:
        head = self.head() if self._connections.writer() is None else self._head
        kept = self._kept
        if kept is not None and kept[0] == head.chain:
            return kept[1]
        if head.state is not None:
            self._kept = head.chain, head.state
        return head.state

    def allowances(self, clients: Collection[str]) -> dict[str, Allowance]:
        state = self.load()
        if state is None or state.step is None:
            return {}
        found = find_by("name", clients, self._connections.read, self.key)
        allowed = {key.terms.name: key.allowance(state.step) for key in found}
        return {name: allowance for name, allowance in allowed.items() if allowance is not None}

    def has_keys(self) -> bool:
        """Tell whether any client was ever given a key: revoked ones stay."""
        return bool(self._connections.read(ANY))

    def commit(self, entries: Sequence[Entry], state: State) -> None:
        writer = self._connections.writer()
        if writer is None:
            with self.turn():
                self.commit(entries, state)
            return
        here = self.load()
        check_continues(here, entries, state)
        self._check_deployment(state.deployment)
        if entries or here is None:
            self._write(writer, entries, state)

    def _write(self, writer: Connection, entries: Sequence[Entry], state: State) -> None:
        charged = sum(entry.charged_steps for entry in entries)
        before = self._head.chain
        rows = list(to_rows(self.key, entries, state.spent_steps - charged, _now(), before))
        head = self._head._replace(chain=rows[-1][CHAIN] if rows else before, state=state)
        self._at("before-insert")
        if rows:
            writer.run_many(_INSERT, rows)
            count_use(entries, writer.run)
        self.write_head(writer, head)
        self._check_written(writer, head, len(rows))
        self._at("after-insert")
        self._at("before-commit")
        try:
            writer.commit()
        except LedgerUnavailable:
            if not (rows and self.asks_after_lost_commits and self._is_on_record(state.sequence, head.chain)):
                raise
        self._at("after-commit")
        self._kept = head.chain, state
        self._remember(Link(head.sequence, head.chain))

    def _check_written(self, writer: Connection, head: Head, n_rows: int) -> None:
        """Refuse to go on if the database did not keep what it was given, as with a trigger that somebody put there."""
        writer.settle()
        # One more than there should be is enough to notice any number of them.
        ((state, chain, n),) = writer.run(WRITTEN, (head.sequence, head.sequence - n_rows, n_rows + 1))
        if bytes(state) != head.chain or n != n_rows or (n_rows and bytes(chain or b"") != head.chain):
            raise damaged(self.location, "it does not keep what is written to it. Nothing was released")

    def write_head(self, writer: Connection, head: Head) -> None:
        """Replace the state, under its MAC, in a turn."""
        row = heads.to_row(self.key, head)
        writer.run(_UPDATE, row)
        self._genuine = row, head

    def _is_on_record(self, sequence: int, chain: bytes) -> bool:
        """Find out, over a new connection, whether a commit went through: its chain value is there or not."""
        deadline = time.monotonic() + _INQUIRY_S
        while True:
            try:
                connection = self._connect()
                try:
                    connection.begin()  # waits until the lost transaction has ended, one way or the other
                    is_there = connection.run(CHAIN_AT, (sequence,)) == [(chain,)]
                    # A later commit is confirmed by a synchronous standby only with all that came before it.
                    connection.run("UPDATE state SET one = one")
                    connection.commit()
                    return is_there
                finally:
                    connection.close()
            except LedgerUnavailable:
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.1)

    def head(self) -> Head:
        """Read where the ledger stands; refuse to believe it if it does not continue what was seen before."""
        seen = self._seen  # before reading: another thread may go on meanwhile
        head = self._head_of(self._connections.read(_HEAD))
        if seen is not None and head.chain != seen.chain:
            self.check_contains(seen, head)
        self._remember(Link(head.sequence, head.chain))
        return head

    def check_contains(self, link: Link, head: Head | None = None) -> None:
        """Raise LedgerConflict unless the history of this ledger goes through a point that was seen."""
        head = head or self.head()
        if head.sequence < link.sequence:
            raise LedgerConflict(
                f"the ledger at {self.location} holds {head.sequence} releases, but {link.sequence} were on record "
                "before: it was replaced by an older copy, or its database fell back to one. What it has forgotten was "
                "released all the same. Nothing was released now: bring the latest one back"
            )
        if self.chain_at(link.sequence) != link.chain:
            raise LedgerConflict(
                f"the ledger at {self.location} tells another history from some release before {link.sequence} on: two "
                "copies of it were in use. Nothing was released: bring the one back that was seen"
            )

    def confirm(self, sequence: int) -> None:
        """Do nothing: what was committed is on disk. That the disk is not turned back is for a witness to see."""

    def keep_up(self) -> None:
        self.head()

    def check(self) -> None:
        """Write the state as it is, and sync it: what a release needs."""
        with self.exclusively() as (writer, head):
            self.check_is_here(head)
            self.write_head(writer, head)
            writer.commit()

    def check_is_here(self, head: Head) -> None:
        if head.moved_to is not None:
            raise LedgerConflict(
                f"the ledger at {self.location} is continued at {head.moved_to}. Nothing was released: use that one"
            )

    def close(self) -> None:
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location!r})"

    def _remember(self, link: Link) -> None:
        with self._seen_lock:
            if self._seen is None or link.sequence >= self._seen.sequence:
                self._seen = link

    def _head_of(self, rows: Sequence[Row]) -> Head:
        if len(rows) != 1:
            raise LedgerDamaged("the ledger has lost its state; restore the latest backup")
        genuine = self._genuine
        if genuine is None or genuine[0] != rows[0]:  # the very bytes of one that was genuine are so again
            genuine = self._genuine = rows[0], heads.from_row(self.key, rows[0], self.location)
        return genuine[1]

    def connect(self) -> Connection:
        """Connect, and refuse what is not the ledger that it should be."""
        connection = self._connect()
        try:
            head = self._head_of(connection.run(_HEAD))
            self._check_deployment(head.deployment)
            self._check_id(head.ledger)
            check_end(connection, self.key, self.location)
            self._check_place(connection.place())
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

    def _check_place(self, place: str) -> None:
        """Notice that the file or the database server was exchanged while the ledger was open."""
        if self.place not in ("", place) and not self.may_fail_over:
            raise LedgerConflict(
                f"the ledger at {self.location} was exchanged while it was in use (it is {place} now, it was "
                f"{self.place}): another copy may be in use, or releases may be missing. Nothing was released: bring "
                "the one back that was used, or stop and say `pacpredict ledger moved`"
            )
        self.place = place


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
