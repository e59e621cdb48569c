"""Tests of hypotheses whose p-values hold for every sample size, or are bounds.

Where a mechanism is honest a p-value is at most x with probability at most x. Normal scores, sums of squares, coins and
likelihood ratios have exact distributions or proved bounds; the only asymptotic one is Pearson's test of cells that
expect hundreds of draws each.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from scipy.special import betainc, gammainc, gammaincc, logsumexp, ndtr, ndtri, pdtrc

from pacpredict.types import FloatArray, IntArray

# Normal scores are kept this far from infinity, where sums of their squares are still numbers.
_SMALLEST = 1e-300


def smallest_of(p_values: Iterable[float]) -> float:
    """Combine p-values of any dependence (Bonferroni); 1 if there is none. What is no number speaks against honesty."""
    values = [0.0 if math.isnan(p) else float(p) for p in p_values]
    return min(1.0, len(values) * min(values)) if values else 1.0


def normal_p(scores: FloatArray | float) -> FloatArray:
    """Test that numbers are standard normal, each by itself, on both sides."""
    return np.asarray(2 * ndtr(-np.abs(scores)))


def squares_p(total: float, n: int) -> float:
    """Test that a sum of squares is that of n independent standard normals, against larger ones."""
    return float(gammaincc(n / 2, total / 2)) if n else 1.0


def size_p(total: float, n: int) -> float:
    """Test that a sum of squares is that of n independent standard normals, on both sides."""
    return float(min(1.0, 2 * min(gammainc(n / 2, total / 2), gammaincc(n / 2, total / 2)))) if n else 1.0


def size_scores(totals: FloatArray, n: IntArray) -> FloatArray:
    """Turn sums of squares of n standard normals each into standard normals."""
    below, above = gammainc(n / 2, totals / 2), gammaincc(n / 2, totals / 2)
    lower = ndtri(np.maximum(below, _SMALLEST))
    return np.asarray(np.where(below <= above, lower, -ndtri(np.maximum(above, _SMALLEST))))


def coin_p(hits: int, n: int, chance: float = 0.5) -> float:
    """Test that n independent coins fall with this chance, on both sides, exactly."""
    if n == 0:
        return 1.0
    at_least = 1.0 if hits == 0 else float(betainc(hits, n - hits + 1, chance))
    at_most = 1.0 if hits == n else float(betainc(n - hits, hits + 1, 1 - chance))
    return min(1.0, 2 * min(at_least, at_most))


def rare_p(hits: int, expected: float) -> float:
    """Test that rare coincidences are no more than expected (Poisson)."""
    return 1.0 if hits == 0 else float(pdtrc(hits - 1, expected))


def cells_p(counts: IntArray, chance: FloatArray) -> float:
    """Test that draws fall into cells with these chances (Pearson)."""
    expected = counts.sum() * chance
    return squares_p(float(((counts - expected) ** 2 / expected).sum()), counts.size - 1)


def evidence_p(log_ratios: Sequence[float] | FloatArray) -> float:
    """Test by likelihood ratios against honesty, of alternatives that were fixed beforehand.

    Their average is 1 or less in expectation if the mechanism is honest, so that it reaches 1 / p with probability at
    most p (Markov).
    """
    values = np.asarray(log_ratios, np.float64)
    return (
        min(1.0, math.exp(min(0.0, math.log(values.size) - float(logsumexp(values))))) if values.size else 1.0
    )


def walsh_sums(values: FloatArray) -> FloatArray:
    """Sum values of 2^n places over every parity of the place's bits but the empty one (Walsh and Hadamard)."""
    sums, step = values.astype(np.float64).copy(), 1
    while step < sums.size:
        pairs = sums.reshape(-1, 2, step)
        sums = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).ravel()
        step *= 2
    return sums[1:]


def n_places(n: int) -> int:
    """Return the least power of two that is not below n."""
    return 1 << max(n - 1, 1).bit_length()
