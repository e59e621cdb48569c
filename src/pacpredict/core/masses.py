"""What priors are counted in: m subsets of units, the mass of each, and which of them a guess covers."""

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pacpredict.core.validate import check_belief
from pacpredict.exceptions import InvalidSubsets
from pacpredict.types import BoolArray, FloatArray

# Units worked on at a time: 128 models x 8 bytes x 16,384 units are 16 MB.
_CHUNK = 16_384

# Per unit, the models whose subsets have it, as bits: (n_units, n_models / 8 rounded up).
Holders = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Mass:
    """Weights of the models and what they sum to, so that uniform masses are exact counts divided by m."""

    values: FloatArray
    total: float

    @classmethod
    def over(cls, models: Sequence[Any] | npt.NDArray[Any], weights: npt.ArrayLike | None) -> "Mass":
        m = len(models)
        if weights is None:
            return cls(np.ones(m), float(m))
        return cls(check_belief(weights, m, "weights"), 1.0)

    def of(self, models: BoolArray) -> float:
        return self.of_values(self.values[models])

    def of_values(self, values: Iterable[float]) -> float:
        return min(1.0, math.fsum(values) / self.total)

    def heaviest(self, keys: Iterable[Hashable]) -> float:
        """Return the largest mass of models that share a key."""
        shares: dict[Hashable, list[float]] = {}
        for key, value in zip(keys, self.values, strict=True):
            shares.setdefault(key, []).append(value)
        return max(self.of_values(values) for values in shares.values())

    def heaviest_run(
        self, holders: Holders, units: npt.NDArray[np.intp], starts: npt.NDArray[np.intp]
    ) -> float:
        """Return the largest mass of models that have any unit of a run; runs of `units` begin at `starts`."""
        met = np.bitwise_or.reduceat(holders[units], starts, axis=0)
        best = 0.0
        for chunk in chunks(len(met)):
            models = np.unpackbits(met[chunk], axis=1, count=len(self.values)).view(np.bool_)
            best = max(best, self.of(models[np.argmax(models @ self.values)]))
        return best


def holders_of(subsets: BoolArray) -> Holders:
    return np.ascontiguousarray(np.packbits(subsets, axis=0).T)


def rows_of(subsets: BoolArray) -> Iterator[bytes]:
    """Yield what is the same for equal subsets."""
    return (row.tobytes() for row in np.packbits(subsets, axis=1))


def chunks(length: int, size: int = _CHUNK) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, length, size))


def as_membership(membership: npt.ArrayLike) -> BoolArray:
    try:
        given = np.asarray(membership)
    except ValueError as problem:
        raise InvalidSubsets(f"membership must be a rectangular array ({problem})") from problem
    if given.ndim != 2 or given.size == 0:
        raise InvalidSubsets(
            f"membership must have shape (n_models, n_units) and not be empty, got {given.shape}"
        )
    if given.dtype == np.bool_:
        return given
    subsets = np.empty(given.shape, dtype=np.bool_)
    for chunk in chunks(given.shape[1]):
        part = given[:, chunk]
        subsets[:, chunk] = part == 1
        if not (subsets[:, chunk] | (part == 0)).all():
            raise InvalidSubsets("membership must hold only 0 and 1, or False and True")
    return subsets
