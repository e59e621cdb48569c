"""A column taken apart: its different values are fewer than its records, and say what it is."""

from typing import Any, NamedTuple

import numpy as np

from pacpredict.types import IntArray


class Distinct(NamedTuple):
    """The different values of a column, and which of them each record has."""

    name: str
    values: Any  # a pandas series
    codes: IntArray  # -1 where the value is missing
    distinct: list[Any]

    @property
    def counts(self) -> tuple[int, int]:
        """Return how many values are missing, and how many are different."""
        return int((self.codes < 0).sum()), len(self.distinct)

    def in_order(self) -> tuple[IntArray, bool]:
        """Return codes in the order of the values, and whether these may be names: texts, or whole numbers."""
        try:
            ranks = np.argsort(np.argsort(np.array(self.distinct)))
        except TypeError:  # texts beside numbers, which are refused
            ranks = np.arange(len(self.distinct))
        codes = np.array([*ranks, -1])[self.codes]  # of which the last is at -1
        return codes, all(
            isinstance(one, str | int) or (isinstance(one, float) and one.is_integer())
            for one in self.distinct
        )


def take_apart(name: str, series: Any) -> Distinct:
    try:
        codes, distinct = series.factorize()
    except TypeError:  # lists and the like, which are refused
        return Distinct(name, series, np.zeros(len(series), np.int64), [None])
    return Distinct(name, series, codes.astype(np.int64), distinct.tolist())
