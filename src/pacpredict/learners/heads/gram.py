"""The Gram matrices of all subsets of a block, from products that subsets share.

Which of four subsets a record is in is one of sixteen patterns. The Gram matrix of the records of each pattern is
computed once, and that of a subset is the sum over the eight patterns that it takes part in: one pass over the records
for four subsets, where each by itself would take half a pass. More subsets at a time have more patterns, and adding
their matrices up then costs more than it saves.
"""

import numpy as np

from pacpredict.learners.heads.problem import Problem, Scale
from pacpredict.types import FloatArray, IntArray

_SUBSETS_AT_ONCE = 4
# Rows that are turned into float64 at a time.
_ROWS_AT_ONCE = 4096
# A feature that varies less than this, beside its size, is constant but for rounding: it is centred and not scaled.
_LEAST_DEVIATION = 1e-6


def standardise(problem: Problem) -> tuple[Scale, FloatArray]:
    """Return the scale that gives each subset's features mean 0 and deviation 1, and their Gram matrices (b, d, d)."""
    grams, sums = _raw_moments(problem)
    counts = problem.counts[:, None]
    mean = sums / counts
    variance = np.diagonal(grams, axis1=1, axis2=2) / counts - mean**2
    deviation = np.sqrt(np.maximum(variance, 0.0))
    factor = 1.0 / np.where(deviation > _LEAST_DEVIATION * np.abs(mean), deviation, 1.0)
    for i, count in enumerate(problem.counts):  # in place: together they are the largest thing in memory
        grams[i] -= count * np.outer(mean[i], mean[i])
        grams[i] *= np.outer(factor[i], factor[i])
    return Scale(mean, factor), grams


def _raw_moments(problem: Problem) -> tuple[FloatArray, FloatArray]:
    n_heads, width = problem.n_heads, problem.n_features
    grams, sums = np.zeros((n_heads, width, width)), np.zeros((n_heads, width))
    # What a record counts is the same in all subsets that have it.
    roots = np.sqrt(problem.weights.max(axis=0), dtype=np.float64)
    for first in range(0, n_heads, _SUBSETS_AT_ONCE):
        members = problem.weights[first : first + _SUBSETS_AT_ONCE] > 0
        patterns = (members * (1 << np.arange(len(members)))[:, None]).sum(axis=0)
        for pattern in range(1, 1 << len(members)):
            gram, total = _moments(problem, np.flatnonzero(patterns == pattern), roots)
            for i in range(len(members)):
                if pattern >> i & 1:
                    grams[first + i] += gram
                    sums[first + i] += total
    return grams, sums


def _moments(problem: Problem, records: IntArray, roots: FloatArray) -> tuple[FloatArray, FloatArray]:
    width = problem.n_features
    gram, total = np.zeros((width, width)), np.zeros(width)
    for start in range(0, len(records), _ROWS_AT_ONCE):
        chosen = records[start : start + _ROWS_AT_ONCE]
        rows = problem.features[chosen] * roots[chosen, None]
        gram += rows.T @ rows  # NumPy sees that it is symmetric, and computes half of it
        total += roots[chosen] @ rows
    return gram, total
