"""Dot products that no batch can change.

A vote must not depend on which other rows are asked about, on the number of threads or on the library of linear
algebra: all of these change the order in which a sum is rounded. So nothing is rounded. Features are whole multiples of
2^-15 of a power of two that bounds their row, weights of 2^-23 of one that bounds their column. A product of the two is
then a whole number of units up to 2^38, a sum of 32,768 of them one up to 2^53, and float64 has all of these exactly,
in any order.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

FEATURE_BITS, WEIGHT_BITS = 15, 23
MOST_TERMS = 2 ** (53 - FEATURE_BITS - WEIGHT_BITS)

Single = npt.NDArray[np.float32]


def round_rows(features: npt.NDArray[Any]) -> Single:
    """Round each row (n, d) to the bits that features may have."""
    return _round(features, FEATURE_BITS, axis=1)


def round_columns(weights: npt.NDArray[Any]) -> Single:
    """Round each column (d, s) to the bits that weights may have."""
    return _round(weights, WEIGHT_BITS, axis=0)


def round_sparse(features: Any) -> Any:
    """Round each row of a sparse matrix in rows, which has at most MOST_TERMS entries."""
    rounded = features.astype(np.float32)
    rows = np.repeat(np.arange(features.shape[0]), np.diff(features.indptr))
    largest = np.zeros(features.shape[0])
    np.maximum.at(largest, rows, np.abs(features.data))
    unit = _units(largest, FEATURE_BITS)[rows]
    rounded.data = (np.rint(features.data / unit) * unit).astype(np.float32)
    return rounded


def _round(values: npt.NDArray[Any], bits: int, axis: int) -> Single:
    unit = _units(np.abs(values).max(axis=axis, keepdims=True, initial=0.0), bits)
    # To the nearest of an even number of units where two are as near: the same for every order of rows.
    return (np.rint(values / unit) * unit).astype(np.float32)


def _units(largest: npt.NDArray[Any], bits: int) -> npt.NDArray[np.float64]:
    """Return the unit of each row or column: the least power of two above its largest value, less so many bits."""
    exponents = np.frexp(largest.astype(np.float64))[1]
    # float32 has no smaller power of two than this.
    return np.ldexp(1.0, np.maximum(exponents - bits, -149))
