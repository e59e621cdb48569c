"""An anchor in a PostgreSQL database, for deployments that several hosts serve."""

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from pacpredict.exceptions import LedgerDamaged, LedgerError, LedgerUnavailable
from pacpredict.ledger.postgres import PostgresConnection, database_at, describe_url
from pacpredict.ledger.witness import Sighting

T = TypeVar("T")

_NAME = "pacpredict_anchors"
_TABLE = f"""CREATE TABLE IF NOT EXISTS {_NAME} (
    ledger TEXT PRIMARY KEY, kind TEXT NOT NULL, location TEXT NOT NULL, place TEXT NOT NULL,
    sequence BIGINT NOT NULL, chain TEXT NOT NULL
)"""
_READ = "SELECT ledger, kind, location, place, sequence, chain FROM pacpredict_anchors WHERE ledger = ?"
_NOTE = (
    "INSERT INTO pacpredict_anchors (ledger, kind, location, place, sequence, chain) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (ledger) DO UPDATE SET kind = excluded.kind, location = excluded.location, place = excluded.place, "
    "sequence = excluded.sequence, chain = excluded.chain"
)
# A row that was taken away is not made anew: what it had seen is lost with it.
_NOTE_FARTHER = (
    "UPDATE pacpredict_anchors SET kind = ?, location = ?, place = ?, sequence = ?, chain = ? "
    "WHERE ledger = ? AND sequence < ?"
)


class PostgresAnchor:
    """Keeps one row for each ledger. A connection that was lost is made anew at the next use."""

    def __init__(self, url: str, ledger_id: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._connection: PostgresConnection | None = None
        self._ledger_id = ledger_id

    @property
    def location(self) -> str:
        return describe_url(self._url)

    def database(self) -> str:
        return database_at(self._url)  # without making a table there

    def read(self) -> Sighting | None:
        return self._run(self._read)

    def advance(self, sighting: Sighting) -> Sighting:
        ledger, *seen = _values(sighting)
        noted = self._note(_NOTE_FARTHER, (*seen, ledger, sighting.sequence))
        return noted or sighting._replace(sequence=-1)

    def replace(self, sighting: Sighting) -> None:
        self._note(_NOTE, _values(sighting))

    def close(self) -> None:
        with self._lock:
            self._give_up()

    def _note(self, statement: str, values: Sequence[str | int]) -> Sighting | None:
        """Note a sighting, in a table that nobody has meddled with; returns what stands there then."""

        def note(connection: PostgresConnection) -> Sighting | None:
            connection.begin_note()
            connection.run(statement, values)
            noted = self._read(connection)
            connection.commit()
            return noted

        return self._run(note)

    def _read(self, connection: PostgresConnection) -> Sighting | None:
        rows = connection.run(_READ, (self._ledger_id,))
        if not rows:
            return None
        seen = Sighting(*rows[0])
        try:
            _ = seen.sequence + len(seen.link.chain)
        except (TypeError, ValueError):
            raise LedgerDamaged(
                f"the anchor at {self.location} says nothing that a ledger can have come to. Nothing was released: "
                "bring it back as it was"
            ) from None
        return seen

    def _run(self, job: Callable[[PostgresConnection], T]) -> T:
        with self._lock:
            for attempt in (1, 2):
                try:
                    if self._connection is None:
                        self._connection = PostgresConnection(self._url, table=_NAME)
                        self._connection.run(_TABLE)
                    return job(self._connection)
                except LedgerError as problem:
                    self._give_up()
                    if attempt == 2 or not isinstance(problem, LedgerUnavailable):
                        raise
        raise AssertionError("the loop returns or raises")

    def _give_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _values(sighting: Sighting) -> tuple[str | int, ...]:
    return (
        sighting.ledger,
        sighting.kind,
        sighting.location,
        sighting.place,
        sighting.sequence,
        sighting.chain,
    )
