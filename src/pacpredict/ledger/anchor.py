"""A witness that is kept elsewhere: in a file on another disk, or in a table of another database."""

from pathlib import Path

from pacpredict.exceptions import MissingExtra
from pacpredict.ledger.witness import FileWitness, Witness


def open_anchor(where: str, key: bytes, ledger_id: str) -> Witness:
    """Return the anchor of a ledger at a path or a PostgreSQL URL; nothing is created before something is noted."""
    if not where.startswith(("postgresql://", "postgres://")):
        return FileWitness(Path(where).absolute(), key)
    try:
        from pacpredict.ledger.postgres_anchor import PostgresAnchor  # noqa: PLC0415  # an extra
    except ImportError as problem:
        raise MissingExtra("postgres", "an anchor in PostgreSQL") from problem
    return PostgresAnchor(where, ledger_id)
