"""Values in texts for people: short, on one line, whatever came over the network."""

from collections.abc import Iterable
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

# Enough of a text to recognise it by; the rest may be megabytes.
_SHOWN_CHARACTERS = 40
# From here on a factor is written with an exponent.
_MANY = 1_000_000


def show(value: Any) -> str:
    """Describe a value in an error: short, on one line, and never by a repr that is long or fails."""
    if isinstance(value, str):
        shown = str.__repr__(value[:_SHOWN_CHARACTERS])
        return shown if len(value) <= _SHOWN_CHARACTERS else f"{shown}... ({len(value):,} characters)"
    if value is None or isinstance(value, bool | float) or _is_numpy_number(value):
        return str(value)
    if isinstance(value, int):
        # Python refuses to print integers of more than 4,300 digits.
        return str(value) if value.bit_length() <= 64 else f"an integer of {value.bit_length():,} bits"
    return f"a value of type {type(value).__name__}"


def explain_format(what: str, found: Any, known: int, remedy: str = "fit again") -> str:
    """Say that something stored has a format that this version does not read, and what to do about it.

    Parameters
    ----------
    what
        The thing itself, as the subject of the sentence.
    found, known
        The number of its format, and that of the only format that is read.
    remedy
        How to make it anew if it is older.
    """
    is_older = isinstance(found, int) and found < known
    advice = remedy if is_older else "use the version that wrote it"
    return (
        f"{what} has format {show(found)}, but this version of pacpredict reads only format {known}: {advice}"
    )


def percent(share: float) -> str:
    """Write a share of 1 for people."""
    return f"{100 * share:.1f}%"


def percent_up(probability: float) -> str:
    """Write a bound on a rate in percent, rounded up: with two decimals, below 1% with four significant digits."""
    exact = Decimal(repr(probability)).scaleb(2)
    last = -2 if exact >= 1 or not exact else exact.adjusted() - 3
    return f"{exact.quantize(Decimal(1).scaleb(last), rounding=ROUND_CEILING).normalize():f}%"


def factor_up(limit: float) -> str:
    """Write by which factor odds move at most if their logarithm moves by no more than a limit, rounded up.

    With four significant digits, and at least two that tell it from 1.
    """
    logarithm = Decimal(repr(limit))
    digits = max(4, 2 - logarithm.adjusted())  # two more than tell 1 + limit from 1
    exact = Context(prec=digits + 30).exp(logarithm)
    shown = Context(prec=digits, rounding=ROUND_CEILING).normalize(exact)
    return f"{shown:,f}" if shown < _MANY else f"{shown:e}"


def show_some(values: list[Any], most: int = 5) -> str:
    """Describe the first few of many values."""
    shown = ", ".join(show(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown} and {len(values) - most} more"


def show_rows(is_meant: Iterable[bool]) -> str:
    """Say which rows are meant, the first few by their numbers."""
    return f"row {show_some([row for row, is_it in enumerate(is_meant) if is_it])} (from 0)"


def _is_numpy_number(value: Any) -> bool:
    """Tell by names: the terminal's help, which can show values, need not import NumPy."""
    kind = type(value)
    return kind.__module__ == "numpy" and kind.__name__ != "ndarray" and value.dtype.kind in "biufcm"
