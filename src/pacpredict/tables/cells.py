"""Cells of a CSV file have no type: a column is of numbers, or of booleans, if nearly all of its cells are.

pandas makes a column text as soon as one cell is not a number. A single record would then decide what a column is, and
with it which queries are answered. Here cells that do not fit are missing as long as they are few and each is rare.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pacpredict.show import show_some
from pacpredict.tables.options import TableOptions
from pacpredict.tables.values import as_limit, as_number
from pacpredict.types import BoolArray, IntArray

# Cells that are not numbers, up to which they are taken for mistakes.
_MOST_MISTAKES = 0.05
# Cells that must be plain numbers: "<18" and ">18" alone are two categories.
_FEWEST_PLAIN = 0.5
_BOOLEANS = {"true": True, "false": False}


class Reading(NamedTuple):
    """A column of texts that is one of numbers or booleans."""

    kind: str
    values: list[Any]  # None where one is missing, or a mistake
    mistakes: list[str]
    limits: list[str]  # such as "<0.5", which counts as 0.5

    @property
    def warning(self) -> str | None:
        if not self.mistakes:
            return None
        return (
            f"has {self.kind}, and {show_some(self.mistakes, 3)} in few records, which is taken as missing: if that is "
            "wrong, declare what the column is (--types)"
        )


def settle_cells(frame: Any, options: TableOptions) -> tuple[Any, dict[str, Reading]]:
    """Return the frame of a CSV file with numbers and booleans in place of texts, and what was read so, by column.

    Columns with a declared type, and those that are not learned from, stay as they are.
    """
    names = list(map(str, frame.columns))
    options.check_of_table(names)
    units, readings = _units(frame, options), dict[str, Reading]()
    for name in options.features(names):
        if name in options.types or name == options.person or frame[name].dtype.kind in "biuf":
            continue
        for kind in _MEANINGS:
            if (reading := _read(frame[name], kind, units, options.min_category)) is not None:
                readings[name] = reading
    settled = frame.copy(deep=False)
    for name, reading in readings.items():
        settled[name] = reading.values
    return settled, readings


def _read(column: Any, kind: str, units: IntArray, min_category: int) -> Reading | None:
    """Return what the cells of a column mean if they are of a kind, but for few mistakes."""
    numbers, texts = column.factorize()
    codes, texts = numbers.astype(np.int64), texts.tolist()
    if not texts or not all(isinstance(text, str) for text in texts):
        return None
    meanings = list(map(_MEANINGS[kind], texts))
    is_mistake = np.array([meaning is None for meaning in meanings])
    is_limit = np.array([as_limit(text) is not None for text in texts]) & ~is_mistake
    if not (is_mistake | is_limit).any():
        return None  # pandas had its reasons
    if _share(is_mistake, codes) > _MOST_MISTAKES or _share(~is_mistake & ~is_limit, codes) < _FEWEST_PLAIN:
        return None
    if any(len(np.unique(units[codes == code])) >= min_category for code in np.flatnonzero(is_mistake)):
        return None
    values = [None if code < 0 else meanings[code] for code in codes]
    mistakes, limits = ([texts[i] for i in np.flatnonzero(marked)] for marked in (is_mistake, is_limit))
    return Reading(kind, values, mistakes, limits)


def _share(marked: BoolArray, codes: IntArray) -> float:
    return float(marked[codes[codes >= 0]].mean())


def _number(text: str) -> float | None:
    limit = as_limit(text)
    return as_number(text if limit is None else limit)


def _boolean(text: str) -> bool | None:
    return _BOOLEANS.get(text.strip().lower())


_MEANINGS: dict[str, Callable[[str], float | None]] = {"numbers": _number, "booleans": _boolean}


def _units(frame: Any, options: TableOptions) -> IntArray:
    """Return the number of each record's person or, where persons are not named, of its content."""
    from pandas.util import hash_pandas_object  # noqa: PLC0415  # takes time to import

    if options.person_per_row:
        return np.arange(len(frame))
    features = frame[options.features(list(map(str, frame.columns)))]
    keys = hash_pandas_object(features, index=False) if options.person is None else frame[options.person]
    return np.asarray(keys.factorize(use_na_sentinel=False)[0], np.int64)
