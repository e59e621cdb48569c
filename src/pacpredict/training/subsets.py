"""The subsets that the m models are trained on (section 4.2.1 of the paper), drawn by unit, not by record.

A unit, such as a person with all of their records (units.py), is in a subset as a whole or not at all.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pacpredict.core.scalars import check_model_count
from pacpredict.exceptions import InvalidSubsets
from pacpredict.types import BoolArray

# Units assigned at a time: 128 models times this many stay within a few MiB. A multiple of 8, so that blocks can be
# packed one by one.
_UNITS_PER_BLOCK = 65_536


def balanced(n_models: int, n_units: int, generator: np.random.Generator, rate: float = 0.5) -> BoolArray:
    """Put each unit into a random half of the subsets, exactly; returns membership (n_models, n_units).

    Given the subsets, every unit is in the secret one with probability 1/2, whatever else is known: the prior of
    membership inference is 1/2 for everyone.

    With another `rate`, each unit is in exactly round(rate * n_models) of the subsets, a random choice of them, and
    r is that number over n_models. Whoever has seen no answer then guesses membership with success max(r, 1 - r):
    "in" or "out", whichever is more common, so that only r = 1/2 leaves the attacker without a head start. Whoever
    wants a record of the training set names any record and succeeds with probability r, or more if several units
    have the same (`core/priors.py`).
    """
    _check(n_models, n_units)
    membership = np.empty((n_models, n_units), dtype=np.bool_)
    for start, block in _blocks(n_models, n_units, generator, rate):
        membership[:, start : start + block.shape[1]] = block
    return membership


@dataclass(frozen=True, eq=False)
class Subsets:
    """Which units each of the m subsets has, one bit per model and unit: 16 MB for 128 times a million."""

    n_models: int
    n_units: int
    packed: npt.NDArray[np.uint8]  # (n_models, n_units / 8 rounded up), as np.packbits writes them

    def __post_init__(self) -> None:
        expected = (self.n_models, -(-self.n_units // 8))
        if self.packed.dtype != np.uint8 or self.packed.shape != expected:
            raise InvalidSubsets(
                f"packed membership must be uint8 of shape {expected}, got {self.packed.dtype} {self.packed.shape}"
            )

    def __repr__(self) -> str:
        return f"Subsets(n_models={self.n_models}, n_units={self.n_units})"

    @classmethod
    def of(cls, membership: npt.ArrayLike) -> "Subsets":
        """Pack a boolean matrix (n_models, n_units)."""
        given = np.asarray(membership)
        if given.ndim != 2 or given.dtype != np.bool_:
            raise InvalidSubsets(
                f"membership must be a boolean matrix, got {given.dtype} of shape {given.shape}"
            )
        return cls(len(given), given.shape[1], np.packbits(given, axis=1))

    @classmethod
    def balanced(
        cls, n_models: int, n_units: int, generator: np.random.Generator, rate: float = 0.5
    ) -> "Subsets":
        """Draw what the function `balanced` draws, without ever holding a byte per model and unit."""
        blocks = _blocks(n_models, n_units, generator, rate)
        return cls(n_models, n_units, np.hstack([np.packbits(block, axis=1) for _, block in blocks]))

    @classmethod
    def half_partitions(cls, n_models: int, n_units: int, generator: np.random.Generator) -> "Subsets":
        """Cut the units into two random halves, m/2 times: subsets 2i and 2i + 1 are disjoint and cover them.

        Each unit is in exactly one of every pair, so in exactly half of the subsets as with `balanced`, and the
        prior of membership is 1/2 for everyone. In addition each subset has exactly half of the units (one has one
        more if their number is odd); in exchange there are only m/2 independent choices, since a pair is a subset and
        its complement.
        """
        _check(n_models, n_units)
        packed = np.empty((n_models, -(-n_units // 8)), dtype=np.uint8)
        half = np.arange(n_units) < n_units // 2
        for pair in range(0, n_models, 2):
            chosen = generator.permuted(half)
            packed[pair], packed[pair + 1] = np.packbits(chosen), np.packbits(~chosen)
        return cls(n_models, n_units, packed)

    def row(self, i: int) -> BoolArray:
        """Return the membership (n_units,) in subset i."""
        return np.unpackbits(self.packed[i], count=self.n_units).view(np.bool_)

    def matrix(self) -> BoolArray:
        """Return the membership (n_models, n_units), one byte each."""
        return np.unpackbits(self.packed, axis=1, count=self.n_units).view(np.bool_)

    def blocks(self) -> Iterator[BoolArray]:
        """Yield the same in parts (n_models, n), from the first units to the last, a few MiB at a time."""
        for start in range(0, self.n_units, _UNITS_PER_BLOCK):
            size = min(_UNITS_PER_BLOCK, self.n_units - start)
            part = self.packed[:, start // 8 : -(-(start + size) // 8)]
            yield np.unpackbits(part, axis=1, count=size).view(np.bool_)


def _blocks(
    n_models: int, n_units: int, generator: np.random.Generator, rate: float
) -> Iterator[tuple[int, BoolArray]]:
    """Yield the first unit and the membership (n_models, n) of one block of units after another."""
    _check(n_models, n_units)
    # "not" also refuses NaN, which cannot be rounded.
    if not 0 < rate < 1 or not 0 < (n_chosen := round(rate * n_models)) < n_models:
        raise InvalidSubsets(
            f"rate must put each record into at least one and not all of {n_models} subsets, got {rate}"
        )
    chosen = np.arange(n_models) < n_chosen
    for start in range(0, n_units, _UNITS_PER_BLOCK):
        size = min(_UNITS_PER_BLOCK, n_units - start)
        yield start, generator.permuted(np.broadcast_to(chosen, (size, n_models)), axis=1).T


def _check(n_models: int, n_units: int) -> None:
    check_model_count(n_models)
    if n_units < 1:
        raise InvalidSubsets(f"there must be at least one record, got {n_units}")
