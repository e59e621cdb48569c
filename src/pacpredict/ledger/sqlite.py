"""A ledger in one SQLite file, for one host: any number of processes may use it at once."""

import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from pacpredict.exceptions import LedgerDamaged, LedgerError, LedgerUnavailable
from pacpredict.files import DRAFT_SUFFIX, sync_directory
from pacpredict.ledger.connections import Connection
from pacpredict.ledger.ending import damaged
from pacpredict.ledger.records import Row
from pacpredict.ledger.schema import SQLITE, check_version, make_tables
from pacpredict.ledger.sql import SqlLedger, found_ledger
from pacpredict.mechanism.ledger import Failpoints, nowhere, reuse_conflict

# How long a turn waits for that of another process. A commit takes milliseconds; a backup may take seconds.
_PATIENCE_S = 30.0

# Rows that one statement inserts: other threads go on in between, which takes longer than to insert a row. Many are
# inserted in groups of these sizes, the largest first, and what remains at once. All of these statements are kept.
_ROWS_AT_ONCE = (512, 64)
_STATEMENTS_KEPT = 128

# Pages that the write-ahead log has before they are brought into the file, 16 MB: a page of the index of digests that
# is written twice meanwhile is brought there once. With the 1,000 of SQLite commits took a tenth to a fifth more time.
_PAGES_OF_LOG = 4000

# Memory for pages, in kB: a turn with a thousand rows changes as many pages of the index of digests. With the 2,000 of
# SQLite they were written to the log before the commit and read again, a tenth of such a turn.
_MEMORY_KB = 16_000

T = TypeVar("T")


class SqliteLedger(SqlLedger):
    """A ledger in a file, mode 0600. A missing file is created, unless `create` says that it must be there.

    Commits are in a write-ahead log and synced before they return. A network file system does not lock well enough
    for this; use PostgreSQL for several hosts.
    """

    kind = "sqlite"

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        key: bytes,
        deployment: str | None = None,
        create: bool = True,
        patience_s: float = _PATIENCE_S,
        at: Failpoints = nowhere,
    ) -> None:
        self._path = Path(path).absolute()
        self._patience_s = patience_s
        if create and not self._path.exists():
            make_file(self._path, lambda draft: found_ledger(draft, key, deployment))
        super().__init__(key, deployment, at)

    @property
    def location(self) -> str:
        return str(self._path)

    def _connect(self) -> "SqliteConnection":
        connection = SqliteConnection(self._path, self._patience_s)
        try:
            check_version(connection.run, self.location)
        except BaseException:
            connection.close()
            raise
        return connection


