"""Variants of a record that an attacker may ask about: near it, and towards other records."""

import numpy as np
import pandas as pd

from pacpredict.types import BoolArray, FloatArray, IntArray

_MOST_SWAPPED = 3  # columns
_FARTHEST = 0.5  # of the way to another record


def vary(table: pd.DataFrame, targets: IntArray, donors: IntArray, n: int, seed: int) -> pd.DataFrame:
    """Return n + 1 rows for each target: the record itself, then its variants.

    Half of them have one to three columns of another record. The others are moved in all their numbers up to half of
    the way towards another record, whole numbers to the next whole number. Donors are records of the table as well.
    """
    rng = np.random.default_rng(seed)
    of_target = np.repeat(targets, n + 1)
    of_donor = rng.choice(donors, of_target.size)
    place = np.tile(np.arange(n + 1), targets.size)
    swapped = _choose_columns(rng, of_target.size, table.shape[1])
    swapped[(place == 0) | (place > n // 2)] = False
    share = np.where(place > n // 2, rng.uniform(0, _FARTHEST, of_target.size), 0.0)
    columns = {
        name: _mix(table[name], of_target, of_donor, swapped[:, j], share) for j, name in enumerate(table)
    }
    return pd.DataFrame(columns)


def _choose_columns(rng: np.random.Generator, n_rows: int, n_columns: int) -> BoolArray:
    """Choose one to three columns in each row."""
    order = rng.random((n_rows, n_columns)).argsort(axis=1)
    wanted = rng.integers(1, min(_MOST_SWAPPED, n_columns) + 1, n_rows)
    return np.asarray(order < wanted[:, None])


def _mix(
    column: pd.Series, of_target: IntArray, of_donor: IntArray, swapped: BoolArray, share: FloatArray
) -> pd.Series:
    own, other = (column.iloc[rows].reset_index(drop=True) for rows in (of_target, of_donor))
    if not pd.api.types.is_numeric_dtype(column):
        return own.where(~swapped, other)
    moved = own + np.where(swapped, 1.0, share) * (other - own)
    if pd.api.types.is_integer_dtype(column):
        moved = moved.round().astype(column.dtype)
    return moved
