"""One column of a table: its kind, and its values as numbers and back."""

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
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
)
from pacpredict.types import FloatArray

Kind = Literal["number", "boolean", "category", "text", "date"]
Unknown = Literal["refuse", "missing"]
Category = str | int | float | bool
Values = Sequence[Any] | npt.NDArray[Any]  # of one column

KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Column:
    """What is known about a column from the training data; no value of a single record."""

    name: str
    kind: Kind
    categories: tuple[Category, ...] = ()
    has_missing: bool = False
    is_declared: bool = False  # the categories are those of a pandas category dtype, not those that occurred
    has_limits: bool = False  # of numbers: "<0.5" is taken as 0.5, since the training data had such
    # Of texts. Dates: as strptime has it, "" is ISO 8601. Numbers: 1234.5 as an example, "" is as programs write them.
    form: str = ""

    @property
    def example_date(self) -> str:
        """A date as this column's are written, for people."""
        return datetime(2024, 12, 31, 23, 59, tzinfo=UTC).strftime(self.form or "%Y-%m-%d")

    def numbers(self, values: Values, unknown: Unknown) -> FloatArray | list[float]:
        """Return one number per value, NaN where it is missing; of a text only whether it is missing.

        Numbers may come as text ("39"), booleans as 0, 1, "true" or "false", and a category 1 as 1, 1.0 or "1". Dates
        are days since 1970.
        Infinities pass: whoever has all columns looks for them once.
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
        except (
            KeyError,
            TypeError,
        ):  # one of them is missing, unknown, spelled otherwise or cannot be hashed
            return [self._code(row, value, unknown) for row, value in enumerate(values)]

    def texts(self, values: Values) -> tuple[str, ...]:
        """Return the values of a text column, "" where one is missing."""
        return tuple(self._text(row, value) for row, value in enumerate(values))

    def decode(self, numbers: FloatArray) -> list[Category | None]:
        """Return the values that numbers of this column stand for, None where one is missing."""
        meanings: dict[float, Category] = dict(enumerate(self._meanings))
        return [meanings.get(number) for number in numbers.tolist()]

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": self.kind,
            "categories": list(self.categories),
            "has_missing": self.has_missing,
            "is_declared": self.is_declared,
            # Only where there is something to say: a column that the first release could have had is written as then.
            **({"has_limits": True} if self.has_limits else {}),
            **({"form": self.form} if self.form else {}),
        }

    @classmethod
    def from_json(cls, stored: Any) -> "Column":
        """Return what to_json gave; anything else is an InvalidModel that says what is wrong."""
        fields = {"name": str, "kind": str, "categories": list, "has_missing": bool, "is_declared": bool}
        more = {"has_limits": bool, "form": str}
        if not isinstance(stored, dict) or not fields.keys() <= stored.keys() <= (fields | more).keys():
            raise InvalidModel(f"a stored column must have the fields {', '.join(fields)} and no others")
        for field, expected in (fields | more).items():
            if field in stored and type(stored[field]) is not expected:
                raise InvalidModel(f"field {field!r} of a stored column must be a {expected.__name__}")
        name, kind, categories = stored["name"], stored["kind"], stored["categories"]
        if not is_storable(name):
            raise InvalidModel(f"{show(name)} is not a column name: it is not valid Unicode")
        if kind not in KINDS:
            raise InvalidModel(f"column {show(name)} has the unknown kind {show(kind)}")
        if bool(categories) is not (kind == "category"):
            raise InvalidModel(f"column {show(name)} of kind {kind} has {len(categories)} categories")
        if ("form" in stored and kind not in {"date", "number"}) or (
            "has_limits" in stored and kind != "number"
        ):
            raise InvalidModel(f"column {show(name)} of kind {kind} has what only dates or numbers have")
        if kind == "number" and "form" in stored and not is_form(stored["form"]):
            raise InvalidModel(f"column {show(name)} has numbers in the unknown form {show(stored['form'])}")
        if not all(map(is_category, categories)) or len(set(categories)) < len(categories):
            raise InvalidModel(f"the categories of column {show(name)} are not distinct texts and numbers")
        return cls(
            name,
            kind,
            tuple(categories),
            stored["has_missing"],
            stored["is_declared"],
            stored.get("has_limits", False),
            stored.get("form", ""),
        )

    @property
    def _meanings(self) -> tuple[Category, ...]:
        return (False, True) if self.kind == "boolean" else self.categories

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
        limit = as_limit(value) if self.has_limits else None
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

    def _code(self, row: int, value: Any, unknown: Unknown) -> float:
        if is_missing(value):
            return math.nan
        if not isinstance(value, str) and not is_number(value):
            raise self.refusal(row, f"expected a {self.kind}, got {show(value)}")
        for spelling in (value, *other_spellings(value)):
            if (code := self._codes.get(spelling)) is not None:
                return code
        if self.kind == "boolean":
            raise self.refusal(row, f"expected true, false, 1 or 0, got {show(value)}")
        if unknown == "missing":
            return math.nan
        raise self.refusal(
            row,
            # Which ones there are is for the owner to say: they were read from the training data.
            f"{_given(value)} is none of the categories of this column; "
            "a model fitted with --unknown missing (unknown='missing' in Python) takes such values as missing",
        )

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
