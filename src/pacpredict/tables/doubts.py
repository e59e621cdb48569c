"""Why a column may not be what its values make of it: each doubt with the option that settles it."""

import re
import shlex
from itertools import islice
from typing import Any

import numpy as np

from pacpredict.exceptions import InvalidTable
from pacpredict.show import show, show_some
from pacpredict.tables.column import Column
from pacpredict.tables.declared import MOST_CATEGORIES
from pacpredict.tables.distinct import Distinct
from pacpredict.tables.forms import as_values
from pacpredict.tables.identifiers import identifier_hint
from pacpredict.tables.persons import person_hint
from pacpredict.tables.sentinels import codes_for_missing
from pacpredict.tables.separators import guess_forms, number_written
from pacpredict.tables.values import as_limit, as_number

# Texts of which this share are numbers were meant to be numbers.
_NEARLY_NUMBERS = 0.5
# Different texts that are looked at to see whether they are numbers with separators.
_LOOKED_AT = 1000
# Words by which the names of codes end: their numbers have an order, and it means nothing.
_CODES = {
    *(
        "code",
        "codes",
        "zip",
        "zipcode",
        "postcode",
        "postalcode",
        "plz",
        "site",
        "branch",
        "store",
        "ward",
        "region",
    ),
    *("district", "county", "station", "department", "dept", "clinic", "hospital", "filiale"),
}
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# Words among numbers, up to which they may mean that the number is missing.
_MOST_WORDS_FOR_MISSING = 5
# Spellings that are shown; the others are counted.
_MOST_SPELLINGS = 5


def doubts_about(column: Column, given: Distinct, facts: list[str]) -> list[str]:
    """Say why a column may not be what its values make of it."""
    doubts = []
    hint = identifier_hint(column.name, as_values(column.name, given.values, InvalidTable))
    if hint is not None:
        doubts.append(hint.removeprefix(f"column {show(column.name)} "))
    elif facts:
        missing, distinct = given.counts
        doubts.append(person_hint(column.name, distinct, len(given.codes) - missing, facts))
    near = _nearly_numbers(given) if column.kind in {"category", "text"} else None
    if near is not None:
        doubts.append(near)
    else:
        doubts += doubts_about_codes(column, given)
    if column.kind == "number" and _look_like_days(given.distinct):
        doubts.append(
            f"has numbers such as {given.distinct[0]:.0f}, which look like dates: "
            f"{_types(given.name, 'date:%Y%m%d')}"
        )
    elif column.kind == "number" and hint is None and _name_places(given.name, given.distinct):
        is_few = len(given.distinct) <= MOST_CATEGORIES
        remedy = _types(given.name, "category") if is_few else f"--drop {shlex.quote(given.name)}"
        doubts.append(f"is taken as a quantity, and sounds like a code: if its numbers are names, {remedy}")
    return doubts


def doubts_about_codes(column: Column, given: Distinct) -> list[str]:
    """Say which values may mean missing. How a column is declared does not tell."""
    if column.kind in {"boolean", "date"}:
        return []
    numbers = np.array(column.numbers(given.distinct)) if column.kind == "number" else None
    codes = codes_for_missing(given, numbers)
    return [_may_be_missing(given.name, codes)] if codes else []


def doubt_about_spelling(distinct: list[Any], what: str) -> str | None:
    """Say which texts differ from another one in case and blanks alone; the first that occurs is taken as the usual."""
    usual: dict[str, str] = {}
    others = []
    for text in (value for value in distinct if isinstance(value, str)):
        first = usual.setdefault(" ".join(text.split()).casefold(), text)
        if first != text:
            others.append(f"{show(text)} beside {show(first)}")
    if not others:
        return None
    more = f" and {len(others) - _MOST_SPELLINGS} more" if len(others) > _MOST_SPELLINGS else ""
    return (
        f"has {', '.join(others[:_MOST_SPELLINGS])}{more}: they are different {what}; "
        "spell alike what is meant to be the same"
    )


def _name_places(name: str, distinct: list[Any]) -> bool:
    """Tell whether whole numbers are codes by the name of their column: of a branch, a ward, an area."""
    words = [part.lower() for part in _PARTS.findall(name)]
    return bool(words) and words[-1] in _CODES and all(float(number).is_integer() for number in distinct)


def _nearly_numbers(given: Distinct) -> str | None:
    texts = [value for value in given.distinct if isinstance(value, str)]
    if forms := guess_forms(map(_without_sign, islice(texts, _LOOKED_AT))):
        return _separated_numbers(given.name, texts, forms)
    others = [value for value in given.distinct if as_number(value) is None]
    if len(given.distinct) - len(others) < _NEARLY_NUMBERS * len(given.distinct):
        return None
    words = [value for value in others if as_number(as_limit(value) or "") is None]
    if not others or len(words) > _MOST_WORDS_FOR_MISSING:
        return None
    return f"has numbers beside {show_some(others, 3)}: {_types(given.name, 'number')}{_as_missing(words)}"


def _separated_numbers(name: str, texts: list[str], forms: list[str]) -> str:
    """Say how a column of numbers with separators can be declared; where it may mean two things, which is which."""
    numbers = {form: {text: number_written(_without_sign(text), form) for text in texts} for form in forms}

    def tells_most(text: str) -> tuple[int, bool, bool]:
        n_meanings = len({found[text] for found in numbers.values()} - {None})
        return n_meanings, as_number(_without_sign(text)) is None, as_limit(text) is None

    example = max(texts, key=tells_most)
    words = [text for text in texts if all(found[text] is None for found in numbers.values())]
    meaning = _as_missing(words[:_MOST_WORDS_FOR_MISSING])
    ways = [f"{_types(name, f'number:{form}')}{meaning}" for form in forms]
    if len(forms) > 1:
        ways = [
            way if (number := numbers[form][example]) is None else f"{way} if that is {number:.15g}"
            for form, way in zip(forms, ways, strict=True)
        ]
    return f"has numbers with separators, such as {show(example)}: {', or '.join(ways)}"


def _without_sign(text: str) -> str:
    """Return the limit of "<0,5", which a column that is declared a number takes as it takes its numbers."""
    return as_limit(text) or text


def _types(name: str, kind: str) -> str:
    return f"--types {shlex.quote(f'{name}={kind}')}"


def _may_be_missing(name: str, codes: dict[str, int]) -> str:
    found = ", ".join(
        f"{show(code)} ({n:,} {'record' if n == 1 else 'records'})" for code, n in codes.items()
    )
    options = "".join(f" --missing {shlex.quote(f'{name}={code}')}" for code in codes)
    return f"has {found}: if that means missing,{options}"


def _as_missing(words: list[str]) -> str:
    return "".join(f" --missing {word!r}" for word in words)


def _look_like_days(distinct: list[Any]) -> bool:
    """Tell whether all numbers are like 20240131, of the last and of this century."""
    numbers = np.array([as_number(value) for value in distinct], dtype=np.float64)
    years, days = numbers // 10_000, numbers % 10_000
    months, days = days // 100, days % 100
    plausible = (years >= 1900) & (years < 2100) & (months >= 1) & (months <= 12) & (days >= 1) & (days <= 31)
    return bool(plausible.all() and (numbers == np.floor(numbers)).all())
