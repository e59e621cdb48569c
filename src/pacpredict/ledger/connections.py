"""The two connections of a ledger in a database: one that writes, in turns, and one that reads meanwhile."""

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from pacpredict.exceptions import LedgerDamaged, LedgerError, LedgerUnavailable
from pacpredict.ledger.records import Row


class Connection(Protocol):
    """A connection that raises errors of this package; `?` stands for a value in each statement."""

    @property
    def in_transaction(self) -> bool: ...

    def is_current(self) -> bool:
        """Say whether it still leads to the ledger that it was made for."""

    def place(self) -> str:
        """Say which file or database server this is, however it is reached; a copy is at another place."""

    def begin(self) -> None:
        """Begin a transaction that excludes those of all other writers."""

    def settle(self) -> None:
        """Undo, in a transaction, or refuse, what code within the database may have made of what was written."""

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]: ...

    def run_many(self, statement: str, rows: Sequence[Row]) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...


def look_no_further() -> None:
    """Look at nothing more."""


class Connections:
    """Gives turns with a writer, and lends a reader without waiting for turns.

    Connections are made when they are needed. One that failed is given up, so that the next use makes a new one:
    service resumes when the cause is gone.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._turn_lock = threading.RLock()
        self._reader_lock = threading.Lock()
        self._writer: Connection | None = None
        self._reader: Connection | None = None
        self._owner: int | None = None  # the thread that has the turn
        self.n_made = 0  # how often it had to connect in order to write
        self._process = os.getpid()
        self._is_closed = False
        # Whoever forgets to close a ledger leaves no database open.
        self._held: list[Connection] = []
        weakref.finalize(self, _close_all, self._held)

    def writer(self) -> Connection | None:
        """Return the writer if this thread has a turn and has not committed yet."""
        if self._owner == threading.get_ident() and self._writer is not None and self._writer.in_transaction:
            return self._writer
        return None

    @contextmanager
    def turn(self, look: Callable[[], None] = look_no_further) -> Iterator[Connection]:
        """Begin a transaction that excludes all other writers; what is not committed in it is discarded.

        `look` is called when it has begun; what it raises ends the turn.
        """
        self._check_process()  # before any lock, which a thread of the other process may have held
        with self._turn_lock:
            self._check_usable()
            try:
                writer = self._begin()
                self._owner = threading.get_ident()
                look()
                yield writer
            except (LedgerUnavailable, LedgerDamaged):
                self._give_up_writer()
                raise
            finally:
                self._owner = None
                self._discard()

    def read(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Read in the turn, if this thread has one, and otherwise without waiting for the turns of others."""
        if (writer := self.writer()) is not None:
            return writer.run(statement, values)
        self._check_process()
        with self._reader_lock:
            self._check_usable()
            try:
                return self._read(statement, values)
            except (LedgerUnavailable, LedgerDamaged):
                self._give_up_reader()
                raise

    def close(self) -> None:
        if self._process != os.getpid():  # what is open belongs to the other process
            return
        with self._turn_lock, self._reader_lock:
            self._is_closed = True
            self._give_up_writer()
            self._give_up_reader()

    def _check_usable(self) -> None:
        if self._is_closed:
            raise LedgerError("this ledger was closed; open it again")

    def _check_process(self) -> None:
        if self._process != os.getpid():  # a database connection must not be carried into another process
            raise LedgerError(
                "this ledger was opened before the process forked; open it again after the fork"
            )

    def _begin(self) -> Connection:
        """Begin a transaction; a connection that was lost since it was last used is made anew."""
        if self._writer is not None and self._writer.is_current():
            try:
                self._writer.begin()
            except LedgerUnavailable:
                if self._writer.is_current():
                    raise
            else:
                return self._writer
        self._give_up_writer()
        self._writer = self._connect()
        self.n_made += 1
        self._held.append(self._writer)
        self._writer.begin()
        return self._writer

    def _read(self, statement: str, values: Sequence[Any]) -> list[Row]:
        if self._reader is not None and self._reader.is_current():
            try:
                return self._reader.run(statement, values)
            except LedgerUnavailable:
                if self._reader.is_current():
                    raise
        self._give_up_reader()
        self._reader = self._connect()
        self._held.append(self._reader)
        return self._reader.run(statement, values)

    def _discard(self) -> None:
        if self._writer is not None and self._writer.in_transaction:
            try:
                self._writer.rollback()
            except LedgerError:  # without the connection the database discards by itself
                self._give_up_writer()

    def _give_up_writer(self) -> None:
        if self._writer is not None:
            self._held.remove(self._writer)
            self._writer.close()
        self._writer = None

    def _give_up_reader(self) -> None:
        if self._reader is not None:
            self._held.remove(self._reader)
            self._reader.close()
        self._reader = None


def _close_all(held: list[Connection]) -> None:
    for connection in held:
        connection.close()
