"""Values in texts for people: short, on one line, whatever came over the network."""

from collections.abc import Iterable
from typing import Any

# Enough of a text to recognise it by; the rest may be megabytes.
_SHOWN_CHARACTERS = 40


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
    return f"{100 * share:.1f} %"


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
