"""Logistic heads on sparse counts of words, with each subset's own inverse document frequencies."""

import numpy as np

from pacpredict.learners.heads.logistic import TYPICAL_CURVATURE, descend
from pacpredict.learners.heads.problem import Problem, Scale
from pacpredict.types import FloatArray


def fit_words(problem: Problem, penalty: float, n_steps: int, *, idf: bool) -> tuple[FloatArray, FloatArray]:
    """Return the weights (b, d, s) and biases (b, s) of all heads on sparse features.

    They minimise the sum of log-losses plus `penalty` times half the number of records times the sum of squared slopes
    on features times their idf.
    """
    shape = problem.n_heads, problem.n_features
    factor = _inverse_document_frequencies(problem) if idf else np.ones(shape)
    # There are too many features for a Gram matrix; of the curvature its diagonal is known.
    curvature = TYPICAL_CURVATURE * factor**2 * _totals(problem, 2) + penalty * problem.counts[:, None]
    scale = Scale(np.zeros(shape), factor)
    return descend(problem, scale, penalty, lambda gradient: gradient / curvature[:, :, None], n_steps)


def _inverse_document_frequencies(problem: Problem) -> FloatArray:
    """Return (b, d), as scikit-learn has them: a word in few of a subset's own texts counts more."""
    return np.log((1.0 + problem.counts[:, None]) / (1.0 + _totals(problem, 0))) + 1.0


def _totals(problem: Problem, power: int) -> FloatArray:
    """Return (b, d): of each feature the sum over a subset's texts that have it, each to a power."""
    powers = problem.features.copy()
    powers.data = powers.data**power
    return np.asarray((powers.T @ problem.weights.T).T, np.float64)
