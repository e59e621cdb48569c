"""Units of privacy: which records stand and fall together, because they are one person's or the same.

All records of a unit are in the same subsets. What is promised of membership is promised of units.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from numbers import Number
from typing import Any, Literal

import numpy as np

from pacpredict.exceptions import InvalidSubsets, InvalidTable
from pacpredict.show import show_rows
from pacpredict.tables.forms import as_values
from pacpredict.tables.values import is_missing
from pacpredict.types import BoolArray, IntArray

# What a unit is, in the word that questions about it use: somebody who was named as such, or all records with one
# content.
Kind = Literal["person", "record"]
KINDS: tuple[Kind, ...] = ("person", "record")
# As programs write whole numbers of a column that was read with fractions, because some were missing.
_WRITTEN_WITH_FRACTION = re.compile(r"-?[0-9]+\.0")


@dataclass(frozen=True, eq=False)
class Units:
    """Of each record the number of its unit; units are numbered in the order of their first records."""

    of_record: IntArray
    kind: Kind

    def __post_init__(self) -> None:
        if self.of_record.ndim != 1 or not len(self.of_record):
            raise InvalidSubsets("there must be at least one record, and a unit for each")
        seen = np.unique(self.of_record)
        if seen[0] != 0 or seen[-1] != len(seen) - 1:
            raise InvalidSubsets("units must be numbered 0, 1, 2, ... without a gap")
        if self.kind not in KINDS:
            raise InvalidSubsets(f"a unit is one of {', '.join(KINDS)}, not {self.kind!r}")

    @cached_property
    def count(self) -> int:
        return int(self.of_record.max()) + 1

    def __repr__(self) -> str:
        return f"Units({self.count} {self.kind}s, {len(self.of_record)} records)"

    @classmethod
    def persons(cls, names: Any, n_records: int) -> "Units":
        """Take records with the same name, of any hashable type, as those of one person.

        A name may be written in several ways, as on other systems: with an accent as one character or as two, with
        blanks around it, a number as a text. Two persons who become one that way are protected together.
        """
        given = list(map(_spelt_alike, as_values("groups", names, InvalidTable)))
        if len(given) != n_records:
            raise InvalidTable(
                f"there are {n_records} records and {len(given)} persons: name one for each record"
            )
        names_nobody = [is_missing(name) or (isinstance(name, str) and not name) for name in given]
        if any(names_nobody):
            raise InvalidTable(
                f"{sum(names_nobody):,} records name no person, so that nobody knows with whose they belong; name a "
                f"person for each, or drop these records: {show_rows(names_nobody)}"
            )
        try:
            return cls(number_by_first(given), "person")
        except TypeError as problem:
            raise InvalidTable(f"persons must be named by texts or numbers ({problem})") from problem

    def records(self, chosen: BoolArray) -> IntArray:
        """Return the records of the units where `chosen` (n_units,) is true, in order."""
        if chosen.shape != (self.count,):
            raise InvalidSubsets(f"there are {self.count} units, and a choice among {len(chosen)}")
        return np.flatnonzero(chosen[self.of_record])

    def part(self, chosen: BoolArray) -> "Units":
        """Return the units of some of the records."""
        return Units(number_by_first(self.of_record[chosen].tolist()), self.kind)

    def sizes(self) -> IntArray:
        """Return how many records each unit has."""
        return np.bincount(self.of_record, minlength=self.count)

    def summary(self) -> dict[str, Any]:
        """Say how many units there are, of which kind, and how many records the largest has."""
        return {"units": self.count, "unit": self.kind, "largest_unit": int(self.sizes().max())}

    def digest(self) -> str:
        return hashlib.sha256(np.asarray(self.of_record, "<i8").tobytes()).hexdigest()


def _spelt_alike(name: Any) -> Any:
    """Return the same for all spellings of a name."""
    if isinstance(name, str):
        text = unicodedata.normalize("NFC", name).strip()
        return text.removesuffix(".0") if _WRITTEN_WITH_FRACTION.fullmatch(text) else text
    if isinstance(name, Number):
        try:
            whole = int(name)  # type: ignore[call-overload]  # complex numbers cannot, and are left as they are
            return str(whole) if whole == name else str(float(name))  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            return name
    return name


def number_by_first(keys: Iterable[Any]) -> IntArray:
    """Give equal keys the same number, in the order in which they first appear."""
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
