"""What a single value of a table means, whatever type it comes as.

Nothing here raises for a value that comes from a network: huge integers, nested lists and broken Unicode included.
"""

import math
from collections.abc import Iterator
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

# From here on not every integer is a float64: two records that differ would become one.
LEAST_INEXACT_INTEGER = 2**53

# Enough of a text to recognise it by; the rest may be megabytes.
_SHOWN_CHARACTERS = 40

_BOOLEANS = {"true": True, "false": False}


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


def other_spellings(value: Any) -> Iterator[str | float]:
    """Yield what else means the same: 1 for "1" and "1" for 1 and 1.0, True for "true" and "True" for True."""
    if isinstance(value, str):
        if (truth := _BOOLEANS.get(value.strip().lower())) is not None:
            yield truth
        elif (number := _parse(value)) is not None:
            yield number
    elif isinstance(value, bool | np.bool_):
        yield str(bool(value))
    elif (number := as_number(value)) is not None:
        is_whole = number.is_integer() and abs(number) < LEAST_INEXACT_INTEGER
        yield str(int(number)) if is_whole else repr(number)


def is_storable(text: str) -> bool:
    """Tell whether a text is valid Unicode: JSON can carry half a surrogate pair, which has no UTF-8."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def show(value: Any) -> str:
    """Describe a value in an error: short, on one line, and never by a repr that is long or fails."""
    if isinstance(value, str):
        shown = str.__repr__(value[:_SHOWN_CHARACTERS])
        return shown if len(value) <= _SHOWN_CHARACTERS else f"{shown}... ({len(value):,} characters)"
    if value is None or isinstance(value, bool | float | np.number | np.bool_):
        return str(value)
    if isinstance(value, int):
        # Python refuses to print integers of more than 4,300 digits.
        return str(value) if value.bit_length() <= 64 else f"an integer of {value.bit_length():,} bits"
    return f"a value of type {type(value).__name__}"


def show_some(values: list[Any], most: int = 5) -> str:
    """Describe the first few of many values."""
    shown = ", ".join(show(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown} and {len(values) - most} more"


def _parse(text: str) -> float | None:
    # float() also takes 1_000, digits of other scripts, "nan" and "inf".
    if not text.isascii() or "_" in text:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
