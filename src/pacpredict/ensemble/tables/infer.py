"""What the columns of a training table are, and what cannot be learned from."""

from datetime import date, time, timedelta
from numbers import Integral
from typing import Any

import numpy as np

from pacpredict.ensemble.tables.column import Category, Column, Kind, Values, as_floats, is_category
from pacpredict.ensemble.tables.values import (
    LEAST_INEXACT_INTEGER,
    as_number,
    is_missing,
    is_number,
    is_storable,
    show,
)
from pacpredict.exceptions import InvalidTable

# What scikit-learn's boosted trees can tell apart. Many more names than this are closer to a list of records.
MOST_CATEGORIES = 255

# A longer text is a sentence, not the name of a category.
LONGEST_CATEGORY = 100

_DATES = (date, time, timedelta, np.datetime64, np.timedelta64)


def infer_column(name: str, values: Values, declared: list[Any] | None = None) -> Column:
    """Return the column that these values of the training data make.

    Booleans are booleans, other numbers are numbers. Texts are categories if there are at most 255 different ones, none
    longer than 100 characters, and free text otherwise. Who knows better says so with pandas's category dtype: its
    declared categories are taken as they are, with their order and with those that do not occur.
    """
    if not is_storable(name):
        raise InvalidTable(f"{show(name)} is not a column name: it is not valid Unicode")
    present = _present(values)
    if not len(present):
        raise InvalidTable(f"column {show(name)} has no values; drop it")
    has_missing = len(present) < len(values)
    if declared is not None:
        return Column(name, "category", _declared(name, declared), has_missing, is_declared=True)
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
    if all(issubclass(each, _DATES) for each in types):
        advice = "turn it into a number that matters to the prediction, such as an age in days or a month"
    elif all(isinstance(value, str) or is_number(value) for value in present):
        advice = "turn all of it into text with astype(str), or into numbers with pandas.to_numeric"
    else:
        advice = "turn it into numbers, booleans or text, or drop it"
    found = ", ".join(sorted(each.__name__ for each in types))
    raise InvalidTable(f"column {show(name)} cannot be used, since it has values of type {found}; {advice}")


def _check_numbers(name: str, present: Values) -> None:
    if isinstance(present, np.ndarray):
        numbers = as_floats(present)
        is_large = present.dtype.kind in "iu" and bool((np.abs(numbers) >= LEAST_INEXACT_INTEGER).any())
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


def _categories(name: str, present: Values) -> tuple[str, ...]:
    """Return the categories of a column of texts, none if it is free text."""
    for value in present:
        if not is_storable(value):
            raise InvalidTable(f"column {show(name)} has a text that is not valid Unicode: {show(value)}")
    distinct = {str(value) for value in present}
    if len(distinct) > MOST_CATEGORIES or max(map(len, distinct)) > LONGEST_CATEGORY:
        return ()
    return tuple(sorted(distinct))  # an order that does not depend on that of the records


def _declared(name: str, declared: list[Any]) -> tuple[Category, ...]:
    categories = tuple(value.item() if isinstance(value, np.generic) else value for value in declared)
    for value in categories:
        if not is_category(value):
            raise InvalidTable(
                f"column {show(name)} has the category {show(value)}; categories must be texts, booleans, finite "
                "numbers or integers below 2**53: turn the column into text with astype(str)"
            )
    return categories
