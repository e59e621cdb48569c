"""The logistic loss of all heads of a block over all records: one pass each, compiled, nothing but scores kept.

Scores are (n, b, s). With s = 1 there are two classes and the score is the log-odds of the second; otherwise classes
that a subset does not have are left out of its softmax.
"""

import math

import numpy as np

from pacpredict.core.compiled import compiled
from pacpredict.learners.heads.problem import Single
from pacpredict.types import BoolArray, FloatArray, IntArray


@compiled
def residuals(scores: Single, labels: IntArray, weights: Single, present: BoolArray, out: Single) -> None:
    """Write probability less truth, times the weight of the record, for each score; 0 where it is not in the subset."""
    n, n_heads, n_scores = scores.shape
    for r in range(n):
        for i in range(n_heads):
            weight = weights[i, r]
            if weight == 0.0:
                for c in range(n_scores):
                    out[r, i, c] = 0.0
            elif n_scores == 1:
                out[r, i, 0] = weight * (1.0 / (1.0 + math.exp(-scores[r, i, 0])) - labels[r])
            else:
                _softmax(scores[r, i], present[i], out[r, i])
                out[r, i, labels[r]] -= 1.0
                for c in range(n_scores):
                    out[r, i, c] *= weight


@compiled
def slopes_along(
    scores: Single,
    direction: Single,
    steps: FloatArray,
    labels: IntArray,
    weights: Single,
    present: BoolArray,
    space: Single,
    first: FloatArray,
    second: FloatArray,
) -> None:
    """Write the first and second derivative of each head's loss at scores + step * direction, in the step (b,)."""
    n, n_heads, n_scores = scores.shape
    first[:] = 0.0
    second[:] = 0.0
    for r in range(n):
        for i in range(n_heads):
            weight = weights[i, r]
            if weight == 0.0:
                continue
            if n_scores == 1:
                d = direction[r, i, 0]
                p = 1.0 / (1.0 + math.exp(-(scores[r, i, 0] + steps[i] * d)))
                first[i] += weight * (p - labels[r]) * d
                second[i] += weight * p * (1.0 - p) * d * d
                continue
            for c in range(n_scores):
                space[0, c] = scores[r, i, c] + steps[i] * direction[r, i, c]
            _softmax(space[0], present[i], space[1])
            mean = square = 0.0
            for c in range(n_scores):
                mean += space[1, c] * direction[r, i, c]
                square += space[1, c] * direction[r, i, c] * direction[r, i, c]
            first[i] += weight * (mean - direction[r, i, labels[r]])
            second[i] += weight * (square - mean * mean)


@compiled
def _softmax(scores: Single, present: BoolArray, out: Single) -> None:
    highest = -np.inf
    for c in range(scores.size):
        if present[c] and scores[c] > highest:
            highest = scores[c]
    total = 0.0
    for c in range(scores.size):
        out[c] = math.exp(scores[c] - highest) if present[c] else 0.0
        total += out[c]
    for c in range(scores.size):
        out[c] /= total
