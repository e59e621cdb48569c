"""Random numbers from the operating system, for secrets and served noise."""

import os
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from pacpredict.core.channel import UNITY_BITS
from pacpredict.exceptions import InvalidInput
from pacpredict.types import FloatArray, IntArray

# Numbers made at a time; a call to the operating system costs as much as a few hundred of them.
_BLOCK = 1024


class Entropy(Protocol):
    """What a session draws from."""

    def normals(self, size: int) -> FloatArray:
        """Draw standard normals, for noise."""

    def uniforms(self, size: int) -> IntArray:
        """Draw whole numbers below 2^62, all equally likely, for labels."""


class SystemEntropy:
    """Independent numbers, each from 64 fresh bits of the operating system's entropy.

    Of a normal one bit gives the sign, 63 bits the tail probability, so the smallest tail is 2^-64 (9.1 deviations).
    A whole number is 62 of the bits. Not safe to share between threads; a session draws under its lock.
    """

    def __init__(self) -> None:
        self._normals = np.empty(0)
        self._uniforms = np.empty(0, np.int64)
        self._process = os.getpid()

    def normals(self, size: int) -> FloatArray:
        self._forget_after_fork()
        if size > self._normals.size:
            self._normals = np.concatenate([self._normals, _normals(max(_BLOCK, size))])
        drawn, self._normals = self._normals[:size], self._normals[size:]
        return drawn

    def uniforms(self, size: int) -> IntArray:
        self._forget_after_fork()
        if size > self._uniforms.size:
            self._uniforms = np.concatenate([self._uniforms, _uniforms(max(_BLOCK, size))])
        drawn, self._uniforms = self._uniforms[:size], self._uniforms[size:]
        return drawn

    def _forget_after_fork(self) -> None:
        """Parent and child must not use the same numbers."""
        if self._process != os.getpid():
            self.__init__()  # type: ignore[misc]


class SeededEntropy:
    """Numbers of a generator that somebody passed, for experiments and tests."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator

    def normals(self, size: int) -> FloatArray:
        drawn = self.generator.standard_normal(size)
        if drawn.shape != (size,):
            raise InvalidInput(f"the source of noise gave {drawn.shape} numbers instead of {size}")
        return drawn

    def uniforms(self, size: int) -> IntArray:
        """Draw what `uniform_of` makes of two numbers below 1, as simulations do."""
        if not size:
            return np.empty(0, np.int64)
        halves = (self.generator.random((size, 2)) * 2.0 ** (UNITY_BITS // 2)).astype(np.int64)
        return (halves[:, 0] << (UNITY_BITS // 2)) | halves[:, 1]


def _uniforms(n: int) -> IntArray:
    bits = np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
    return (bits >> np.uint64(64 - UNITY_BITS)).astype(np.int64)


def _normals(n: int) -> FloatArray:
    from scipy.special import ndtri  # noqa: PLC0415  # a tenth of a second that only a contested answer needs

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
