"""Values that may mean missing: -9 or 999 among numbers, "unknown" among categories. A guess, for hints."""

import re
from typing import Any

import numpy as np

from pacpredict.tables.distinct import Distinct
from pacpredict.types import FloatArray

# What people write who do not know; "none" is left out, since it may be an answer.
_WORDS = re.compile(
    r"n\.?/?a\.?|#n/a|nan|null|\?+|-+|\.+|unknown|unk|missing|not (?:available|known|applicable)|unbekannt|k\.? ?a\.?"
    r"|keine angabe",
    re.IGNORECASE,
)
_NEGATIVE = {-1.0, -7.0, -8.0, -9.0}
# Fewer records with a code are no habit, and fewer other numbers no quantity: -1, 0 and 1 are an answer each. Far from
# two answers or more, a code is one all the same: -99 beside grades from 1 to 4.
_FEWEST = 3
_FEWEST_OTHERS = 5
_FEWEST_ANSWERS = 2


def codes_for_missing(given: Distinct, numbers: FloatArray | None) -> dict[str, int]:
    """Return the values of a column that may mean missing, as they are written, and how many records have each.

    `numbers` are those that its different values stand for, if they stand for any.
    """
    counts = np.bincount(given.codes[given.codes >= 0], minlength=len(given.distinct)).tolist()
    if numbers is None:
        pairs = zip(given.distinct, counts, strict=True)
        return {text: n for text, n in pairs if isinstance(text, str) and _WORDS.fullmatch(text.strip())}
    codes = _codes_among(numbers, counts)
    spelt = zip(numbers.tolist(), given.distinct, counts, strict=True)
    found = [(codes.index(number), _as_written(value), n) for number, value, n in spelt if number in codes]
    return {text: n for _, text, n in sorted(found, key=lambda each: each[0])}


def _codes_among(numbers: FloatArray, counts: list[int]) -> list[float]:
    """Return numbers that look like codes, those at the lower end first; 999 and 999,0 are one."""
    values, which = np.unique(numbers, return_inverse=True)
    records = np.bincount(which, weights=counts)
    found = []
    while (at := _isolated(values)) is not None and records[at] >= _FEWEST:
        found.append(float(values[at]))
        values, records = np.delete(values, at), np.delete(records, at)
    return found


def _as_written(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.0f}"


def _isolated(numbers: FloatArray) -> int | None:
    """Return which end of sorted numbers looks like a code: one of the usual ones, apart from all others."""
    if len(numbers) <= _FEWEST_ANSWERS:
        return None
    if _is_nines(-numbers[0]) or numbers[0] in _NEGATIVE:
        is_only_negative = numbers[1] >= 0 and len(numbers) > _FEWEST_OTHERS
        if is_only_negative or numbers[1] - numbers[0] > numbers[-1] - numbers[1]:
            return 0
    if _is_nines(numbers[-1]) and numbers[-1] - numbers[-2] > numbers[-2] - numbers[0]:
        return len(numbers) - 1
    return None


def _is_nines(number: float) -> bool:
    """Tell whether it is 99, 999, 9999 and so on."""
    return number.is_integer() and number >= 99 and set(f"{number:.0f}") == {"9"}
