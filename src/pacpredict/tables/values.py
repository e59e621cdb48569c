"""What a single value of a table means, whatever type it comes as.

Nothing here raises for a value that comes from a network: huge integers, nested lists and broken Unicode included.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from pacpredict.types import FloatArray

# From here on not every integer is a float64: two records that differ would become one.
LEAST_INEXACT_INTEGER = 2**53

_BOOLEANS = {"true": True, "false": False}
# A value beyond what was measurable, as laboratories write it.
_LIMIT = re.compile(r"\s*(?:<=|>=|[<>≤≥])\s*")


def is_missing(value: Any) -> bool:
    """Tell whether it is None, NaN, NaT or pandas's NA; an empty text is a text."""
    if value is None:
        return True
    if isinstance(value, float | np.floating):
        return bool(value != value)  # noqa: PLR0124  # NaN, of any width
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    # By name: a server that was given no pandas object need not import pandas to know.
    return type(value).__name__ in {"NAType", "NaTType"} and type(value).__module__.startswith("pandas.")


def codes_by_column(texts: Iterable[str], columns: Iterable[str]) -> dict[str, list[str]]:
    """Return what means missing in each column: -9 does in all of them, age=-9 in the column age alone."""
    codes: dict[str, list[str]] = {name: [] for name in columns}
    for text in texts:
        name, sign, code = text.partition("=")
        is_of_one = sign and name in codes
        for of_column in [codes[name]] if is_of_one else codes.values():
            of_column.append(code if is_of_one else text)
    return codes


class MissingCodes:
    """Texts that an owner has declared to mean missing, such as "n/a"; "-9" means it as a number, too."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = frozenset(texts) - {
            ""
        }  # an empty text is missing only in a file, which has nothing else for it
        self._numbers = frozenset(number for text in self._texts if (number := _parse(text)) is not None)

    def __len__(self) -> int:
        return len(self._texts)

    def among(self, values: Iterable[Any]) -> list[bool]:
        """Tell which values of a column are codes."""
        return [self._has(value) for value in values]

    def without(self, values: Sequence[Any] | npt.NDArray[Any]) -> list[Any]:
        """Return the values of a column, with None in the place of a code."""
        return [None if self._has(value) else value for value in values]

    def without_numbers(self, numbers: FloatArray) -> FloatArray:
        """Return numbers with NaN in the place of a code."""
        return np.where(np.isin(numbers, list(self._numbers)), np.nan, numbers)

    def _has(self, value: Any) -> bool:
        if isinstance(value, str):
            return value in self._texts
        return (
            isinstance(value, int | float | np.number)
            and not isinstance(value, bool)
            and value in self._numbers
        )


def is_number(value: Any) -> bool:
    """Tell whether it is a real number of any library; True is 1 and False is 0, as in Python."""
    # NumPy counts durations among its integers.
    return isinstance(value, Real | Decimal | np.bool_) and not isinstance(value, np.timedelta64)


def as_number(value: Any) -> float | None:
    """Return the nearest float64, NaN if it is missing, None if it is no number or too large for one."""
    if isinstance(value, str):
        return _parse(value)
    if is_missing(value):
        return math.nan
    if not is_number(value):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def as_limit(text: str) -> str | None:
    """Return the limit in a text such as "<0.5" or ">= 100", as it is written; None if there is none."""
    sign = _LIMIT.match(text)
    return None if sign is None else text[sign.end() :]


def other_spellings(value: Any) -> Iterator[str | float]:
    """Yield other spellings of a value: 1 and "1" for "1.0", "1" for 1 and 1.0, "True" for True and "true"."""
    if isinstance(value, str):
        if (truth := _BOOLEANS.get(value.strip().lower())) is not None:
            yield truth
            yield str(truth)
        elif (number := _parse(value)) is not None:
            yield number
            yield _spelt(number)
    elif isinstance(value, bool | np.bool_):
        yield str(bool(value))
    elif (number := as_number(value)) is not None:
        yield _spelt(number)


def spelled(value: Any) -> str:
    """Return the one spelling of a value that all its spellings share."""
    *_, last = (value, *other_spellings(value))
    # Python refuses to write integers of more than 4,300 digits in decimal.
    return hex(last) if isinstance(last, int) and not isinstance(last, bool) else str(last)


def _spelt(number: float) -> str:
    """Return a number as people write it: whole numbers without a fraction."""
    is_whole = number.is_integer() and abs(number) < LEAST_INEXACT_INTEGER
    return str(int(number)) if is_whole else repr(number)


def is_storable(text: str) -> bool:
    """Tell whether a text is valid Unicode: JSON can carry half a surrogate pair, which has no UTF-8."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parse(text: str) -> float | None:
    # float() also takes 1_000, digits of other scripts, "nan" and "inf".
    if not text.isascii() or "_" in text:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
