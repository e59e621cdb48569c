"""The tables of a ledger, in the words of each database, and how older ones are brought up to date."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pacpredict.exceptions import LedgerDamaged, LedgerError

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
# index on its digest guarantees whatever a session does.
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
        origin {blob},
        log_belief {blob}
    ){table_options}""",
    """CREATE TABLE records (
        sequence {integer} PRIMARY KEY,
        digest {blob},
        id TEXT,
        client TEXT,
        label {integer},
        charged_steps {integer} NOT NULL,
        spent_steps {integer} NOT NULL,
        time TEXT NOT NULL,
        chain {blob} NOT NULL,
        question {blob},
        noisy {blob}
    ){table_options}""",
    "CREATE UNIQUE INDEX records_by_digest ON records (digest) WHERE digest IS NOT NULL",
    "CREATE TABLE requests (id TEXT PRIMARY KEY, digest {blob} NOT NULL){table_options}",
)

Migration = Sequence[str]

# MIGRATIONS[n] takes a database from version n to n + 1. Never change one that was published: add the next.
MIGRATIONS: Sequence[Migration] = (_TABLES,)


def begin_schema(run: Run, dialect: Dialect) -> None:
    """Make an empty database one of version 0, in a transaction of the caller."""
    run(f"CREATE TABLE schema_version (version {dialect.integer} NOT NULL){dialect.table_options}")
    run("INSERT INTO schema_version VALUES (0)")


def is_current(run: Run, migrations: Sequence[Migration] = MIGRATIONS) -> bool:
    """Say whether the database needs no migration; one that is newer than this program is refused."""
    versions = [version for (version,) in run("SELECT version FROM schema_version")]
    if len(versions) != 1 or versions[0] < 0:
        raise LedgerDamaged("the ledger does not say of which version it is; restore it from a backup")
    if versions[0] > len(migrations):
        raise LedgerError(
            f"the ledger has version {versions[0]}, this pacpredict knows versions up to {len(migrations)}: "
            "use the pacpredict that made it, or a newer one"
        )
    return bool(versions[0] == len(migrations))


def migrate(run: Run, dialect: Dialect, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Apply what is missing, in a transaction of the caller: another process may have been faster."""
    if is_current(run, migrations):
        return
    ((version,),) = run("SELECT version FROM schema_version")
    for statements in migrations[version:]:
        for statement in statements:
            run(statement.format(**dialect._asdict()))
    run("UPDATE schema_version SET version = ?", (len(migrations),))
