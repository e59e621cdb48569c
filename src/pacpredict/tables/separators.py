"""Numbers as people and spreadsheets write them: 1,234.5 or 1.234,5 or € 1 200.

How a column is written is declared by an example, the number 1234.5: `number:1.234,5`. The example alone decides what
1,234 is, since the number itself does not say. What does not fit it is no number.
"""

import math
import re
from collections.abc import Iterable
from functools import cache

from pacpredict.tables.values import as_number

# Blanks that keep numbers on one line, the other apostrophe of the Swiss, and the minus of typesetters.
_SAME = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2019": "'", "\u2212": "-"})
_UNIT = r"[^\d+\-.,'<>=≤≥]*"
_EXAMPLE = re.compile(rf"(?P<before>{_UNIT}?)1(?P<group>[,. ']?)234(?P<decimal>[.,])5(?P<after>{_UNIT})")
# In the order in which they are proposed; each has its own meaning for some text.
_USUAL = ("1,234.5", "1.234,5", "1 234,5", "1'234.5", "1 234.5", "1'234,5")
# A unit by which a text is guessed to be an amount. Others must be declared: P0012 is no amount of P.
_KNOWN_UNIT = re.compile(r"\s*(?:%|‰|EUR|USD|GBP|CHF|Fr\.|[A-Z]{0,2}[$€£¥₹])\s*")
# Texts that must be numbers for a column to be taken as one of numbers; the others may be mistakes or codes.
_MOST = 0.95
# Nobody writes longer numbers, and a query may be megabytes.
_LONGEST = 100
# Texts that are looked at for units.
_LOOKED_AT = 40


def is_form(form: str) -> bool:
    """Tell whether a text is an example by which numbers can be read."""
    return _pattern(form) is not None


def number_written(text: str, form: str) -> float | None:
    """Return the number that a text means if numbers are written as in the example, None if it does not fit.

    Thousands need not be set apart, and the unit may be missing: 17454 fits 1,234.5 and $1,234.5.
    """
    pattern = _pattern(form)
    if pattern is None or len(text) > _LONGEST:
        return None
    found = pattern.fullmatch(text.strip().translate(_SAME))
    if found is None or (found["sign"] and found["later_sign"]):
        return None
    whole = re.sub("[^0-9]", "", found["whole"] or "")
    number = float(f"{found['sign'] or found['later_sign']}{whole or 0}.{found['fraction'] or 0}")
    return number if math.isfinite(number) else None


def guess_forms(texts: Iterable[str]) -> list[str]:
    """Return the forms by which texts that are no plain numbers would be numbers, one for each meaning."""
    given = [text for text in texts if len(text) <= _LONGEST]
    separated = [text for text in given if as_number(text) is None]
    found: dict[tuple[float | None, ...], str] = {}
    for form in _candidates(separated):
        numbers = tuple(number_written(text, form) for text in given)
        n_read = sum(number is not None for number in numbers)
        if n_read >= _MOST * len(given) and any(number_written(text, form) is not None for text in separated):
            found.setdefault(numbers, form)
    return list(found.values())


def _candidates(texts: list[str]) -> list[str]:
    """Return the usual forms, with each unit that the texts show."""
    units = dict.fromkeys(unit for text in texts[:_LOOKED_AT] if (unit := _unit(text)) is not None)
    return [f"{before}{form}{after}" for before, after in units for form in _USUAL]


def _unit(text: str) -> tuple[str, str] | None:
    """Return what stands before and after a number; None if that is no unit that is known."""
    digits = re.search(r"\d(?:.*\d)?", text)
    if digits is None:
        return None
    before, after = text[: digits.start()].lstrip().strip("+-"), text[digits.end() :].rstrip()
    is_known = all(not part.strip() or _KNOWN_UNIT.fullmatch(part) for part in (before, after))
    return (before, after) if is_known else None


@cache
def _pattern(form: str) -> re.Pattern[str] | None:
    example = _EXAMPLE.fullmatch(form.translate(_SAME).strip())
    if example is None or example["group"] == example["decimal"]:
        return None
    group, decimal = re.escape(example["group"]), re.escape(example["decimal"])
    before, after = (re.escape(example[part].strip()) for part in ("before", "after"))
    thousands = rf"[0-9]{{1,3}}(?:{group}[0-9]{{3}})+|" if group else ""
    return re.compile(
        rf"(?P<sign>[+-]?)\s*(?:{before})?\s*(?P<later_sign>[+-]?)"
        rf"(?P<whole>{thousands}[0-9]+|(?={decimal}))(?:{decimal}(?P<fraction>[0-9]+))?\s*(?:{after})?"
    )
