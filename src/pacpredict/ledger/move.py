"""Take a deployment from one database to another: the same history, continued elsewhere.

At no moment can both places be written to, wherever a move is interrupted:

1. The history is copied, in one transaction. The copy says that it is continued where it came from.
2. The original is marked as continued at the new place. From now on neither gives turns.
3. The mark of the copy is removed.

Doing it again repeats what is missing. An interrupted move can also be left alone: after step 1 the original is
in use as before. The marks are under the same MAC as the rest: nobody without the key takes one away.
"""

from pacpredict.exceptions import LedgerConflict, LedgerDamaged
from pacpredict.ledger import head as heads
from pacpredict.ledger.connections import Connection
from pacpredict.ledger.copying import copy_tables
from pacpredict.ledger.head import Head
from pacpredict.ledger.postgres import PostgresConnection, PostgresLedger, describe_url
from pacpredict.ledger.sql import SqlLedger
from pacpredict.mechanism.ledger import Failpoints, nowhere


def move(source: SqlLedger, url: str, at: Failpoints = nowhere) -> PostgresLedger:
    """Continue a ledger in a PostgreSQL database; returns the ledger there. Safe to interrupt and to repeat."""
    destination = describe_url(url)
    with source.exclusively() as (here, head), PostgresConnection(url) as there:
        if head.moved_to not in (None, destination):
            raise LedgerConflict(f"the ledger at {source.location} is continued at {head.moved_to} already")
        if head.moved_to is None:
            _copy(source, here, there, head)
            at("copied")
            source.write_head(here, head._replace(moved_to=destination))
            here.commit()
            at("marked")
        _unmark(source, there, head)
        at("unmarked")
    return PostgresLedger(url, key=source.key, deployment=source.deployment, create=False)


def _copy(source: SqlLedger, here: Connection, there: PostgresConnection, head: Head) -> None:
    """Replace whatever an interrupted move left by the whole history, marked as continued at its source."""
    there.begin_schema()
    there.make_tables()
    found = there.run("SELECT ledger, moved_to FROM state")
    if found and (found[0][0] != head.ledger or found[0][1] is None):
        raise LedgerConflict(
            "there is another ledger in use at that place. Nothing was moved: give a database or schema of its own"
        )
    copy_tables(here, there)
    source.write_head(there, head._replace(moved_to=source.location))
    there.commit()


def _unmark(source: SqlLedger, there: PostgresConnection, head: Head) -> None:
    """Let the copy be used. Once it is, it goes its own way and is left alone."""
    there.begin()
    rows = there.run(f"SELECT {', '.join(heads.COLUMNS)} FROM state")  # noqa: S608
    try:
        copy = heads.from_row(source.key, rows[0], there.location) if rows else None
    except LedgerDamaged:
        copy = None
    if copy is None or copy.ledger != head.ledger or (copy.moved_to is not None and copy.chain != head.chain):
        raise LedgerConflict(
            "what is at that place is not the history that was moved there. Bring that database back as it was"
        )
    if copy.moved_to is not None:
        source.write_head(there, copy._replace(moved_to=None))
        there.commit()
