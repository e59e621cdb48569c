"""The tables of a ledger, in the words of each database, and how older ones are brought up to date."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pacpredict.exceptions import LedgerDamaged, LedgerError
from pacpredict.ledger.rekey import Run, rekey


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

# Records and state under a key; ids as digests beside the records that they asked for. The chain of the first version
# stays, for artifacts that last saw the ledger then.
_KEYED = (
    "ALTER TABLE state ADD COLUMN total {real}",
    "ALTER TABLE state ADD COLUMN secret {blob}",
    "ALTER TABLE state ADD COLUMN mac {blob}",
    "ALTER TABLE records ADD COLUMN kind TEXT",
    "ALTER TABLE records ADD COLUMN request {blob}",
    "ALTER TABLE records ADD COLUMN asked {blob}",
    "CREATE TABLE old_chains (sequence {integer} PRIMARY KEY, chain {blob} NOT NULL){table_options}",
    "INSERT INTO old_chains SELECT sequence, chain FROM records",
    rekey,
    "DROP TABLE requests",
    "ALTER TABLE records DROP COLUMN id",
    "CREATE INDEX records_by_request ON records (request) WHERE request IS NOT NULL",
)

# Releases with Gaussian noise, each of which may have passed the limit on odds.
_LIMITED = ("ALTER TABLE state ADD COLUMN noisy {integer}",)

# Keys of clients: what they are allowed, under a MAC, and what they have used, counted by commits.
_KEYS = (
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
)

# Statements, and functions of the key for what statements cannot do.
Migration = Sequence[str | Callable[[Run, bytes | None], None]]

# MIGRATIONS[n] takes a database from version n to n + 1. Never change one that was published: add the next.
MIGRATIONS: Sequence[Migration] = (_TABLES, _KEYED, _LIMITED, _KEYS)


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


def migrate(
    run: Run, dialect: Dialect, key: bytes | None, migrations: Sequence[Migration] = MIGRATIONS
) -> None:
    """Apply what is missing, in a transaction of the caller: another process may have been faster.

    The key is given where a history that was under none may be taken over.
    """
    if is_current(run, migrations):
        return
    ((version,),) = run("SELECT version FROM schema_version")
    for steps in migrations[version:]:
        for step in steps:
            if callable(step):
                step(run, key)
            else:
                run(step.format(**dialect._asdict()))
    run("UPDATE schema_version SET version = ?", (len(migrations),))
