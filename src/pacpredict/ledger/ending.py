"""Does a ledger end where its state says? Looked at whenever somebody connects, so at a cost that no history adds to.

The first record and the last are checked, and those near the end are counted. To count all would be to read them all:
older ones are checked when they are read, by a server while it runs, and by `ledger verify`.
"""

from pacpredict.exceptions import LedgerDamaged
from pacpredict.ledger import head as heads
from pacpredict.ledger.connections import Connection
from pacpredict.ledger.records import CHAIN, COLUMNS, first_link, link_of_row

# How many records at the end are counted: as many as take hundredths of a second.
COUNTED = 100_000

# In one statement, so that no commit comes between. They are counted forwards, as disks are read fastest. There are no
# more than the limit, which tells PostgreSQL not to read all of the table.
END = (
    f"SELECT {', '.join(heads.COLUMNS)}, (SELECT min(sequence) FROM records), "  # noqa: S608  # all of it is written here
    "(SELECT max(sequence) FROM records), "
    "(SELECT records.chain FROM records ORDER BY records.sequence DESC LIMIT 1), "
    "(SELECT count(*) FROM (SELECT sequence FROM records WHERE sequence > (SELECT max(sequence) FROM records) - ? "
    "ORDER BY sequence LIMIT ?) AS newest) FROM state"
)
_FIRST_RECORD = f"SELECT {', '.join(COLUMNS)} FROM records ORDER BY sequence LIMIT 1"  # noqa: S608


def check_end(connection: Connection, key: bytes, location: str) -> None:
    """Refuse a ledger whose records do not begin and end as they should, or have a gap near the end."""
    ((*row, first, last, chain, n),) = connection.run(END, (COUNTED, COUNTED))
    head = heads.from_row(key, tuple(row), location)
    start = first_link(key, head.ledger, head.deployment)
    if last is None:
        is_whole = head.chain == start
    else:
        (record,) = connection.run(_FIRST_RECORD)
        begins = link_of_row(key, start, record) == record[CHAIN]
        is_whole = begins and (last, chain, n) == (head.sequence, head.chain, min(last - first + 1, COUNTED))
    if not is_whole:
        raise damaged(
            location,
            f"its state is at record {head.sequence}, its last record is number {last or 0}, and of the last "
            f"{min(head.sequence, COUNTED)} it has {n}",
        )


def damaged(location: str, what: str) -> LedgerDamaged:
    return LedgerDamaged(
        f"the ledger at {location} is damaged: {what}. Restore the latest backup; an older one would "
        "forget what was released since"
    )
