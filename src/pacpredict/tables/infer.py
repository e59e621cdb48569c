"""What the values of a column of the training data say, and what cannot be learned from."""

import shlex
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from itertools import islice
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacpredict.exceptions import InvalidTable
from pacpredict.show import show
from pacpredict.tables.column import OTHER, Category, Column, Kind, Values, as_floats
from pacpredict.tables.dates import DATES, guess_format
from pacpredict.tables.declared import Declared, categories_of_dtype, declare_column
from pacpredict.tables.values import LEAST_INEXACT_INTEGER, as_number, is_missing, is_number, is_storable
from pacpredict.types import FloatArray

_TIMES = (date, time, timedelta, np.datetime64, np.timedelta64)
# Different texts that are looked at to see whether a column has dates.
_LOOKED_AT = 1000


@dataclass(frozen=True, eq=False)
class Draft:
    """A column before it is known how many units have which of its values."""

    column: Column
    # Of each record its number or the position of its value, len(values) for "other"; NaN where it is missing.
    cells: FloatArray
    values: tuple[Category, ...] = ()  # to choose categories from
    is_open: bool = False  # whether categories are to be chosen
    may_be_text: bool = False


def draft_column(
    name: str, values: Values, of_dtype: list[Any] | None = None, declared: Declared | None = None
) -> Draft:
    """Return what the values of one column of the training data say.

    Booleans are booleans, other numbers are numbers, texts are categories or free text; dates are refused unless they
    are declared. `of_dtype` has the categories of pandas's category dtype: the order is theirs.
    """
    if not is_storable(name):
        raise InvalidTable(f"{show(name)} is not a column name: it is not valid Unicode")
    present = _present(values)
    if not len(present):
        raise InvalidTable(f"column {show(name)} has no values; drop it")
    if declared is not None:
        return _declared(name, values, present, declared, is_dtype=of_dtype is not None)
    if of_dtype is not None:
        column = Column(name, "category", is_dtype=True)
        return _among(column, values, categories_of_dtype(name, of_dtype))
    kind = _kind(name, present)
    if kind == "text":
        _check_texts(name, present)
        return _among(Column(name, "category"), values, _sorted(name, present), may_be_text=True)
    if kind == "number":
        _check_numbers(name, present)
    column = Column(name, kind)
    return Draft(column, _floats(column, values))


def _declared(name: str, values: Values, present: Values, declared: Declared, *, is_dtype: bool) -> Draft:
    if declared.kind == "number":
        is_array = isinstance(present, np.ndarray)
        _check_numbers(name, present if is_array else [value for value in present if is_number(value)])
    column = declare_column(name, values, declared)
    if declared.kind == "category":
        column = replace(column, is_dtype=is_dtype)
        if declared.categories is None:
            return _among(column, values, _sorted(name, present))
    if declared.kind == "text":  # whose texts tell contents apart
        return replace(
            _among(Column(name, "category"), values, _sorted(name, present)), column=column, is_open=False
        )
    return Draft(column, _floats(column, values))


def _among(
    column: Column, values: Values, distinct: tuple[Category, ...], *, may_be_text: bool = False
) -> Draft:
    listed = tuple(value for value in distinct if value != OTHER)  # which every column has
    return Draft(column, _floats(replace(column, categories=listed), values), listed, True, may_be_text)


def _floats(column: Column, values: Values) -> FloatArray:
    return np.asarray(column.numbers(values), np.float64)


def _sorted(name: str, present: Values) -> tuple[Category, ...]:
    """Return the different values, in an order that does not depend on that of the records."""
    distinct = list(dict.fromkeys(present.tolist() if isinstance(present, np.ndarray) else present))
    categories = categories_of_dtype(name, [str(one) if isinstance(one, str) else one for one in distinct])
    try:
        return tuple(sorted(categories))
    except TypeError as problem:
        raise InvalidTable(
            f"column {show(name)} mixes text and numbers: turn all of it into text"
        ) from problem


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


def _check_texts(name: str, present: Values) -> None:
    for value in present:
        if not is_storable(value):
            raise InvalidTable(f"column {show(name)} has a text that is not valid Unicode: {show(value)}")
    distinct = dict.fromkeys(str(value) for value in present)
    if (form := guess_format(islice(distinct, _LOOKED_AT))) is not None:
        raise _has_dates(name, next(iter(distinct)), form)


def _has_dates(name: str, example: Any, form: str) -> InvalidTable:
    shown = show(example) if isinstance(example, str) else f"{example}"[:10]
    wanted = f"date:{form}" if form else "date"
    return InvalidTable(
        f"column {show(name)} has dates, such as {shown}; to learn from the day as a number declare it a date "
        f"(--types {shlex.quote(name)}={wanted}, or types={{{name!r}: {wanted!r}}} in Python), or leave it out "
        f"(--drop {shlex.quote(name)})"
    )
