"""Where an artifact's ledger is: in its directory, or at a URL."""

from pathlib import Path

from pacpredict.ensemble.artifact.artifact import LEDGER
from pacpredict.exceptions import InvalidInput, MissingExtra
from pacpredict.ledger.sql import SqlLedger
from pacpredict.ledger.sqlite import SqliteLedger
from pacpredict.ledger.witness import WitnessedLedger, open_witnessed
from pacpredict.mechanism.ledger import Failpoints, nowhere


def create_ledger(home: Path, identity: str) -> WitnessedLedger:
    """Put an empty ledger into the directory of an artifact in the making."""
    return open_witnessed(home, lambda _: SqliteLedger(home / LEDGER, deployment=identity))


def open_ledger(
    home: Path, identity: str, url: str | None = None, *, at: Failpoints = nowhere
) -> WitnessedLedger:
    """Open the ledger of an artifact. It has one from the start: a missing one is never replaced by an empty one."""
    return open_witnessed(home, lambda _: _connect(home, identity, url, at))


def _connect(home: Path, identity: str, url: str | None, at: Failpoints) -> SqlLedger:
    if url is None:
        return SqliteLedger(home / LEDGER, deployment=identity, create=False, at=at)
    if not url.startswith(("postgresql://", "postgres://")):
        raise InvalidInput(
            f"a ledger is at a URL like postgresql://user@host/database, not at {url.split(':')[0]}:..."
        )
    try:
        from pacpredict.ledger.postgres import PostgresLedger  # noqa: PLC0415  # an extra
    except ImportError as problem:
        raise MissingExtra("postgres", "a ledger in PostgreSQL") from problem
    return PostgresLedger(url, deployment=identity, create=False, at=at)
