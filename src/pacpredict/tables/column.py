"""One column of a table: its kind, and its values as numbers and back."""

import math
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import InvalidModel, InvalidQuery
from pacpredict.show import show
from pacpredict.tables.dates import days, days_of_array
from pacpredict.tables.separators import guess_forms, is_form, number_written
from pacpredict.tables.values import (
    LEAST_INEXACT_INTEGER,
    as_limit,
    as_number,
    is_missing,
    is_number,
    is_storable,
    other_spellings,
    spelled,
)
from pacpredict.types import FloatArray

Kind = Literal["number", "boolean", "category", "text", "date"]
Category = str | int | float | bool
Values = Sequence[Any] | npt.NDArray[Any]  # of one column

KINDS: tuple[Kind, ...] = get_args(Kind)
# The category of every value that a column does not list. A value of this name is one of them.
OTHER = "other"


@dataclass(frozen=True)
class Column:
    """What queries and models know about a column: no value of a single record.

    Attributes
    ----------
    categories
        The listed categories. Every other value, whether training had it or not, is the one category "other".
    is_declared
        Whether the owner declared the list, which then is public; otherwise it was learned from the pool.
    is_dtype
        Whether frames for pipelines have it in pandas's category dtype.
    form
        How values are written. Dates: a format of strptime, "" for ISO 8601. Numbers: 1234.5 as an example, or "".
    """

    name: str
    kind: Kind
    categories: tuple[Category, ...] = ()
    is_declared: bool = False
    is_dtype: bool = False
    form: str = ""

    @property
    def example_date(self) -> str:
        """A date as this column's are written, for people."""
        return datetime(2024, 12, 31, 23, 59, tzinfo=UTC).strftime(self.form or "%Y-%m-%d")

    @property
    def n_codes(self) -> int:
        """The number of codes that models see in place of categories, "other" included; 0 of other columns."""
        return len(self.categories) + 1 if self.kind == "category" else 0

    def numbers(self, values: Values) -> FloatArray | list[float]:
        """Return one number per value, NaN where it is missing; of a text only whether it is missing.

        Numbers may come as text ("39", or "<0.5" for 0.5), booleans as 0, 1, "true" or "false", and a category 1 as 1,
        1.0 or "1". A category that is not listed is "other". Dates are days since 1970. Infinities pass: the schema
        looks for them once in all columns.
        """
        if self.kind == "number":
            return self._as_numbers(values)
        if self.kind == "date":
            return self._as_days(values)
        if self.kind == "text":
            return [math.nan if is_missing(value) else 0.0 for value in values]
        # Elements of an object array are what was put in; others become Python's, which are looked up faster.
        # Dates stay, since tolist would turn them into integers.
        if isinstance(values, np.ndarray) and values.dtype.kind in "biufU":
            values = values.tolist()
        codes = self._codes
        try:
            return [codes[value] for value in values]
        except (KeyError, TypeError):  # missing, not listed, spelled otherwise, or not hashable
            return [self._code(row, value) for row, value in enumerate(values)]

    def texts(self, values: Values) -> tuple[str, ...]:
        """Return the values of a text column, "" where one is missing."""
        return tuple(self._text(row, value) for row, value in enumerate(values))

    def unlisted(self, values: Values, codes: FloatArray) -> tuple[str, ...]:
        """Return the values that are "other", spelled alike however they came, and "" for all others."""
        other = self.n_codes - 1
        return tuple(
            spelled(value) if code == other else "" for value, code in zip(values, codes, strict=True)
        )

    def decode(self, numbers: FloatArray) -> list[Category | None]:
        """Return the values that numbers of this column stand for, None where one is missing."""
        meanings: dict[float, Category] = dict(enumerate(self._meanings))
        return [meanings.get(number) for number in numbers.tolist()]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "categories": list(self.categories)}

    @classmethod
    def from_json(cls, stored: Any) -> "Column":
        """Return what to_json gave; anything else is an InvalidModel that says what is wrong."""
        expected = {
            "name": str,
            "kind": str,
            "categories": list,
            "is_declared": bool,
            "is_dtype": bool,
            "form": str,
        }
        if not isinstance(stored, dict) or stored.keys() != expected.keys():
            raise InvalidModel(f"a stored column must have the fields {', '.join(expected)} and no others")
        for field, kind in expected.items():
            if type(stored[field]) is not kind:
                raise InvalidModel(f"field {field!r} of a stored column must be a {kind.__name__}")
        column = cls(**{**stored, "categories": tuple(stored["categories"])})
        column._check()
        return column

    def _check(self) -> None:
        """Refuse a stored column that cannot be."""
        name, kind, categories = show(self.name), self.kind, self.categories
        if not is_storable(self.name):
            raise InvalidModel(f"{name} is not a column name: it is not valid Unicode")
        if kind not in KINDS:
            raise InvalidModel(f"column {name} has the unknown kind {show(kind)}")
        if (categories or self.is_declared or self.is_dtype) and kind != "category":
            raise InvalidModel(f"column {name} of kind {kind} has what only categories have")
        if self.form and kind not in {"date", "number"}:
            raise InvalidModel(f"column {name} of kind {kind} has what only dates or numbers have")
        if kind == "number" and self.form and not is_form(self.form):
            raise InvalidModel(f"column {name} has numbers in the unknown form {show(self.form)}")
        if not all(map(is_category, categories)) or len(set(categories)) < len(categories):
            raise InvalidModel(f"the categories of column {name} are not distinct texts and numbers")

    @property
    def _meanings(self) -> tuple[Category, ...]:
        return (False, True) if self.kind == "boolean" else (*self.categories, OTHER)

    @cached_property
    def _codes(self) -> dict[Any, float]:
        return {None: math.nan, **{value: float(code) for code, value in enumerate(self._meanings)}}

    def _as_numbers(self, values: Values) -> FloatArray | list[float]:
        if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
            return as_floats(values)
        numbers = []
        for row, value in enumerate(values):
            number = value if type(value) is float else self._number(value)
            if number is None:
                raise self.refusal(row, self._no_number(value))
            numbers.append(number)
        return numbers

    def _number(self, value: Any) -> float | None:
        if not isinstance(value, str):
            return as_number(value)
        limit = as_limit(value)
        text = value if limit is None else limit
        return number_written(text, self.form) if self.form else as_number(text)

    def _no_number(self, value: Any) -> str:
        if self.form:
            return f"expected a number written as {self.form}, got {_given(value)}"
        problem = f"expected a number, got {_given(value)}"
        if not isinstance(value, str) or not (forms := guess_forms([value])):
            return problem
        ways = " or ".join(f"--types {shlex.quote(f'{self.name}=number:{form}')}" for form in forms)
        return f"{problem}; write it without separators, or fit with {ways} (in Python types=)"

    def _as_days(self, values: Values) -> FloatArray | list[float]:
        if isinstance(values, np.ndarray) and values.dtype.kind == "M":
            return days_of_array(values)
        numbers = []
        for row, value in enumerate(values):
            number = math.nan if is_missing(value) else days(value, self.form)
            if number is None:
                raise self.refusal(row, f"expected a date like {self.example_date}, got {_given(value)}")
            numbers.append(number)
        return numbers

    def _code(self, row: int, value: Any) -> float:
        if is_missing(value):
            return math.nan
        if not isinstance(value, str) and not is_number(value):
            raise self.refusal(row, f"expected a {self.kind}, got {show(value)}")
        for spelling in (value, *other_spellings(value)):
            if (code := self._codes.get(spelling)) is not None:
                return code
        if self.kind == "boolean":
            raise self.refusal(row, f"expected true, false, 1 or 0, got {show(value)}")
        return self._codes[OTHER]

    def _text(self, row: int, value: Any) -> str:
        if is_missing(value):
            return ""
        if not isinstance(value, str):
            raise self.refusal(row, f"expected a text, got {show(value)}")
        if not is_storable(value):
            raise self.refusal(row, f"{show(value)} is not valid Unicode")
        return str(value)

    def refusal(self, row: int, problem: str) -> InvalidQuery:
        return InvalidQuery(f"column {show(self.name)}, row {row} (from 0): {problem}", int(row))


def _given(value: Any) -> str:
    """Show a value that does not fit; a blank text, with what one sends for a missing value."""
    is_blank = isinstance(value, str) and not value.strip()
    return f"{show(value)} (a missing value is null in JSON, None in Python)" if is_blank else show(value)


def as_floats(values: npt.NDArray[Any]) -> FloatArray:
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes an infinity, which is found later
        return values.astype(np.float64)


def is_category(value: Any) -> bool:
    """Tell whether a value can name a category: it is stored exactly, and is equal to itself in any spelling."""
    if isinstance(value, str):
        return type(value) is str and is_storable(value)
    if type(value) is int:
        return abs(value) < LEAST_INEXACT_INTEGER
    return type(value) is bool or (type(value) is float and math.isfinite(value))
