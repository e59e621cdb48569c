"""Multinomial logistic heads, by conjugate gradients: two products with the features a step, for all heads at once.

The direction of each step is the gradient, preconditioned and made conjugate to the last direction (Polak and Ribiere).
How far to go along it is found without touching the features again: scores are linear in the step, so that the loss
along the direction is a function of two arrays of scores. Each head has its own step, its own direction and its own
preconditioner: it is the head that its subset would have made alone.
"""

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from pacpredict.learners.heads.gram import standardise
from pacpredict.learners.heads.losses import residuals, slopes_along
from pacpredict.learners.heads.problem import Problem, Scale
from pacpredict.types import FloatArray

# The curvature of the loss is the Gram matrix times p (1 - p), averaged over records. The preconditioner takes this for
# it: about the average where a head is right nine times out of ten. It sets the pace, not the goal.
TYPICAL_CURVATURE = 0.1
# Along a line the loss is convex and nearly quadratic; Newton's method is there in three steps.
_LINE_STEPS = 3

# From the gradient of the slopes (b, d, s) to a direction downhill.
Precondition = Callable[[FloatArray], FloatArray]


def fit_logistic(problem: Problem, penalty: float, n_steps: int) -> tuple[FloatArray, FloatArray]:
    """Return the weights (b, d, s) and biases (b, s) of all heads on dense features.

    They minimise the sum of log-losses plus `penalty` times half the number of records times the sum of squared slopes
    on standardised features.
    """
    scale, grams = standardise(problem)
    factors = []
    diagonal = np.arange(problem.n_features)
    for i, count in enumerate(problem.counts):
        grams[i] *= TYPICAL_CURVATURE
        grams[i][diagonal, diagonal] += penalty * count
        factors.append(cho_factor(grams[i], lower=True, overwrite_a=True, check_finite=False))

    def precondition(gradient: FloatArray) -> FloatArray:
        solved = [cho_solve(own, g, check_finite=False) for own, g in zip(factors, gradient, strict=True)]
        return np.array(solved)

    return descend(problem, scale, penalty, precondition, n_steps)


def descend(
    problem: Problem, scale: Scale, penalty: float, precondition: Precondition, n_steps: int
) -> tuple[FloatArray, FloatArray]:
    """Take a number of steps of conjugate gradients from zero."""
    n, shape = len(problem.labels), (problem.n_heads, problem.n_features, problem.n_scores)
    slopes, biases = np.zeros(shape), np.zeros((problem.n_heads, problem.n_scores))
    scores = np.zeros((n, problem.n_heads, problem.n_scores), np.float32)
    errors = np.empty_like(scores)
    pull = penalty * problem.counts
    last = None  # gradient, preconditioned gradient and direction of the step before
    for _ in range(n_steps):
        residuals(scores, problem.labels, problem.weights, problem.present, errors)
        gradient, totals = scale.backward(problem, errors)
        gradient += pull[:, None, None] * slopes
        ahead = precondition(gradient), totals / (TYPICAL_CURVATURE * problem.counts)[:, None]
        direction = _conjugate((gradient, totals), ahead, last)
        last = (gradient, totals), ahead, direction
        moved = scale.forward(problem, *direction)
        steps = _line_search(problem, scores, moved, slopes, direction[0], pull)
        slopes += steps[:, None, None] * direction[0]
        biases += steps[:, None] * direction[1]
        scores += (steps[None, :, None] * moved).astype(np.float32)
    return scale.fold(slopes, biases)


Pair = tuple[FloatArray, FloatArray]  # of slopes and of biases


def _conjugate(gradient: Pair, ahead: Pair, last: tuple[Pair, Pair, Pair] | None) -> Pair:
    if last is None:
        return -ahead[0], -ahead[1]
    before, ahead_before, direction = last
    change = gradient[0] - before[0], gradient[1] - before[1]
    size = _inner(before, ahead_before)
    # Never below zero: then it begins anew, downhill. Where nothing is left to gain there is nothing to divide by.
    share = np.maximum(_inner(change, ahead), 0.0) / np.where(size > 0, size, 1.0)
    return share[:, None, None] * direction[0] - ahead[0], share[:, None] * direction[1] - ahead[1]


def _inner(one: Pair, other: Pair) -> FloatArray:
    return np.asarray(np.einsum("bds,bds->b", one[0], other[0]) + np.einsum("bs,bs->b", one[1], other[1]))


def _line_search(
    problem: Problem,
    scores: np.ndarray,
    moved: np.ndarray,
    slopes: FloatArray,
    direction: FloatArray,
    pull: FloatArray,
) -> FloatArray:
    """Return how far each head goes along its direction."""
    steps, first, second = np.zeros(problem.n_heads), np.empty(problem.n_heads), np.empty(problem.n_heads)
    space = np.empty((2, problem.n_scores), np.float32)
    along = pull * np.einsum("bds,bds->b", slopes, direction)
    bend = pull * np.einsum("bds,bds->b", direction, direction)
    for _ in range(_LINE_STEPS):
        slopes_along(
            scores, moved, steps, problem.labels, problem.weights, problem.present, space, first, second
        )
        slope, curvature = first + along + steps * bend, second + bend
        steps -= np.where(curvature > 0, slope / np.where(curvature > 0, curvature, 1.0), 0.0)
    return steps
