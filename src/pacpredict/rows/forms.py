"""The forms in which whole values can come: bare, or as a column of a table."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from pacpredict.exceptions import InvalidInput, InvalidQuery
from pacpredict.show import show, show_some
from pacpredict.tables.column import Values
from pacpredict.tables.forms import is_pandas, split

Read = TypeVar("Read")

# Rows that an error names; the others are counted.
_MOST_NAMED = 10


class Unusable(ValueError):
    """Says what is wrong with one value; whoever knows its row turns it into an error of this package."""


def read_each(values: Iterable[Any], read: Callable[[Any], Read], error: type[InvalidInput]) -> list[Read]:
    """Return what is read from each value; one error names all that cannot be used, to be mended in one go."""
    found: list[Read] = []
    problems: list[tuple[int, str, str]] = []
    for row, value in enumerate(values):
        try:
            found.append(read(value))
        except Unusable as problem:
            problems.append((row, f"row {row} (from 0){_file(value)}", str(problem)))
    if not problems:
        return found
    said = _in_words(problems, len(problems) + len(found))
    raise InvalidQuery(said, problems[0][0]) if error is InvalidQuery else error(said)


def _in_words(problems: list[tuple[int, str, str]], n_rows: int) -> str:
    """Say each problem once, after the rows that have it."""
    places: dict[str, list[str]] = {}
    for _, place, problem in problems[:_MOST_NAMED]:
        places.setdefault(problem, []).append(place)
    said = "; ".join(f"{', '.join(rows)}: {problem}" for problem, rows in places.items())
    n_others = len(problems) - _MOST_NAMED
    return f"{said}; and {n_others:,} more of {n_rows:,} rows" if n_others > 0 else said


def _file(value: Any) -> str:
    """Say which file a row comes from, where that is known: nobody counts the images of a folder."""
    path = value.get("path") if isinstance(value, Mapping) else None
    return f", file {show(path)}" if isinstance(path, str) else ""


def values_of(given: Any, column: str, error: type[InvalidInput]) -> Values:
    """Return values that come bare, as the column of this name, or as the only column of a table."""
    if isinstance(given, np.ndarray) and given.dtype.kind in "OU" and given.ndim == 2 and given.shape[1] == 1:
        return given[:, 0]
    if isinstance(given, Mapping):  # columns may be arrays of any dimension
        chosen = _choose(list(given), list(given.values()), column, error)
        if (values := _listed(chosen)) is None:
            raise error(f"column {show(column)} must be a list or an array, got {type(chosen).__name__}")
        return values
    if is_pandas(given, "DataFrame") or _is_records(given):
        return _choose(*split(given, error), column, error)
    if (values := _listed(given)) is None:
        raise error(
            f"{type(given).__name__} is not understood; give a list of values, an array of NumPy, or a table with a "
            f"column {column!r}"
        )
    return values


def _listed(given: Any) -> Values | None:
    """Return several values; None for what only looks like that: a text has letters, and an object keys."""
    if is_pandas(given, "Series"):
        return np.asarray(given, dtype=object)
    is_several = isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.ndim > 0)
    return given if is_several else None


def _choose(names: list[Any] | None, columns: list[Any], column: str, error: type[InvalidInput]) -> Any:
    if names is not None and column in names:
        return columns[names.index(column)]
    if len(columns) == 1:
        return columns[0]
    known = show_some(names or [])
    raise error(f"there is no column {column!r}; the columns are {known}: rename the one that is meant")


def _is_records(given: Any) -> bool:
    """Tell whether these are rows of a table; a mapping with bytes is a cell, as image data sets in Parquet have it."""
    return (
        isinstance(given, list | tuple)
        and bool(given)
        and isinstance(given[0], Mapping)
        and "bytes" not in given[0]
    )
