"""Where an artifact's ledger is: in its directory, or at a URL."""

from pathlib import Path
from typing import TYPE_CHECKING

from pacpredict.ensemble.artifact.artifact import LEDGER
from pacpredict.exceptions import InvalidInput, MissingExtra
from pacpredict.ledger.sql import SqlLedger
from pacpredict.ledger.sqlite import SqliteLedger
from pacpredict.ledger.witness import WitnessedLedger, open_witnessed
from pacpredict.mechanism.ledger import Failpoints, nowhere

if TYPE_CHECKING:
    from pacpredict.ledger.postgres import PostgresLedger


def create_ledger(home: Path, identity: str) -> WitnessedLedger:
    """Put an empty ledger into the directory of an artifact in the making."""
    return open_witnessed(home, lambda _: SqliteLedger(home / LEDGER, deployment=identity))


def open_ledger(
    home: Path, identity: str, url: str | None = None, *, at: Failpoints = nowhere
) -> WitnessedLedger:
    """Open the ledger of an artifact. It has one from the start: a missing one is never replaced by an empty one."""
    return open_witnessed(home, lambda _: _connect(home, identity, url, at))


def begin_at(home: Path, identity: str, url: str) -> None:
    """Let a deployment that has answered nothing yet begin at a URL, without a move that its owner must think of."""
    if not (home / LEDGER).exists():
        return
    with SqliteLedger(home / LEDGER, deployment=identity, create=False) as own:
        is_new = own.head().moved_to is None and not own.head().sequence
    if is_new:
        move_to(home, identity, url)


def move_to(home: Path, identity: str, url: str) -> str:
    """Take the ledger of an artifact to a PostgreSQL database; returns where it is then, without a password."""
    _postgres(url)
    from pacpredict.ledger.move import move_home  # noqa: PLC0415  # needs the same extra

    return move_home(home, identity, url)


def _connect(home: Path, identity: str, url: str | None, at: Failpoints) -> SqlLedger:
    if url is None:
        return SqliteLedger(home / LEDGER, deployment=identity, create=False, at=at)
    return _postgres(url)(url, deployment=identity, create=False, at=at)


def _postgres(url: str) -> "type[PostgresLedger]":
    if not url.startswith(("postgresql://", "postgres://")):
        raise InvalidInput(
            f"a ledger is at a URL like postgresql://user@host/database, not at {url.split(':', maxsplit=1)[0]}:..."
        )
    try:
        from pacpredict.ledger.postgres import PostgresLedger  # noqa: PLC0415  # an extra
    except ImportError as problem:
        raise MissingExtra("postgres", "a ledger in PostgreSQL") from problem
    return PostgresLedger
