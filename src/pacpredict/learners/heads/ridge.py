"""Ridge heads: least squares towards the labels, solved from the Gram matrices."""

import numpy as np
from scipy.linalg import solve

from pacpredict.learners.heads.gram import standardise
from pacpredict.learners.heads.problem import Problem
from pacpredict.types import FloatArray


def fit_ridge(problem: Problem, penalty: float) -> tuple[FloatArray, FloatArray]:
    """Return the weights (b, d, s) and biases (b, s) of all heads.

    They minimise the sum of squared errors, where a label is 1 for its own class and -1 for others, plus `penalty`
    times the number of records times the sum of squared slopes on standardised features.
    """
    scale, grams = standardise(problem)
    targets = _targets(problem)
    means = np.array([own @ targets for own in problem.weights], np.float64) / problem.counts[:, None]
    centred = problem.weights.T[:, :, None] * (targets[:, None, :] - means).astype(np.float32)
    crossed, _ = scale.backward(problem, centred)
    slopes = np.empty_like(crossed)
    diagonal = np.arange(problem.n_features)
    for i, gram in enumerate(grams):
        gram[diagonal, diagonal] += penalty * problem.counts[i]
        slopes[i] = solve(gram, crossed[i], assume_a="pos", overwrite_a=True, check_finite=False)
    return scale.fold(slopes, means)


def _targets(problem: Problem) -> FloatArray:
    """Return (n, s) of 1 and -1; of two classes the second is 1."""
    wanted = np.arange(1, 2) if problem.n_classes == 2 else np.arange(problem.n_classes)
    return np.where(problem.labels[:, None] == wanted, 1.0, -1.0)
