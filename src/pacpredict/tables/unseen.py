"""How many new rows would be refused because training never saw what they have."""

import numpy as np

from pacpredict.tables.schema import Rows, Schema
from pacpredict.types import BoolArray, IntArray


def refused(schema: Schema, rows: Rows, held_out: BoolArray) -> BoolArray:
    """Tell which of the rows that are held out a model of the others would refuse.

    Those with a category that no other row has, or with a missing value where none is missing in the others. What a
    schema lists of its own accord, as pandas's category dtype does, is known to every model.
    """
    asked, known = rows.numbers[held_out], rows.numbers[~held_out]
    found = np.zeros(len(asked), np.bool_)
    for j, column in enumerate(schema.columns):
        is_missing = np.isnan(asked[:, j])
        if not np.isnan(known[:, j]).any():
            found |= is_missing
        if column.kind == "category" and not column.is_declared:
            found |= ~is_missing & ~np.isin(asked[:, j], known[:, j])
    return found


def share_refused_alone(schema: Schema, rows: Rows, units: IntArray) -> tuple[float, str]:
    """Return the share of rows that a model of all other units would refuse, and the column that is most to blame.

    With as many records as there are, that is what to expect of new rows (Good and Turing's estimate).
    """
    found, blame = np.zeros(len(rows), np.bool_), {schema.columns[0].name: 0}
    n_units = int(units.max()) + 1
    for j, column in enumerate(schema.columns):
        values = rows.numbers[:, j]
        is_listed = column.kind == "category" and not column.is_declared
        may_be_new = np.flatnonzero(np.isnan(values) | is_listed)
        _, codes = np.unique(values[may_be_new], return_inverse=True)  # which has one code for all NaN
        holders = np.bincount(np.unique(codes * n_units + units[may_be_new]) // n_units)
        alone = may_be_new[holders[codes] == 1]
        blame[column.name], found[alone] = len(alone), True
    return float(found.mean()), max(blame, key=lambda name: blame[name])
