"""A ledger in a PostgreSQL database, for deployments that are served by several hosts."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Self

from pacpredict.exceptions import InvalidInput, LedgerDamaged, LedgerError, LedgerUnavailable, MissingExtra
from pacpredict.ledger import postgres_guard
from pacpredict.ledger.ending import damaged
from pacpredict.ledger.postgres_guard import Guard
from pacpredict.ledger.records import Row
from pacpredict.ledger.schema import POSTGRESQL, check_version, make_tables
from pacpredict.ledger.sql import SqlLedger, found_ledger
from pacpredict.mechanism.ledger import Failpoints, nowhere, reuse_conflict

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.pq import TransactionStatus
except ImportError as problem:
    raise MissingExtra("postgres", "a ledger in PostgreSQL") from problem

# How long a turn waits for those of others. A commit takes milliseconds.
_PATIENCE_S = 30.0

# Every session does this first, whatever a role or a database has set. A host that stops in the middle of its turn
# loses it after a minute, instead of stopping all others. Warnings must come through: one is that a standby may lack
# what was committed.
_SETTINGS = (
    "SET synchronous_commit = on",
    "SET statement_timeout = 0",
    "SET idle_in_transaction_session_timeout = '60s'",
    "SET tcp_keepalives_idle = 10",
    "SET client_min_messages = warning",
    "SET client_encoding = 'UTF8'",
    "SET extra_float_digits = 1",
)

# The number of the lock that keeps two hosts from creating the tables at once: "pacp" in ASCII.
_SCHEMA_LOCK = 0x70616370

_DAMAGED = ("42", "XX")  # the tables are not as they should be, or the server says that its data is not
_REFUSED = ("28", "3D", "42501")  # wrong password, no such database, no permission
_LOCKED = ("55P03", "57014")


class PostgresLedger(SqlLedger):
    """A ledger in the tables that a URL leads to, in a database or schema of its own.

    Missing tables are created, unless `create` says that they must be there.
    """

    kind = "postgresql"
    asks_after_lost_commits = True

    def __init__(
        self,
        url: str,
        *,
        key: bytes,
        deployment: str | None = None,
        create: bool = True,
        patience_s: float = _PATIENCE_S,
        at: Failpoints = nowhere,
    ) -> None:
        self._url = url
        self._location = describe_url(url)
        self._patience_s = patience_s
        if create:
            with PostgresConnection(url, patience_s) as connection:
                connection.begin_schema()
                connection.make_tables()
                if not connection.run("SELECT ledger FROM state"):
                    found_ledger(connection, key, deployment)
                connection.commit()
        super().__init__(key, deployment, at)

    @property
    def location(self) -> str:
        return self._location

    def database(self) -> str:
        return database_at(self._url)

    def keep_up(self) -> None:
        """See how far others have come, and whether what is written would stay."""
        super().keep_up()
        self._connections.read(postgres_guard.IS_DURABLE)

    def _connect(self) -> "PostgresConnection":
        connection = PostgresConnection(self._url, self._patience_s)
        try:
            connection.check_tables()
            check_version(connection.run, self.location)
        except BaseException:
            connection.close()
            raise
        return connection


class PostgresConnection:
    """A connection to a ledger; or to what has another `table`, which is guarded likewise."""

    def __init__(self, url: str, patience_s: float = _PATIENCE_S, table: str = "schema_version") -> None:
        self.location = describe_url(url)
        self._table = table
        self._patience_s = patience_s
        self._guard: Guard | None = None  # until there are tables
        self._warnings: list[str] = []
        try:
            # Transactions are begun by hand.
            self._postgres = psycopg.connect(
                url, autocommit=True, connect_timeout=max(2, int(patience_s)), application_name="pacpredict"
            )
        except psycopg.Error as problem:
            raise self._explain(problem) from None
        self._postgres.add_notice_handler(self._note)
        try:
            for statement in _SETTINGS:
                self.run(statement)
            self.run(f"SET lock_timeout = {int(patience_s * 1000)}")
            self.run(postgres_guard.IS_DURABLE)
        except BaseException:
            self.close()
            raise

    @property
    def in_transaction(self) -> bool:
        status = self._postgres.info.transaction_status
        return status in (TransactionStatus.INTRANS, TransactionStatus.INERROR, TransactionStatus.ACTIVE)

    def is_current(self) -> bool:
        return not self._postgres.closed

    def place(self) -> str:
        """Name the server, its timeline and the table: of these a standby that was promoted, or a copy, has others."""
        ((system, log_file, database, table),) = self.run(
            "SELECT system_identifier::text, pg_walfile_name(pg_current_wal_lsn()), pg_database.oid::bigint, "
            "'state'::regclass::oid::bigint FROM pg_control_system(), pg_database WHERE datname = current_database()"
        )
        return f"server {system}, timeline {int(log_file[:8], 16)}, table {database}.{table}"

    def database(self) -> str:
        """Name the server and the database, by whatever address and as whoever they are reached."""
        ((system, database),) = self.run(
            "SELECT system_identifier::text, pg_database.oid::bigint FROM pg_control_system(), pg_database "
            "WHERE datname = current_database()"
        )
        return f"server {system}, database {database}"

    def begin(self) -> None:
        """Begin a transaction and lock the one row of the state, in one message to the server.

        Its commit is synchronous whatever a connection pooler has made of the session's settings.
        """
        self.run(self._guarded().begin_turn)

    def begin_note(self) -> None:
        """Begin a transaction that locks nothing."""
        self.run(self._guarded().begin)

    def settle(self) -> None:
        self.run(self._guarded().settle)

    def _guarded(self) -> Guard:
        """Find the tables, once, and refuse those that somebody has meddled with."""
        if self._guard is None:
            ((number, name),) = self.run(postgres_guard.FIND.format(table=self._table))
            guard = Guard(number, name)
            self.run(guard.names)
            self.run(guard.check)
            self._guard = guard
        return self._guard

    def _has_tables(self) -> bool:
        return self.run("SELECT to_regclass('schema_version')") != [(None,)]

    def make_tables(self) -> None:
        """Create the tables unless they are there, in a transaction of the caller."""
        if self._has_tables():
            check_version(self.run, self.location)
        else:
            make_tables(self.run, POSTGRESQL)

    def check_tables(self) -> None:
        if not self._has_tables():
            raise LedgerUnavailable(
                f"there is no ledger at {self.location}. If this is the right place, move the ledger of the artifact "
                "there"
            )
        self._guarded()

    def begin_schema(self) -> None:
        self.run(f"BEGIN; SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})")

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        try:
            cursor = self._postgres.execute(_translate(statement), values or None, binary=bool(values))
            rows = cursor.fetchall() if cursor.description else []
        except psycopg.Error as problem:
            # Its own text may quote the row, which must not get into a log.
            raise self._explain(problem) from None
        except UnicodeDecodeError:  # in a database whose encoding is SQL_ASCII
            raise damaged(self.location, "a text in it is not UTF-8") from None
        return rows

    def run_many(self, statement: str, rows: Sequence[Row]) -> None:
        try:
            with self._postgres.cursor() as cursor:
                cursor.executemany(_translate(statement), rows)
        except psycopg.Error as problem:
            raise self._explain(problem) from None

    def commit(self) -> None:
        self._warnings.clear()
        self.run("COMMIT" if self._guard is None else self._guard.commit)
        if self._warnings:
            # Such as that somebody has cancelled the wait for a synchronous standby.
            raise LedgerUnavailable(
                f"the ledger at {self.location} has committed with a warning ({self._warnings[0]}): a standby may lack "
                "what was written; see to the standby"
            )

    def _note(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self._warnings.append(notice.message_primary or "")

    def rollback(self) -> None:
        self.run("ROLLBACK")

    def close(self) -> None:
        self._postgres.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _explain(self, problem: psycopg.Error) -> LedgerError:
        """Say what to do about an error of PostgreSQL, by its code and never with its details."""
        code = problem.sqlstate or ""
        text = problem.diag.message_primary or str(problem).split("\n", maxsplit=1)[0]
        what = f"the ledger at {self.location}"
        if code.startswith("23"):
            return reuse_conflict()
        if (refusal := self._explain_guard(code)) is not None:
            return refusal
        if code.startswith(_REFUSED):
            return LedgerUnavailable(
                f"{what} does not let us in ({text}); check the URL, the password and the grants"
            )
        if code.startswith(_LOCKED):
            return LedgerUnavailable(
                f"{what} was locked by another session for more than {self._patience_s:g} s; try again when that "
                "one has finished"
            )
        if code.startswith(_DAMAGED):
            return LedgerDamaged(
                f"{what} is no ledger or is damaged ({text}). Restore the latest backup; an older one would forget "
                "what was released since"
            )
        return LedgerUnavailable(
            f"{what} cannot be reached or written ({text}); check the database and try again"
        )

    def _explain_guard(self, code: str) -> LedgerError | None:
        """Say what to do about what a check has found before a commit."""
        if code == postgres_guard.MEDDLED_CODE:
            return LedgerDamaged(
                f"the ledger at {self.location} has a trigger, a rule, a policy or other code (of a default, a "
                "condition, an index, a table below another) that did not come from pacpredict, or a table that does "
                "not survive a crash. Nothing was released: remove it"
            )
        if code == postgres_guard.FORGETFUL_CODE:
            return LedgerUnavailable(
                f"the database at {self.location} runs with fsync = off or full_page_writes = off, and may forget what "
                "is released. Nothing was: switch both on"
            )
        return None


def database_at(url: str) -> str:
    """Name the database that a URL leads to."""
    with PostgresConnection(url) as connection:
        return connection.database()


def describe_url(url: str) -> str:
    """Return a URL without its password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError as problem:
        raise InvalidInput(
            "the URL of the ledger is not one of PostgreSQL: postgresql://user@host/database"
        ) from problem
    user, host, port, name = (parts.get(key) for key in ("user", "host", "port", "dbname"))
    address = f"{host or 'localhost'}:{port}" if port else (host or "localhost")
    # Other ways to say which server is meant: two URLs that lead to two servers must not look the same.
    other = "&".join(f"{key}={parts[key]}" for key in ("hostaddr", "service") if parts.get(key))
    described = f"postgresql://{f'{user}@' if user else ''}{address}/{name or user or ''}"
    return f"{described}?{other}" if other else described


@cache
def _translate(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()
