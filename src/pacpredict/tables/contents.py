"""Records as 64 bits each: equal ones have equal keys, and others have different ones but for a chance of 2^-64."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from pacpredict.types import FloatArray, IntArray

Keys = npt.NDArray[np.uint64]


def column_keys(column: FloatArray, j: int) -> Keys:
    """Return 64 bits per value that are as good as random and differ between columns (the mixer of SplitMix64)."""
    canonical = np.where(
        np.isnan(column), np.nan, column + 0.0
    )  # -0.0 becomes 0.0, and every NaN the same bits
    bits = canonical.view(np.uint64) + np.uint64((j + 1) * 0x9E3779B97F4A7C15 % 2**64)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def row_keys(columns: Iterable[FloatArray]) -> Keys:
    """Return 64 bits per row: the sum of those of its values."""
    first, *others = (column_keys(column, j) for j, column in enumerate(columns))
    return sum(others, first)


def number_contents(columns: Iterable[FloatArray]) -> IntArray:
    """Return a number per row that equal rows share."""
    _, numbers = np.unique(row_keys(columns), return_inverse=True)
    return np.asarray(numbers, np.int64)
