"""The forms in which a table can come, taken apart into columns.

| form | columns are found |
|---|---|
| pandas frame | by name |
| mapping of names to columns | by name |
| list of mappings, one per row | by name |
| two-dimensional array, list of lists, frame with pandas's default names 0, 1, ... | by position |

pandas is not imported here: whoever passes a frame has imported it.
"""

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import InvalidInput
from pacpredict.show import show, show_some
from pacpredict.tables.column import Values


def split(table: Any, error: type[InvalidInput]) -> tuple[list[Any] | None, list[Values]]:
    """Return the names of the columns, None if they have none, and the values of each column."""
    if is_pandas(table, "DataFrame"):
        return _split_frame(table, error)
    if isinstance(table, Mapping):
        return list(table), [as_values(name, column, error) for name, column in table.items()]
    if isinstance(table, list | tuple):
        if not table:
            raise error("the table has no rows")
        if isinstance(table[0], Mapping):
            return _split_records(table, error)
        return None, _split_lists(table, error)
    if isinstance(table, np.ndarray):
        if table.ndim != 2 or table.dtype.names:
            raise error(f"the table must be two-dimensional, got an array of shape {table.shape}")
        values = without_mask(table)
        return None, [values[:, j] for j in range(values.shape[1])]
    raise error(
        f"a table of type {type(table).__name__} is not understood; give a pandas frame, a two-dimensional array "
        "(a sparse one after toarray()) or a list of rows"
    )


def as_values(name: Any, column: Any, error: type[InvalidInput]) -> Values:
    """Return the values of one column as something to iterate over."""
    if isinstance(column, list | tuple):
        return column
    if isinstance(column, np.ndarray) and column.ndim == 1:
        return without_mask(column)
    if is_pandas(column, "Series"):
        return _plain(column)
    raise error(f"column {show(name)} must be a list or a one-dimensional array, got {type(column).__name__}")


def dtype_categories(table: Any) -> dict[int, list[Any]]:
    """Return the categories of those columns of a frame that have pandas's category dtype, by position."""
    if not is_pandas(table, "DataFrame"):
        return {}
    return {
        j: dtype.categories.tolist()
        for j, dtype in enumerate(table.dtypes)
        if is_pandas(dtype, "CategoricalDtype")
    }


def _split_frame(frame: Any, error: type[InvalidInput]) -> tuple[list[Any] | None, list[Values]]:
    names = frame.columns.tolist()
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()].unique().tolist()
        raise error(f"column names must be unique; {show_some(twice)} occur more than once")
    has_default_names = names == list(range(len(names)))
    return None if has_default_names else names, [_plain(frame.iloc[:, j]) for j in range(len(names))]


def _split_records(
    records: list[Any] | tuple[Any, ...], error: type[InvalidInput]
) -> tuple[list[Any], list[Values]]:
    names = list(records[0])
    for row, record in enumerate(records):
        if not isinstance(record, Mapping) or record.keys() != records[0].keys():
            raise error(f"row {row} (from 0) does not have the same columns as the first row")
    return names, [[record[name] for record in records] for name in names]


def _split_lists(rows: list[Any] | tuple[Any, ...], error: type[InvalidInput]) -> list[Values]:
    for row, values in enumerate(rows):
        if not isinstance(values, list | tuple) and not (isinstance(values, np.ndarray) and values.ndim == 1):
            raise error(f"row {row} (from 0) must be a list of values, got {show(values)}")
        if len(values) != len(rows[0]):
            raise error(f"row {row} (from 0) has {len(values)} values, but the first has {len(rows[0])}")
    return list(zip(*rows, strict=True))


def _plain(series: Any) -> Values:
    """Return an array of booleans or numbers where that loses nothing, else one of objects with None for missing."""
    if isinstance(series.dtype, np.dtype) and series.dtype != np.dtype(object):
        return np.asarray(series)
    missing = np.asarray(series.isna(), dtype=np.bool_)
    # A nullable or Arrow dtype says what its values are; with none of them missing NumPy has the same type.
    if getattr(series.dtype, "kind", "O") in "biuf" and not missing.any():
        return np.asarray(series.to_numpy())
    values = np.array(series, dtype=object)
    values[missing] = None
    return values


def without_mask(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a plain array, with None for what a masked array hides."""
    plain = np.asarray(values)
    if isinstance(values, np.ma.MaskedArray):
        plain = plain.astype(object)
        plain[np.ma.getmaskarray(values)] = None
    return plain


def is_pandas(value: Any, class_name: str) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, getattr(pandas, class_name))
