"""Values that may mean missing: -9 or 999 among numbers, "unknown" among categories. A guess, for hints."""

import re

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


def codes_for_missing(given: Distinct, *, is_number: bool) -> dict[str, int]:
    """Return the values of a column that may mean missing, as one would write them, and how many records have each."""
    counts = np.bincount(given.codes[given.codes >= 0], minlength=len(given.distinct))
    if not is_number:
        pairs = zip(given.distinct, counts.tolist(), strict=True)
        return {text: n for text, n in pairs if isinstance(text, str) and _WORDS.fullmatch(text.strip())}
    numbers, found = np.array(given.distinct, np.float64), {}
    order = np.argsort(numbers)
    numbers, counts = numbers[order], counts[order]
    while (at := _isolated(numbers)) is not None and counts[at] >= _FEWEST:
        found[f"{numbers[at]:.0f}"] = int(counts[at])
        numbers, counts = np.delete(numbers, at), np.delete(counts, at)
    return found


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
