"""What an auditor may have of a ledger: who was told what, when and at which charge.

Votes, noisy numbers and beliefs never leave the ledger: from them one could learn what the answers alone do not tell.
"""

import csv
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from pacpredict.exceptions import InvalidInput, MissingExtra
from pacpredict.ledger.records import Record
from pacpredict.ledger.sql import SqlLedger
from pacpredict.mechanism.budget import Budget

COLUMNS = (
    "sequence",
    "time",
    "client",
    "kind",
    "votes",
    "request",
    "digest",
    "label",
    "charge_nats",
    "spent_nats",
    "chain",
)

# Rows that are turned into a part of a Parquet file at a time.
_PART = 50_000


def export(
    ledger: SqlLedger, path: Path, budget: Budget, label_of: Callable[[int], Any] = lambda code: code
) -> int:
    """Write the releases to a CSV or Parquet file, by the ending of its name; returns how many there are.

    `label_of` turns the number of a class into the owner's label. A release of real outputs has none.
    """
    rows = (_describe(record, budget, label_of) for record in ledger.records())
    match path.suffix.lower():
        case ".csv":
            return _write_csv(rows, path)
        case ".parquet":
            return _write_parquet(rows, path)
    raise InvalidInput(f"a ledger is exported to a file that ends in .csv or .parquet, not to {path.name}")


def _describe(record: Record, budget: Budget, label_of: Callable[[int], Any]) -> tuple[Any, ...]:
    entry = record.entry
    return (
        entry.sequence,
        record.time,
        entry.client,
        entry.kind,
        entry.votes,
        _hex(entry.request),
        _hex(entry.digest),
        None if entry.label is None else label_of(entry.label),
        budget.nats(entry.charged_steps),
        budget.nats(record.spent_steps),
        record.chain.hex(),
    )


def _hex(digest: bytes | None) -> str | None:
    return None if digest is None else digest.hex()


def _write_csv(rows: Iterable[tuple[Any, ...]], path: Path) -> int:
    n = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows:
            writer.writerow(row)
            n += 1
    return n


def _write_parquet(rows: Iterator[tuple[Any, ...]], path: Path) -> int:
    try:
        import pyarrow as pa  # noqa: PLC0415  # an extra
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as problem:
        raise MissingExtra("parquet", "a Parquet file") from problem
    text, number = pa.string(), pa.float64()
    types = (pa.int64(), *(text,) * 7, number, number, text)
    schema = pa.schema(list(zip(COLUMNS, types, strict=True)))
    n, label = 0, COLUMNS.index("label")
    with parquet.ParquetWriter(path, schema) as writer:
        while part := list(islice(rows, _PART)):
            columns = [list(column) for column in zip(*part, strict=True)]
            columns[label] = [None if value is None else str(value) for value in columns[label]]
            arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
            n += len(part)
    return n
