"""Which released labels are worth training a student on: tests of Proposition 5.1, and the posterior.

All of it is post-processing (docs/theory.md, 2). The tests bound how often a label is kept *and* differs from the
secret model's; the posterior bounds how often a kept one does (docs/theory.md, 5 and 7).
"""

import math
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from pacpredict.core.belief import Belief
from pacpredict.core.calibrate import Noise
from pacpredict.core.kernel import rounding_of_masses
from pacpredict.exceptions import InvalidInput, InvalidProbability
from pacpredict.types import BoolArray, FloatArray, IntArray, Votes

# The test with alpha divided among the rivals; the test as the paper prints it; the posterior of the label.
Filter = Literal["corrected", "paper", "bayesian"]
FILTERS: tuple[Filter, ...] = get_args(Filter)


class Confidence(NamedTuple):
    """How clearly a label beats its rivals: the smallest statistic of Proposition 5.1, and of how many rivals.

    Of one label, or arrays of many.
    """

    statistic: Any
    n_rivals: Any


def confidence(noise: Noise, votes: Votes, noisy: FloatArray, label: int) -> Confidence:
    """Compute min_j T_j(r) of Proposition 5.1 from noisy coordinates: how clearly `label` beats every rival.

    The noise of label votes is singular. The statistic is then the limit of a vanishing extra noise: a class
    that nobody votes for has no noise that could have hidden it and is excluded, and where all models agree
    the label is certain (infinity).
    """
    voted, first = np.unique(votes, return_index=True)
    is_label = voted == label
    n_rivals = int((~is_label).sum())
    if n_rivals == voted.size:
        return Confidence(-math.inf, n_rivals)
    at = noise.coordinates[first]
    rivals = at[~is_label]
    towards = (at[is_label] - rivals) / noise.variances
    lengths = np.sqrt((towards * (at[is_label] - rivals)).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        statistics = (towards * (noisy - rivals)).sum(axis=1) / lengths
    # Where nothing tells a rival apart.
    statistics[lengths == 0] = -math.inf
    return Confidence(float(statistics.min(initial=math.inf)), n_rivals)


def is_confident(found: Confidence, alpha: float, *, corrected: bool = True) -> BoolArray:
    """Decide whether labels pass the test of Proposition 5.1: a wrong one does with probability alpha at most.

    `corrected=False` is the paper's own test. Its proof treats the label as fixed, but the label is chosen by
    looking at the release; with three or more voted classes a wrong label can then pass more often than alpha
    (docs/theory.md, 7, has a counterexample). So alpha is divided among the rivals.
    """
    from scipy.special import ndtri  # noqa: PLC0415  # imported here: only distillation needs it

    check_alpha(alpha)
    shares = np.maximum(found.n_rivals, 1) if corrected else 1
    return np.asarray(found.statistic >= -ndtri(alpha / shares))


def posteriors(votes: Votes, belief: Belief, n_classes: int) -> FloatArray:
    """Compute how probable it is that the secret model gives each label to each query (n_queries, n_classes).

    Given the whole history that the belief comes from, which may have gone on after the queries were answered.
    """
    p = belief.probabilities()
    return np.stack([(votes == label) @ p for label in range(n_classes)], axis=1)


def is_believed(posterior: FloatArray, labels: IntArray, alpha: float, n_models: int) -> BoolArray:
    """Decide which labels differ from the secret model's with probability alpha at most, given the history.

    The masses of all other labels are added up, so that little doubt is a sum of little numbers; rounded up.
    """
    check_alpha(alpha)
    others = posterior.copy()
    others[np.arange(len(labels)), labels] = 0.0
    return np.asarray(others.sum(axis=1) * (1.0 + rounding_of_masses(n_models)) <= alpha)


def check_filter(name: str) -> Filter:
    for known in FILTERS:
        if name == known:
            return known
    raise InvalidInput(f"a filter is one of {', '.join(FILTERS)}, got {name!r:.50}")


def check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise InvalidProbability(f"alpha must lie strictly between 0 and 1, got {alpha!r}")
