"""The whole history of a ledger in another database: for moving it, and for a backup."""

from collections.abc import Iterator

from pacpredict.ledger.connections import Connection
from pacpredict.ledger.head import COLUMNS as STATE_COLUMNS
from pacpredict.ledger.keys import COLUMNS as KEY_COLUMNS
from pacpredict.ledger.records import COLUMNS, Row

# The columns of each table; it is read in the order of the first.
_TABLES = {
    "state": ("one", *STATE_COLUMNS),
    "records": COLUMNS,
    **KEY_COLUMNS,
}
_PAGE = 500


def copy_tables(here: Connection, there: Connection) -> None:
    """Replace what is there by what is here, within a transaction on each side."""
    for table, columns in _TABLES.items():
        there.run(f"DELETE FROM {table}")  # noqa: S608  # names of our own tables
        marks = ", ".join("?" * len(columns))
        for rows in _pages(here, table, columns):
            there.run_many(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)  # noqa: S608


def _pages(here: Connection, table: str, columns: tuple[str, ...]) -> Iterator[list[Row]]:
    key, names = columns[0], ", ".join(columns)
    rows = here.run(f"SELECT {names} FROM {table} ORDER BY {key} LIMIT {_PAGE}")  # noqa: S608
    while rows:
        yield rows
        rows = here.run(
            f"SELECT {names} FROM {table} WHERE {key} > ? ORDER BY {key} LIMIT {_PAGE}",  # noqa: S608
            (rows[-1][0],),
        )
