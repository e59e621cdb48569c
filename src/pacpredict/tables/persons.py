"""Columns that look as if they told persons apart, by what other columns do within their values.

Records of one person differ in what was measured, and agree in what the person is: sex, year of birth. A guess, for
hints: nothing is decided by it.
"""

import math
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from pacpredict.show import show_some
from pacpredict.types import BoolArray, IntArray

# Nobody has more than this many records on average.
_MOST_RECORDS_EACH = 50
# Fewer values, or fewer records beyond the first of each, are no pattern.
_FEWEST = 24
# One column that never varies may follow from the value, as a chapter does from a diagnosis.
_FEWEST_FACTS = 2
# That a column does not vary must be less probable than this if its values were dealt at random.
_BY_CHANCE = 1e-6
# Pictures, with thousands of columns, are not tables of persons.
_MOST_COLUMNS = 256


class Coded(NamedTuple):
    """A column as codes, in the order of its values where these have one."""

    name: str
    codes: IntArray  # -1 where the value is missing
    may_name: bool  # quantities with fractions and the like name nobody


def facts_of_persons(columns: Sequence[Coded]) -> dict[str, list[str]]:
    """Return the columns that may tell persons apart, each with those that never vary within one of its values."""
    if len(columns) > _MOST_COLUMNS:
        return {}
    found = {one.name: list(_facts(one, columns)) for one in columns if one.may_name}
    return {name: facts for name, facts in found.items() if len(facts) >= _FEWEST_FACTS}


def person_hint(name: str, n_different: int, n_records: int, facts: list[str]) -> str:
    within = f", and {show_some(facts, 3)} never vary within one" if facts else ""
    return (
        f"may tell persons apart ({n_different:,} different values in {n_records:,} records{within}): if it does, say "
        f"so, to have all records of a person protected together (--person {shlex.quote(name)}, or groups= in Python)"
    )


def _facts(one: Coded, columns: Sequence[Coded]) -> Iterator[str]:
    present = one.codes >= 0
    codes = one.codes[present]
    n_different = len(np.unique(codes))
    n_repeated = len(codes) - n_different
    if min(n_different, n_repeated) < _FEWEST or n_different * _MOST_RECORDS_EACH < len(codes):
        return
    order = np.argsort(codes, kind="stable")
    goes_on = np.diff(codes[order]) == 0
    for other in columns:
        if other is not one and _is_fact(other.codes[present][order], goes_on, n_repeated):
            yield other.name


def _is_fact(values: IntArray, goes_on: BoolArray, n_repeated: int) -> bool:
    """Tell whether values in the order of another column never vary within one of its values, and not by chance.

    A column whose values are each one stretch in that order follows from it, as an age group does from the age, and one
    that is another name for it has a stretch for each: neither is a fact about somebody.
    """
    changes = np.diff(values) != 0
    if (changes & goes_on).any():
        return False
    _, sizes = np.unique(values, return_counts=True)
    alike = float(((sizes / len(values)) ** 2).sum())
    return int(changes.sum()) + 1 > len(sizes) and n_repeated * math.log(alike) < math.log(_BY_CHANCE)
