"""What the columns of a training table are, and what cannot be learned from."""

import shlex
from datetime import date, time, timedelta
from itertools import islice
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacpredict.exceptions import InvalidTable
from pacpredict.show import show
from pacpredict.tables.column import Column, Kind, Values, as_floats
from pacpredict.tables.dates import DATES, guess_format
from pacpredict.tables.declared import MOST_CATEGORIES, Declared, declare_column, declared_categories
from pacpredict.tables.values import LEAST_INEXACT_INTEGER, as_number, is_missing, is_number, is_storable
from pacpredict.types import FloatArray

# A longer text is a sentence, not the name of a category.
LONGEST_CATEGORY = 100

_TIMES = (date, time, timedelta, np.datetime64, np.timedelta64)
# Different texts that are looked at to see whether a column has dates.
_LOOKED_AT = 1000


def infer_column(
    name: str, values: Values, of_dtype: list[Any] | None = None, declared: Declared | None = None
) -> Column:
    """Return the column that these values of the training data make.

    Booleans are booleans, other numbers are numbers. Texts are categories if there are at most 255 different ones, none
    longer than 100 characters, and free text otherwise; dates are refused. Whoever knows better declares what a column
    is, or gives it pandas's category dtype: the categories `of_dtype` are taken as they are, with their order and with
    those that do not occur.
    """
    if not is_storable(name):
        raise InvalidTable(f"{show(name)} is not a column name: it is not valid Unicode")
    present = _present(values)
    if not len(present):
        raise InvalidTable(f"column {show(name)} has no values; drop it")
    has_missing = len(present) < len(values)
    if declared is not None:
        if declared.kind == "number":
            is_array = isinstance(present, np.ndarray)
            _check_numbers(name, present if is_array else [value for value in present if is_number(value)])
        return declare_column(name, values, has_missing, declared)
    if of_dtype is not None:
        return Column(name, "category", declared_categories(name, of_dtype), has_missing, is_declared=True)
    kind = _kind(name, present)
    if kind == "number":
        _check_numbers(name, present)
    categories = _categories(name, present) if kind == "text" else ()
    return Column(name, "category" if categories else kind, categories, has_missing)


def _present(values: Values) -> Values:
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return values[~np.isnan(values)]
    return [value for value in values if not is_missing(value)]


def _kind(name: str, present: Values) -> Kind:
    if isinstance(present, np.ndarray):
        return "boolean" if present.dtype.kind == "b" else "number"
    types = set(map(type, present))
    if all(issubclass(each, bool | np.bool_) for each in types):
        return "boolean"
    if all(map(is_number, present)):
        return "number"
    if all(issubclass(each, str) for each in types):
        return "text"
    if all(issubclass(each, DATES) for each in types):
        raise _has_dates(name, present[0], "")
    if all(issubclass(each, _TIMES) for each in types):
        advice = "turn it into a number that matters to the prediction, such as hours"
    elif all(isinstance(value, str) or is_number(value) for value in present):
        advice = "turn all of it into text with astype(str), or into numbers with pandas.to_numeric"
    elif all(issubclass(each, bytes | dict) for each in types):
        advice = f"if it has images, learn from these: --input {shlex.quote(name)} --features lite2; otherwise drop it"
    else:
        advice = "turn it into numbers, booleans or text, or drop it"
    found = ", ".join(sorted(each.__name__ for each in types))
    raise InvalidTable(f"column {show(name)} cannot be used, since it has values of type {found}; {advice}")


def _check_numbers(name: str, present: Values) -> None:
    if isinstance(present, np.ndarray):
        numbers = as_floats(present)
        is_large = _are_integers(present, numbers) and bool((np.abs(numbers) >= LEAST_INEXACT_INTEGER).any())
    else:
        numbers = np.array([as_number(value) for value in present], dtype=np.float64)  # NaN if beyond float64
        is_large = any(isinstance(v, Integral) and abs(int(v)) >= LEAST_INEXACT_INTEGER for v in present)
    if is_large:
        raise InvalidTable(
            f"column {show(name)} has integers of 2**53 or more, which are not kept exactly; "
            "drop it if it is an identifier, divide it if it is a quantity"
        )
    if n_infinite := int(np.sum(~np.isfinite(numbers))):
        raise InvalidTable(
            f"column {show(name)} has infinite numbers ({n_infinite:,} of them); "
            "replace them by a largest value, or by NaN if they are unknown"
        )


def _are_integers(present: NDArray[Any], numbers: FloatArray) -> bool:
    """Tell integers, also those that became floats because a value is missing; no computer counts beyond 2^64."""
    return present.dtype.kind in "iu" or bool(
        ((numbers == np.rint(numbers)) & (np.abs(numbers) < 2.0**64)).all()
    )


def _categories(name: str, present: Values) -> tuple[str, ...]:
    """Return the categories of a column of texts, none if it is free text."""
    for value in present:
        if not is_storable(value):
            raise InvalidTable(f"column {show(name)} has a text that is not valid Unicode: {show(value)}")
    distinct = dict.fromkeys(str(value) for value in present)
    if (form := guess_format(islice(distinct, _LOOKED_AT))) is not None:
        raise _has_dates(name, next(iter(distinct)), form)
    if len(distinct) > MOST_CATEGORIES or max(map(len, distinct)) > LONGEST_CATEGORY:
        return ()
    return tuple(sorted(distinct))  # an order that does not depend on that of the records


def _has_dates(name: str, example: Any, form: str) -> InvalidTable:
    shown = show(example) if isinstance(example, str) else f"{example}"[:10]
    wanted = f"date:{form}" if form else "date"
    return InvalidTable(
        f"column {show(name)} has dates, such as {shown}; to learn from the day as a number declare it a date "
        f"(--types {shlex.quote(name)}={wanted}, or types={{{name!r}: {wanted!r}}} in Python), or leave it out "
        f"(--drop {shlex.quote(name)})"
    )
