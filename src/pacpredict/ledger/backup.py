"""A copy of a ledger that can be kept and looked at, but not continued by accident.

Copying the file of a database that is in use may miss its log; this does not. The copy says, under the MAC, that it is
continued where it came from. Bringing it back is an act of its own, and only a copy that is complete can be.
"""

import os
from pathlib import Path

from pacpredict.exceptions import InvalidInput, LedgerConflict
from pacpredict.files import sync_directory
from pacpredict.ledger.connections import Connection
from pacpredict.ledger.copying import copy_tables
from pacpredict.ledger.sql import Link, SqlLedger
from pacpredict.ledger.sqlite import SqliteLedger, make_file


def back_up(ledger: SqlLedger, path: Path) -> Link:
    """Write the history of a ledger to a new file; returns how far it goes. Others wait meanwhile."""
    if os.path.lexists(path):
        raise InvalidInput(f"{path} exists already: a backup never replaces another; choose a new name")
    if Path(ledger.location).parent.resolve() in path.resolve().parents:
        raise InvalidInput(
            f"{path} is in the artifact, which holds nothing but its own files; choose another place"
        )
    with ledger.exclusively() as (here, head):

        def fill(there: Connection) -> None:
            copy_tables(here, there)
            ledger.write_head(there, head._replace(moved_to=head.moved_to or ledger.location))

        make_file(path, fill)
    return Link(head.sequence, head.chain)


def restore(backup: Path, path: Path, key: bytes, deployment: str, seen: Link) -> SqliteLedger:
    """Put a backup into the place of a ledger that is lost, if it holds all that was shown to anybody.

    The chain of `seen` may be empty: then only the number of releases is known.
    """
    with SqliteLedger(backup, key=key, deployment=deployment, create=False) as kept:
        head = kept.head()
        if head.sequence < seen.sequence:
            raise LedgerConflict(
                f"{backup} holds {head.sequence} releases, but {seen.sequence} were shown: what it lacks was released "
                "all the same, so it cannot be continued. Fit again, which draws a new secret"
            )
        if seen.chain:
            kept.check_contains(seen)
        draft = path.with_name(f"{path.name}.restored")
        draft.unlink(missing_ok=True)
        with kept.exclusively() as (here, head):

            def fill(there: Connection) -> None:
                copy_tables(here, there)
                kept.write_head(there, head._replace(moved_to=None))

            make_file(draft, fill)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    draft.replace(path)
    sync_directory(path.parent)
    return SqliteLedger(path, key=key, deployment=deployment, create=False)
