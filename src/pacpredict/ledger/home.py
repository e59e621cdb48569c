"""Where an artifact's ledger is: in its directory, or at a URL."""

from pathlib import Path

from pacpredict.ensemble.artifact.artifact import LEDGER
from pacpredict.exceptions import InvalidInput
from pacpredict.ledger.sql import SqlLedger
from pacpredict.ledger.sqlite import SqliteLedger


def create_ledger(home: Path, identity: str) -> SqlLedger:
    """Put an empty ledger into the directory of an artifact in the making."""
    return SqliteLedger(home / LEDGER, deployment=identity)


def open_ledger(home: Path, identity: str, url: str | None = None) -> SqlLedger:
    """Open the ledger of an artifact; a missing one is never replaced by an empty one."""
    if url is None:
        return SqliteLedger(home / LEDGER, deployment=identity, create=False)
    raise InvalidInput(f"{url} is not understood")
