"""Dates as numbers: days since 1 January 1970, with the time of day as a fraction.

A date is never taken as text or as a category by itself: models would learn single days by heart. Whoever wants it as a
number says so.
"""

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from pacpredict.tables.values import is_number
from pacpredict.types import FloatArray

DATES = (date, np.datetime64)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS_PER_DAY = 86_400_000_000

_TIME = r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
# How people write dates, and how strptime may be told; "" is ISO 8601.
_WRITTEN = {
    r"\d{4}-\d{1,2}-\d{1,2}": ("", "%Y-%m-%d"),
    r"\d{1,2}\.\d{1,2}\.\d{4}": ("%d.%m.%Y",),
    r"\d{1,2}\.\d{1,2}\.\d{2}": ("%d.%m.%y",),
    r"\d{1,2}/\d{1,2}/\d{4}": ("%m/%d/%Y", "%d/%m/%Y"),
    r"\d{1,2}/\d{1,2}/\d{2}": ("%m/%d/%y", "%d/%m/%y"),
    r"\d{4}/\d{1,2}/\d{1,2}": ("%Y/%m/%d",),
    rf"\d{{1,2}}[ /-]{_MONTH}[ /-]\d{{4}}": ("%d-%b-%Y", "%d %b %Y", "%d/%b/%Y"),
    rf"\d{{1,2}}[ /-]{_MONTH}[ /-]\d{{2}}": ("%d-%b-%y", "%d %b %y", "%d/%b/%y"),
    rf"{_MONTH} \d{{1,2}},? \d{{4}}": ("%b %d, %Y", "%b %d %Y"),
}
_PATTERNS = [(re.compile(written + _TIME, re.IGNORECASE), forms) for written, forms in _WRITTEN.items()]
_TIMES = ("", " %H:%M", " %H:%M:%S")

# Texts that must look like dates for a column to; the others may be mistakes, which are then named.
_MOST = 0.9


def guess_format(texts: Iterable[str]) -> str | None:
    """Return how the dates in a column of texts seem to be written ("" is ISO 8601), None if it has other things."""
    given = [text.strip() for text in texts]
    for pattern, forms in _PATTERNS:
        dates = [text for text in given if pattern.fullmatch(text)]
        if dates and len(dates) >= _MOST * len(given):
            candidates = [form + time for form in forms for time in (_TIMES if form else ("",))]
            right = [form for form in candidates if all(_parse(text, form) for text in dates)]
            return right[0] if right else candidates[0]
    return None


def days(value: Any, form: str) -> float | None:
    """Return the days since 1970 of a date in any type or, as a text, in this format; None if it is no date."""
    if isinstance(value, str):
        value = _parse(value.strip(), form)
    elif isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    elif (
        form and is_number(value) and float(value).is_integer()
    ):  # 20240131, which a CSV file does not tell from text
        value = _parse(str(int(value)), form)
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    elif isinstance(value, date):
        moment = datetime(value.year, value.month, value.day, tzinfo=UTC)
    else:
        return None
    since = moment - _EPOCH
    microseconds = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return microseconds / _MICROSECONDS_PER_DAY


def days_of_array(values: npt.NDArray[np.datetime64]) -> FloatArray:
    """Return the days since 1970 of each moment, NaN where it is missing."""
    microseconds = values.astype("datetime64[us]")
    numbers = microseconds.astype(np.int64) / _MICROSECONDS_PER_DAY
    return np.where(np.isnat(microseconds), np.nan, numbers)


def _parse(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form) if form else datetime.fromisoformat(text)  # noqa: DTZ007  # days does
    except ValueError:
        return None
