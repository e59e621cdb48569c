"""The forms in which whole values can come: bare, or as a column of a table."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pacpredict.exceptions import InvalidInput
from pacpredict.show import show_some
from pacpredict.tables.column import Values
from pacpredict.tables.forms import is_pandas, split


def values_of(given: Any, column: str, error: type[InvalidInput]) -> Values:
    """Return values that come bare, as the column of this name, or as the only column of a table."""
    if is_pandas(given, "Series"):
        return np.asarray(given, dtype=object)
    if isinstance(given, np.ndarray) and given.dtype.kind in "OU" and given.ndim == 2 and given.shape[1] == 1:
        return given[:, 0]
    if isinstance(given, Mapping):  # columns may be arrays of any dimension
        return _choose(list(given), list(given.values()), column, error)
    if is_pandas(given, "DataFrame") or _is_records(given):
        return _choose(*split(given, error), column, error)
    if isinstance(given, list | tuple | np.ndarray):
        return given
    raise error(
        f"{type(given).__name__} is not understood; give a list of values, or a table with a column {column!r}"
    )


def _choose(names: list[Any] | None, columns: list[Values], column: str, error: type[InvalidInput]) -> Values:
    if names is not None and column in names:
        return columns[names.index(column)]
    if len(columns) == 1:
        return columns[0]
    raise error(f"there is no column {column!r}; the columns are {show_some(names or [])}")


def _is_records(given: Any) -> bool:
    """Tell whether these are rows of a table; a mapping with bytes is a cell, as image data sets in Parquet have it."""
    return (
        isinstance(given, list | tuple)
        and bool(given)
        and isinstance(given[0], Mapping)
        and "bytes" not in given[0]
    )
