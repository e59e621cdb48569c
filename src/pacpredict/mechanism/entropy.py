"""Random numbers from the operating system, for secrets and served noise (design decision 7)."""

import os
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from pacpredict.core.validate import FloatArray

# Standard normals made at a time; a call to the operating system costs as much as a few hundred of them.
_BLOCK = 1024


class NormalSource(Protocol):
    """What a session draws noise from: a `numpy.random.Generator`, or the operating system."""

    def standard_normal(self, size: int) -> FloatArray: ...


class SystemEntropy:
    """Independent standard normals, each from 64 fresh bits of the operating system's entropy.

    One bit gives the sign, 63 bits the tail probability, so the smallest tail is 2^-64 (9.1 deviations).
    Not safe to share between threads; a session draws under its lock.
    """

    def __init__(self) -> None:
        self._ready = np.empty(0)
        self._process = os.getpid()

    def standard_normal(self, size: int) -> FloatArray:
        if self._process != os.getpid():  # after a fork, parent and child must not use the same numbers
            self.__init__()  # type: ignore[misc]
        if size > self._ready.size:
            self._ready = np.concatenate([self._ready, _normals(max(_BLOCK, size))])
        drawn, self._ready = self._ready[:size], self._ready[size:]
        return drawn


def _normals(n: int) -> FloatArray:
    bits = np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
    tail = ((bits >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-64
    normals: FloatArray = np.where(bits & np.uint64(1), -1.0, 1.0) * ndtri(np.minimum(tail, 0.5))
    return normals


def draw_index(weights: Sequence[float] | FloatArray, generator: np.random.Generator | None = None) -> int:
    """Draw an index with the given probabilities, from the operating system unless a generator is given."""
    uniform = _uniform() if generator is None else generator.random()
    cumulative = np.cumsum(weights)
    index = int(np.searchsorted(cumulative, uniform * cumulative[-1], side="right"))
    return min(index, int(np.flatnonzero(weights)[-1]))


def _uniform() -> float:
    return (int.from_bytes(os.urandom(8)) >> 11) * 2.0**-53
