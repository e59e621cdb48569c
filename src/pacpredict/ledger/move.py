"""Take a deployment from one database to another: the same history, continued elsewhere.

At no moment can both places be written to, wherever a move is interrupted:

1. The history is copied, in one transaction. The copy says that it is continued where it came from.
2. The original is marked as continued at the new place. From now on neither gives turns.
3. The mark of the copy is removed.

Doing it again repeats what is missing. An interrupted move can also be left alone: after step 1 the original is
in use as before.
"""

from collections.abc import Iterator
from pathlib import Path

from pacpredict.ensemble.artifact.artifact import LEDGER
from pacpredict.exceptions import LedgerConflict
from pacpredict.ledger.connections import Connection
from pacpredict.ledger.home import open_ledger
from pacpredict.ledger.postgres import PostgresConnection, PostgresLedger, describe_url
from pacpredict.ledger.records import COLUMNS, Row
from pacpredict.ledger.sql import Head, SqlLedger, read_head
from pacpredict.ledger.sqlite import SqliteLedger
from pacpredict.ledger.witness import Witness
from pacpredict.mechanism.ledger import Failpoints, nowhere

# The columns of each table; it is read in the order of the first.
_TABLES = {
    "state": (
        *(
            "one",
            "ledger",
            "deployment",
            "created",
            "moved_to",
            "chain",
            "sequence",
            "contested",
            "spent_steps",
        ),
        *("step", "origin", "log_belief"),
    ),
    "records": COLUMNS,
    "requests": ("id", "digest"),
}
_PAGE = 500


def move(source: SqlLedger, url: str, at: Failpoints = nowhere) -> PostgresLedger:
    """Continue a ledger in a PostgreSQL database; returns the ledger there. Safe to interrupt and to repeat."""
    destination = describe_url(url)
    with source.exclusively() as (here, head), PostgresConnection(url) as there:
        if head.moved_to not in (None, destination):
            raise LedgerConflict(f"the ledger at {source.location} is continued at {head.moved_to} already")
        if head.moved_to is None:
            _copy(source, here, there, head)
            at("copied")
            here.run("UPDATE state SET moved_to = ?", (destination,))
            here.commit()
            at("marked")
        _unmark(there, head)
        at("unmarked")
    return PostgresLedger(url, deployment=source.deployment, create=False)


def move_home(home: Path, identity: str, url: str) -> str:
    """Take the history of an artifact from its directory to a database; returns where the artifact remembers it."""
    seen = Witness(home).read()
    with SqliteLedger(home / LEDGER, deployment=identity, create=False) as own:
        if seen is not None and own.head().moved_to is None:
            Witness(home).check(own, seen)
        move(own, url).close()
    with open_ledger(home, identity, url) as moved:
        return moved.ledger.location


def _copy(source: SqlLedger, here: Connection, there: PostgresConnection, head: Head) -> None:
    """Replace whatever an interrupted move left by the whole history, marked as continued at its source."""
    there.begin_schema()
    there.make_tables(source.migrations)
    found = there.run("SELECT ledger, moved_to FROM state")
    if found and (found[0][0] != head.ledger or found[0][1] is None):
        raise LedgerConflict(
            "there is another ledger in use at that place. Nothing was moved: give a database or schema of its own"
        )
    for table, columns in _TABLES.items():
        there.run(f"DELETE FROM {table}")  # noqa: S608  # names of our own tables
        marks = ", ".join("?" * len(columns))
        for rows in _pages(here, table, columns):
            there.run_many(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)  # noqa: S608
    there.run("UPDATE state SET moved_to = ?", (source.location,))
    there.commit()


def _pages(here: Connection, table: str, columns: tuple[str, ...]) -> Iterator[list[Row]]:
    key, names = columns[0], ", ".join(columns)
    rows = here.run(f"SELECT {names} FROM {table} ORDER BY {key} LIMIT {_PAGE}")  # noqa: S608
    while rows:
        yield rows
        rows = here.run(
            f"SELECT {names} FROM {table} WHERE {key} > ? ORDER BY {key} LIMIT {_PAGE}",  # noqa: S608
            (rows[-1][0],),
        )


def _unmark(there: PostgresConnection, head: Head) -> None:
    """Let the copy be used. Once it is, it goes its own way and is left alone."""
    there.begin()
    copy = read_head(there)
    if copy.ledger != head.ledger or (copy.moved_to is not None and copy.chain != head.chain):
        raise LedgerConflict(
            "what is at that place is not the history that was moved there. Bring that database back as it was"
        )
    if copy.moved_to is not None:
        there.run("UPDATE state SET moved_to = NULL")
        there.commit()
