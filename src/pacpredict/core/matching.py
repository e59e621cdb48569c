"""Which differential privacy allows an attack the same average success as a budget: for comparison, two ways.

No single epsilon goes with a success rate. Two translations are customary, and they differ by a factor of four:

- *generic*: the smallest epsilon for which (epsilon, delta)-DP allows this success to *some* mechanism, by the formula
  1 - (1 - delta) / (1 + e^epsilon);
- *Gaussian*: a Gaussian mechanism with this success would be mu-GDP with mu = 2 Phi^-1(success) at prior 1/2, which is
  (epsilon, delta)-DP along a curve (Dong, Roth and Su, 2019; Balle and Wang, 2018).

Neither is a guarantee of a deployment, whose true positives at few false ones are bounded by `roc.tpr_bound` and by its
limit on odds (docs/theory.md, 6). `pacpredict bounds` prints both, with what each allows there; nothing else does.
"""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

from pacpredict.core.attacks import as_membership_prior
from pacpredict.core.bounds import DEFAULT_DELTA, advantage_bound, epsilon_for_success, success_bound
from pacpredict.core.roc import DEFAULT_FPR, tpr_for_epsilon
from pacpredict.core.scalars import check_delta, check_rate

# Beyond this mu a test is right but for 1e-24: success has become 1 in doubles long before.
_LARGEST_MU = 20.0


class Match(NamedTuple):
    """A differential privacy with the average success of a budget, and what it allows elsewhere."""

    epsilon: float
    delta: float
    success: float  # that it allows a test with this prior
    tpr: float  # that it allows at the rate of false positives


def match_generic(
    total_budget: float, prior: float = 0.5, *, delta: float = DEFAULT_DELTA, fpr: float = DEFAULT_FPR
) -> Match:
    """Return the (epsilon, delta)-DP whose formula for the success of any test gives that of a budget.

    With prior q that is the larger of q + (1 - q) delta, by delta alone, and 1 - (1 - delta) / (1 + e^epsilon).
    """
    q, d = as_membership_prior(prior), check_delta(delta)
    success, by_delta = success_bound(total_budget, q), q + (1 - q) * d
    is_within_delta = advantage_bound(total_budget, q) <= (1 - q) * d
    epsilon = 0.0 if is_within_delta else epsilon_for_success(success, d)
    return Match(epsilon, d, max(success, by_delta), tpr_for_epsilon(epsilon, fpr, d))


def match_gaussian(
    total_budget: float, prior: float = 0.5, *, delta: float = DEFAULT_DELTA, fpr: float = DEFAULT_FPR
) -> Match:
    """Return the (epsilon, delta)-DP of the Gaussian mechanism on which a test succeeds as often as a budget allows."""
    q, d = as_membership_prior(prior), check_delta(delta)
    mu = gaussian_mu(advantage_bound(total_budget, q), q)
    return Match(gaussian_epsilon(mu, d), d, success_bound(total_budget, q), gaussian_tpr(mu, fpr))


def gaussian_mu(advantage: float, prior: float = 0.5) -> float:
    """Return the mu at which the best test of N(0, 1) against N(mu, 1) gains this much over its prior."""
    if advantage >= 1 - prior:
        return math.inf
    return _smallest(lambda mu: _gaussian_advantage(mu, prior) >= advantage, _LARGEST_MU)


def gaussian_epsilon(mu: float, delta: float = DEFAULT_DELTA) -> float:
    """Return the epsilon with which mu-GDP is (epsilon, delta)-DP."""
    if mu == math.inf or (delta == 0 < mu):
        return math.inf
    largest = 1.0
    while _gaussian_delta(largest, mu) > delta:
        largest *= 2
    return _smallest(lambda epsilon: _gaussian_delta(epsilon, mu) <= delta, largest)


def gaussian_tpr(mu: float, fpr: float = DEFAULT_FPR) -> float:
    """Return the true positive rate of the best test of N(0, 1) against N(mu, 1) at this false positive rate."""
    f = check_rate(fpr, "fpr")
    if f in (0.0, 1.0) or mu == math.inf:
        return 1.0 if f == 1 or mu == math.inf else 0.0
    return _cdf(NormalDist().inv_cdf(f) + mu)


def _cdf(x: float) -> float:
    """Return Phi(x), to full precision in the lower tail, where NormalDist.cdf has none."""
    return 0.5 * math.erfc(-x / math.sqrt(2))


def _gaussian_advantage(mu: float, q: float) -> float:
    """Return what the likelihood-ratio test adds to the prior q, which is at least 1/2."""
    if mu == 0:
        return 0.0
    if q == 0.5:
        return 0.5 * math.erf(mu / math.sqrt(8))
    tilt = math.log(q / (1 - q)) / mu
    return (1 - q) * _cdf(mu / 2 - tilt) - q * _cdf(-mu / 2 - tilt)


def _gaussian_delta(epsilon: float, mu: float) -> float:
    """Return Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2)."""
    if mu == 0:
        return 0.0
    tail = _cdf(-epsilon / mu - mu / 2)
    return _cdf(-epsilon / mu + mu / 2) - (math.exp(epsilon + math.log(tail)) if tail > 0 else 0.0)


def _smallest(holds: Callable[[float], bool], largest: float) -> float:
    """Return the smallest float for which a condition holds that holds from there on; infinity if it never does."""
    if not holds(largest):
        return math.inf
    low, high = 0.0, largest
    if holds(low):
        return low
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
