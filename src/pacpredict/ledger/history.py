"""The records of a ledger in a database, and how they are checked against the key."""

from collections.abc import Collection, Iterator, Sequence

from pacpredict.ledger.connections import Connections
from pacpredict.ledger.ending import damaged
from pacpredict.ledger.head import Head
from pacpredict.ledger.records import (
    CHAIN,
    COLUMNS,
    Record,
    Row,
    first_link,
    from_row,
    link_of_row,
    next_link,
)
from pacpredict.mechanism.ledger import Answer, Entry

# Queries looked up by one statement, and records read by one.
_PAGE = 500

_NAMES = ", ".join(COLUMNS)
# A record is checked against the link before it, which stands in the row before.
_LINKED = (
    f"SELECT {', '.join(f'records.{column}' for column in COLUMNS)}, before.chain FROM records "  # noqa: S608
    "LEFT JOIN records AS before ON before.sequence = records.sequence - 1 "
)
_READ = f"SELECT {_NAMES} FROM records WHERE sequence > ? AND sequence <= ? ORDER BY sequence LIMIT ?"  # noqa: S608
_RECALL = _LINKED + "WHERE records.digest IN ({})"
_REQUEST = _LINKED + "WHERE records.request = ? ORDER BY records.sequence LIMIT 1"
CHAIN_AT = "SELECT chain FROM records WHERE sequence = ?"
_FIRST = "SELECT min(sequence) FROM records"


class History:
    """What a ledger says of its releases. What is looked up is checked as it is read, all others by `check_links`."""

    key: bytes
    deployment: str | None
    id: str
    _connections: Connections

    @property
    def location(self) -> str:
        """Where it is, without anything that gives access."""
        raise NotImplementedError

    def head(self) -> Head:
        """Read where the ledger stands."""
        raise NotImplementedError

    def recall(self, digests: Collection[bytes]) -> dict[bytes, Answer]:
        wanted = list(digests)
        found: dict[bytes, Answer] = {}
        for start in range(0, len(wanted), _PAGE):
            page = wanted[start : start + _PAGE]
            for record in self._read(_RECALL.format(", ".join("?" * len(page))), page):
                entry = record.entry
                if entry.digest is not None and entry.label is not None:
                    found[entry.digest] = Answer(entry.sequence, entry.label, entry.charged_steps)
        return found

    def request(self, request: bytes) -> bytes | None:
        found = self._read(_REQUEST, (request,))
        return found[0].entry.asked if found else None

    def entries(self) -> Iterator[Entry]:
        return (record.entry for record in self.records())

    def records(self, after: int = -1, until: int | None = None) -> Iterator[Record]:
        """Yield the records in order, between two numbers; by default all that are there now."""
        return map(from_row, self._rows(after, self.head().sequence if until is None else until))

    def _rows(self, after: int, until: int) -> Iterator[Row]:
        """Yield the records between two numbers as they are stored."""
        while after < until and (rows := self._connections.read(_READ, (after, until, _PAGE))):
            yield from rows
            after = rows[-1][0]

    def chain_at(self, sequence: int) -> bytes | None:
        """Return the chain value after a number of releases, if the ledger has come so far."""
        rows = self._connections.read(CHAIN_AT, (sequence,))
        if rows:
            return bytes(rows[0][0])
        ((first,),) = self._connections.read(_FIRST)
        # Before the first record: a ledger may begin at a snapshot of any number.
        return first_link(self.key, self.id, self.deployment) if first in (None, sequence + 1) else None

    def sequence_of(self, chain: bytes) -> int | None:
        """Return after how many releases the chain had this value, if it ever had."""
        rows = self._connections.read("SELECT sequence FROM records WHERE chain = ?", (chain,))
        if rows:
            return int(rows[0][0])
        return 0 if chain == first_link(self.key, self.id, self.deployment) else None

    def links(self, head: Head) -> Iterator[tuple[Record, bytes]]:
        """Yield the records up to a head, each with the chain value that it should have."""
        link = self._link_at(0, head)
        for record in self.records(0, head.sequence):
            link = next_link(self.key, link, record)
            yield record, link

    def _link_at(self, sequence: int, head: Head) -> bytes:
        return self.chain_at(sequence) or first_link(self.key, head.ledger, head.deployment)

    def check_links(self, after: int, most: int | None = None) -> int:
        """Check records since one that was checked before, without replaying what they say; all, or so many at most.

        Returns up to which one every record is checked then.
        """
        head = self.head()
        until = head.sequence if most is None else min(head.sequence, after + most)
        link, last = self._link_at(after, head), after
        for row in self._rows(after, until):
            link, last = link_of_row(self.key, link, row), row[0]
            if row[CHAIN] != link:
                raise damaged(self.location, f"record {last} or one before it was changed")
        if last < until and self._begins_after(head) < until:
            raise damaged(self.location, f"record {until} is missing, and perhaps others before it")
        return until

    def _begins_after(self, head: Head) -> int:
        """Return how many releases a ledger does not have because it began at a snapshot."""
        if head.chain == first_link(self.key, head.ledger, head.deployment):
            return head.sequence
        ((first,),) = self._connections.read(_FIRST)
        return 0 if first is None else int(first) - 1

    def _read(self, statement: str, values: Sequence[object]) -> list[Record]:
        """Read single records, each checked against the link before it."""
        return [self._checked(row) for row in self._connections.read(statement, values)]

    def _checked(self, row: Row) -> Record:
        *stored, before = row
        record = from_row(tuple(stored))
        if before is None:  # the first, or one whose predecessor was taken away
            before = first_link(self.key, self.id, self.deployment)
        if link_of_row(self.key, before, tuple(stored)) != record.chain:
            raise damaged(self.location, f"record {record.entry.sequence} or the one before it was changed")
        return record
