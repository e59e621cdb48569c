"""What a block of heads is trained on: features that all share, and which of the records each of them has."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pacpredict.types import BoolArray, FloatArray, IntArray

# Features (n, d): float32, or a sparse matrix of scipy in rows.
Features = Any
Single = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Problem:
    """b heads over n records of k classes. Of two classes a head has one score, of more it has one for each."""

    features: Features
    labels: IntArray  # (n,) of all records
    weights: Single  # (b, n): what a record counts in a subset, 0 if it is not in it
    n_classes: int

    @property
    def n_heads(self) -> int:
        return len(self.weights)

    @property
    def n_features(self) -> int:
        return int(self.features.shape[1])

    @property
    def n_scores(self) -> int:
        return 1 if self.n_classes == 2 else self.n_classes

    @cached_property
    def counts(self) -> FloatArray:
        """What all records of each subset count together (b,)."""
        return self.weights.sum(axis=1, dtype=np.float64)

    @cached_property
    def present(self) -> BoolArray:
        """Which classes each subset has (b, k)."""
        has = [np.bincount(self.labels, own, self.n_classes) > 0 for own in self.weights]
        return np.array(has, np.bool_)


@dataclass(frozen=True, eq=False)
class Scale:
    """Heads see (x - mean) * factor; both are of the head's own subset, and are folded into its weights at the end."""

    mean: FloatArray  # (b, d)
    factor: FloatArray  # (b, d)

    def forward(self, problem: Problem, slopes: FloatArray, biases: FloatArray) -> Single:
        """Return the scores (n, b, s) of slopes (b, d, s) and biases (b, s) on scaled features."""
        raw, shifted = self.fold(slopes, biases)
        n_heads, width, n_scores = slopes.shape
        stacked = raw.transpose(1, 0, 2).reshape(width, n_heads * n_scores)
        scores = problem.features @ np.ascontiguousarray(stacked, np.float32)
        return np.add(scores.reshape(-1, n_heads, n_scores), shifted, dtype=np.float32)

    def backward(self, problem: Problem, residuals: Single) -> tuple[FloatArray, FloatArray]:
        """Return the sums over records of residuals (n, b, s) times scaled features (b, d, s), and of residuals."""
        n, n_heads, n_scores = residuals.shape
        totals = residuals.sum(axis=0, dtype=np.float64)
        raw = problem.features.T @ residuals.reshape(n, n_heads * n_scores)
        raw = raw.astype(np.float64).reshape(-1, n_heads, n_scores).transpose(1, 0, 2)
        return self.factor[:, :, None] * (raw - self.mean[:, :, None] * totals[:, None, :]), totals

    def fold(self, slopes: FloatArray, biases: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return weights and biases that give the same scores on features as they are."""
        raw = self.factor[:, :, None] * slopes
        return raw, biases - np.einsum("bd,bds->bs", self.mean, raw)
