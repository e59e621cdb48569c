"""The tables of a ledger, in the words of each database."""

from collections.abc import Callable
from typing import Any, NamedTuple

from pacpredict.exceptions import LedgerDamaged, LedgerError
from pacpredict.show import explain_format

# Raise it with every change of the tables, of a record's bytes or of the state's. No earlier format is read.
VERSION = 6

Run = Callable[..., list[tuple[Any, ...]]]  # a statement, and values for its question marks


class Dialect(NamedTuple):
    """What databases call the types that a ledger needs."""

    integer: str
    real: str
    blob: str
    table_options: str


SQLITE = Dialect("INTEGER", "REAL", "BLOB", " STRICT")
POSTGRESQL = Dialect("BIGINT", "DOUBLE PRECISION", "BYTEA", "")

# The one row of `state` exists from the start: it is what a turn locks. A query is answered once, which the unique
# index on its digest guarantees whatever a session does. Keys of clients: what they are allowed, under a MAC, and what
# they have used, counted by commits.
_TABLES = (
    """CREATE TABLE state (
        one {integer} PRIMARY KEY CHECK (one = 1),
        ledger TEXT NOT NULL,
        deployment TEXT,
        created TEXT NOT NULL,
        moved_to TEXT,
        chain {blob} NOT NULL,
        sequence {integer},
        contested {integer},
        spent_steps {integer},
        step {real},
        total {real},
        origin {blob},
        secret {blob},
        log_belief {blob},
        noisy {integer},
        mac {blob}
    ){table_options}""",
    """CREATE TABLE records (
        sequence {integer} PRIMARY KEY,
        digest {blob},
        kind TEXT NOT NULL,
        votes TEXT NOT NULL,
        client TEXT,
        request {blob},
        asked {blob},
        label {integer},
        charged_steps {integer} NOT NULL,
        spent_steps {integer} NOT NULL,
        time TEXT NOT NULL,
        chain {blob} NOT NULL,
        question {blob},
        noisy {blob}
    ){table_options}""",
    "CREATE UNIQUE INDEX records_by_digest ON records (digest) WHERE digest IS NOT NULL",
    "CREATE INDEX records_by_request ON records (request) WHERE request IS NOT NULL",
    """CREATE TABLE keys (
        name TEXT PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        role TEXT NOT NULL,
        salt {blob} NOT NULL,
        hash {blob} NOT NULL,
        created TEXT NOT NULL,
        expires TEXT,
        revoked TEXT,
        rate {integer},
        queries {integer},
        nats {real},
        mac {blob} NOT NULL
    ){table_options}""",
    """CREATE TABLE key_use (
        name TEXT PRIMARY KEY,
        queries {integer} NOT NULL,
        steps {integer} NOT NULL,
        drained {real} NOT NULL
    ){table_options}""",
    "CREATE TABLE schema_version (version {integer} NOT NULL){table_options}",
)


def make_tables(run: Run, dialect: Dialect) -> None:
    """Create the tables in an empty database, in a transaction of the caller."""
    for statement in _TABLES:
        run(statement.format(**dialect._asdict()))
    run("INSERT INTO schema_version VALUES (?)", (VERSION,))


def check_version(run: Run, location: str) -> None:
    """Refuse a ledger of another format than this program writes; nothing of it is changed."""
    versions = [version for (version,) in run("SELECT version FROM schema_version")]
    if len(versions) != 1 or versions[0] < 0:
        raise LedgerDamaged(
            f"the ledger at {location} does not say which format it has; restore it from a backup"
        )
    if versions[0] != VERSION:
        raise LedgerError(explain_format(f"the ledger at {location}", versions[0], VERSION))
