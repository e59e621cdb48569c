"""Records that differ from another in one column only: the same thing twice, perhaps. A guess, for hints."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pacpredict.show import show
from pacpredict.tables.contents import Keys, column_keys, row_keys
from pacpredict.tables.schema import Rows, Schema
from pacpredict.types import FloatArray

# Of so many columns in all every one is left out in turn; pictures, with thousands, are not tables of persons.
_MOST_COLUMNS = 256
# Less is no pattern.
_FEWEST_RECORDS = 10
_LEAST_SHARE = 0.01
# Tables of few values have such pairs by chance. Columns that depend on each other have more than columns that do not,
# so that it takes many times what these would have.
_TIMES_CHANCE = 10


class Resemblance(NamedTuple):
    column: str  # the only one in which they differ
    n_records: int


def near_duplicates(schema: Schema, rows: Rows) -> Resemblance | None:
    """Return the column without which most records would be like another one, if there are many.

    Numbers must be equal, not close: 0.1 and 0.1000001 differ.
    """
    if not 2 <= len(schema.columns) <= _MOST_COLUMNS:
        return None
    columns = list(_columns(rows))
    contents = row_keys(columns)
    chances = np.array([_pairs(column) for column in columns]) / max(1.0, _pairs(np.zeros(len(rows))))
    found = [
        _alike(contents, column_keys(column, j), float(np.delete(chances, j).prod()))
        for j, column in enumerate(columns)
    ]
    best = int(np.argmax(found))
    if found[best] < max(_FEWEST_RECORDS, _LEAST_SHARE * len(rows)):
        return None
    return Resemblance(schema.columns[best].name, found[best])


def resemblance_hint(schema: Schema, rows: Rows) -> str | None:
    """Return what to say about near-duplicates, if there are many."""
    found = near_duplicates(schema, rows)
    if found is None:
        return None
    return (
        f"{found.n_records:,} records differ from another one in {show(found.column)} alone; if these are records of "
        "one person, name the column that tells persons apart (--person COLUMN, or groups= in Python), to have them "
        "protected together"
    )


def _columns(rows: Rows) -> Iterator[FloatArray]:
    for j in range(rows.numbers.shape[1]):
        if j in rows.texts:
            _, codes = np.unique(np.array(rows.texts[j], dtype=object), return_inverse=True)
            yield codes.astype(np.float64)
        else:
            yield np.ascontiguousarray(rows.numbers[:, j])


def _alike(contents: Keys, own: Keys, chance: float) -> int:
    """Count records that would be like another without this column, and are not like it with it."""
    _, kinds = np.unique(contents, return_index=True)  # identical records are one unit already
    others = (contents - own)[kinds]
    if _pairs(others) < _TIMES_CHANCE * chance * len(kinds) ** 2 / 2:
        return 0
    _, inverse, sizes = np.unique(others, return_inverse=True, return_counts=True)
    return int((sizes[inverse] > 1).sum())


def _pairs(values: npt.NDArray[np.generic]) -> float:
    """Count the pairs of equal values."""
    _, sizes = np.unique(values, return_counts=True)
    return float((sizes.astype(np.float64) * (sizes - 1)).sum() / 2)