class SqliteConnection:
    def __init__(self, path: Path, patience_s: float) -> None:
        self._path = path
        # Texts, as is cheapest: they are looked at before every statement.
        self._name, self._log_name = str(path), f"{path}-wal"
        self._patience_s = patience_s
        self._file = self._identify()
        self._place = self._identify_place()
        self._log: int | None = None
        try:
            # Transactions are begun by hand; the locks of Connections see to it that one thread uses it at a time.
            self._sqlite = sqlite3.connect(
                f"file:{quote(str(path))}?mode=rw",
                uri=True,
                timeout=patience_s,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=_STATEMENTS_KEPT,
            )
        except sqlite3.Error as problem:
            raise self._explain(problem) from problem
        try:
            self.run("PRAGMA journal_mode = WAL")
            self.run("PRAGMA synchronous = FULL")
            self.run(f"PRAGMA wal_autocheckpoint = {_PAGES_OF_LOG}")
            self.run(f"PRAGMA cache_size = -{_MEMORY_KB}")
            # If a sync failed before, what it should have written is now written elsewhere, and synced again.
            self.run("PRAGMA wal_checkpoint(PASSIVE)")
        except BaseException:
            self.close()
            raise

    @property
    def in_transaction(self) -> bool:
        return self._sqlite.in_transaction

    def is_current(self) -> bool:
        """Notice that the file, or the log beside it, was deleted or replaced: nobody would read what is written."""
        log = self._identify_log()
        self._log = self._log or log
        return self._file == self._identify() and self._log == log

    def place(self) -> str:
        """Name the file and its directory by their inodes, which a rename keeps and a copy does not.

        A hard link is the same file in another directory, where SQLite would keep another log beside it.
        """
        return self._place

    def begin(self) -> None:
        self.run("BEGIN IMMEDIATE")

    def settle(self) -> None:
        """Do nothing: whatever code could have run, `commit` refuses."""

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        try:
            return self._sqlite.execute(statement, values).fetchall()
        except sqlite3.Error as problem:
            raise self._explain(problem) from problem

    def run_many(self, statement: str, rows: Sequence[Row]) -> None:
        try:
            for group in _grouped(rows):
                self._sqlite.execute(_widen(statement, len(group)), list(chain.from_iterable(group)))
        except sqlite3.Error as problem:
            raise self._explain(problem) from problem

    def commit(self) -> None:
        """Commit, unless there are triggers: what they make of rows cannot all be read back.

        Whoever can write to the file can also write "TRIGGER", which SQLite takes for the same.
        """
        if self.run("SELECT 1 FROM sqlite_schema WHERE type NOT IN ('table', 'index', 'view') LIMIT 1"):
            raise damaged(
                self._name,
                "it has a trigger, and so does not keep what is written to it. Nothing was released: remove it",
            )
        self.run("COMMIT")

    def rollback(self) -> None:
        self.run("ROLLBACK")

    def close(self) -> None:
        self._sqlite.close()

    def _identify_log(self) -> int | None:
        """Name the write-ahead log, which is there as long as somebody has the database open."""
        try:
            return os.stat(self._log_name).st_ino  # noqa: PTH116
        except OSError:
            return None

    def _identify(self) -> tuple[int, int]:
        found = self._look(os.stat)
        return found.st_dev, found.st_ino

    def _identify_place(self) -> str:
        directory, file_system = self._look(lambda _: self._path.parent.stat()), self._look(os.statvfs)
        return f"file {self._file[1]} in directory {directory.st_ino} on {file_system.f_fsid:x}"

    def _look(self, look: Callable[[str], T]) -> T:
        try:
            return look(self._name)
        except FileNotFoundError as problem:
            raise LedgerUnavailable(
                f"there is no ledger at {self._path}. If it was moved or its disk is not mounted, bring it back; "
                "from a backup with all releases `pacpredict ledger restore` makes it anew. Without it nobody knows "
                "what was released, so nothing more can be"
            ) from problem
        except OSError as problem:
            raise LedgerUnavailable(
                f"the ledger at {self._path} cannot be reached ({problem.strerror})"
            ) from problem

    def _explain(self, problem: sqlite3.Error) -> LedgerError:
        """Say what to do about an error of SQLite, by its primary code."""
        # Python itself finds texts that are not UTF-8.
        is_text = isinstance(problem, sqlite3.OperationalError)
        uncoded = sqlite3.SQLITE_CORRUPT if is_text else sqlite3.SQLITE_MISUSE
        code = getattr(problem, "sqlite_errorcode", uncoded) & 0xFF
        what = f"the ledger at {self._path}"
        match code:
            case sqlite3.SQLITE_CONSTRAINT:
                return reuse_conflict()
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return LedgerUnavailable(
                    f"{what} was locked by another process for more than {self._patience_s:g} s; try again when "
                    "that one has finished"
                )
            case sqlite3.SQLITE_FULL:
                return LedgerUnavailable(
                    f"{what} cannot grow: the disk is full. Free some space and try again"
                )
            case (
                sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_AUTH
            ):
                return LedgerUnavailable(
                    f"{what} cannot be opened for writing ({problem}); check the permissions of the file and of its "
                    "directory, and that the disk is mounted for writing"
                )
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_ERROR:
                return LedgerDamaged(
                    f"{what} is no ledger or is damaged ({problem}). Restore the latest backup; an older one would "
                    "forget what was released since"
                )
        return LedgerUnavailable(
            f"{what} could not be read or written ({problem}); check the disk and try again"
        )


def _grouped(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Split rows into groups that are inserted at once."""
    start = 0
    while start < len(rows):
        left = len(rows) - start
        size = next((size for size in _ROWS_AT_ONCE if size <= left), left)
        yield rows[start : start + size]
        start += size


@cache
def _widen(statement: str, n_rows: int) -> str:
    """Let the insertion of a row be one of several.

    What fails is discarded with its transaction, so SQLite need not be able to take one statement back.
    """
    insertion, values, row = statement.rpartition(" VALUES ")
    return f"{insertion.replace('INSERT', 'INSERT OR FAIL', 1)}{values}{', '.join([row] * n_rows)}"


def make_file(path: Path, fill: Callable[[Connection], None]) -> None:
    """Make a ledger that is complete as soon as it can be seen, and never one over another.

    `fill` writes what it holds into empty tables.
    """
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}{DRAFT_SUFFIX}")
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        connection = SqliteConnection(draft, _PATIENCE_S)
        try:
            connection.begin()
            make_tables(connection.run, SQLITE)
            fill(connection)
            connection.commit()
        finally:
            connection.close()
        with suppress(FileExistsError):  # another process was faster; its ledger is as good
            os.link(draft, path)
        sync_directory(path.parent)
    except OSError as problem:
        raise LedgerUnavailable(
            f"no ledger can be made at {path} ({problem.strerror}); check that the directory exists and is writable"
        ) from problem
    finally:
        for suffix in ("", "-wal", "-shm"):
            draft.with_name(draft.name + suffix).unlink(missing_ok=True)
