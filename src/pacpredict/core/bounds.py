"""From leaked nats to the success of any attack and back: Theorem 2.4 (thm:post_adv_mi), equation (2).

An attacker who succeeds with probability q before seeing any answer (the prior) and s after answers that
leak at most B nats satisfies KL(Bernoulli(s) || Bernoulli(q)) <= B. The bound is the largest such s.

The unknown is the advantage a = s - q, because s itself cannot show it: at 2^-32 nats and q = 1/2 it is
1e-5, at 1e-30 nats 7e-16. With x = a/q, y = a/(1-q) and h(u) = (1+u) log(1+u) - u the divergence is

    KL = q h(x) + (1-q) h(-y) = a [ h(x)/x + h(-y)/y ],

in which all terms are non-negative, so nothing cancels.

How wrong the computed KL can be, relatively: 1 - q, x and y carry one rounding each (2^-53); off the series
(x or y above 1/8) the bracket is a difference from 1 whose value is at least 0.05, which multiplies some
four roundings by 20; and next to s = 1 the slope of h(-y) is at most |log 2^-53| = 37 per rounding. All of
this is below 2^-46; _WRONG_BY leaves a factor of eight for a poor libm. The tests measure it.
"""

import bisect
import math
from fractions import Fraction

from pacpredict.core.rounding import sum_down, sum_up
from pacpredict.core.scalars import (
    check_budget,
    check_delta,
    check_epsilon,
    check_leakage,
    check_prior,
    check_success,
)
from pacpredict.exceptions import InvalidProbability

DEFAULT_DELTA = 1e-5  # the paper's, wherever it quotes (epsilon, delta)-DP

# Advantages are sought among floats with this many significant bits. The KL of two neighbours differs by at
# least 2^-40 of itself (it is convex and 0 at 0), far more than it can be wrong, so the computed KL strictly
# increases along this grid: the search has one answer, and budget_for_success inverts success_bound exactly.
# The price is a bound that is up to 2^-39, or 2e-12, of the advantage too high.
_GRID_BITS = 40
_HALF_GRID = 1 << (_GRID_BITS - 1)

_WRONG_BY = 2.0**-43
# A computed KL of at least (1 + 2 _WRONG_BY) B is truly at least B; the factor 2 also covers the rounding of
# this product.
_COVER = 1 + 2 * _WRONG_BY

# KL is computed times 2^600, exactly, so that no budget, not even 5e-324 nats, is compared among subnormal
# floats, where relative errors are unbounded. The largest KL, log(1/5e-324) = 745, stays far below 2^1024.
_SCALE = 2.0**600

# h(-z)/z = sum over n >= 2 of z^(n-1) / (n (n-1)). Where |z| <= 1/8, what follows n = 19 is below 2^-58 of
# the sum.
_SERIES_UP_TO = 0.125
_SERIES = tuple(1 / (n * (n - 1)) for n in range(19, 1, -1))


def success_bound(budget_nats: float, prior: float = 0.5) -> float:
    """Return the highest success rate of any attack after at most `budget_nats` were leaked.

    Never below the exact bound; above it by at most 4e-12 of the advantage and one rounding. A budget of 0
    gives the prior itself, one of log(1/prior) or more gives 1.
    """
    return min(1.0, sum_up((check_prior(prior), advantage_bound(budget_nats, prior))))


def advantage_bound(budget_nats: float, prior: float = 0.5) -> float:
    """Return what the answers can add to the prior: the success bound minus the prior, to full precision."""
    q = check_prior(prior)
    budget = check_leakage(budget_nats)
    if budget == 0:
        return 0.0
    certain = sum_up((1.0, -q))
    if budget >= -math.log(q):
        return certain
    grid = range(_grid_index(5e-324), _grid_index(1 - q) + 1)
    position = bisect.bisect_left(grid, _covered(budget), key=lambda index: _scaled_kl(_grid_float(index), q))
    return certain if position == len(grid) else _grid_float(grid[position])


def budget_for_success(success: float, prior: float = 0.5) -> float:
    """Return the most nats that may leak while no attack succeeds more often than `success`.

    Rounded down. For every budget B and every success s below 1, `budget_for_success(success_bound(B)) >= B`
    and `success_bound(budget_for_success(s)) <= s`, to the last bit. At a success of 1 this is log(1/prior),
    where the guarantee ends.
    """
    q = check_prior(prior)
    s = check_success(success)
    if s < q:
        raise InvalidProbability(
            f"success {success!r} lies below the prior {prior!r}, which needs no answer at all; "
            "ask for at least the prior, or state the prior of the attack you mean"
        )
    if s == q:
        return 0.0
    if s == 1:
        return math.nextafter(-math.log(q), 0.0)
    advantage = _grid_float(_grid_index(sum_down((s, -q))))
    return _largest_budget_within(_scaled_kl(advantage, q))


def queries_supported(step_budget: float, success: float, prior: float = 0.5) -> int:
    """Return how many releases of `step_budget` nats keep every attack within `success` (Theorem 3.3)."""
    step = check_budget(step_budget, "step_budget")
    return Fraction(budget_for_success(success, prior)) // Fraction(step)


def success_for_epsilon(epsilon: float, delta: float = DEFAULT_DELTA) -> float:
    """Return the membership success that (epsilon, delta)-DP allows: 1 - (1 - delta) / (1 + e^epsilon)."""
    odds_against = math.exp(-check_epsilon(epsilon))
    return (1 + check_delta(delta) * odds_against) / (1 + odds_against)


def epsilon_for_success(success: float, delta: float = DEFAULT_DELTA) -> float:
    """Return the epsilon at which (epsilon, delta)-DP promises the same about membership inference.

    It is 0 where even (0, delta)-DP allows this success, and infinite at a success of 1. The paper quotes it
    to give a feeling for a bound; it does not make the mechanism differentially private.
    """
    s = check_success(success)
    excess = (2 * s - 1) - check_delta(delta)  # of success over (0, delta)-DP's (1 + delta) / 2, twice
    if excess <= 0:
        return 0.0
    return math.inf if s == 1 else math.log1p(excess / (1 - s))


def _scaled_kl(a: float, q: float) -> float:
    """Return KL(Bernoulli(q + a) || Bernoulli(q)) times _SCALE, wrong by less than _WRONG_BY of itself.

    A KL below the smallest budget, 5e-324, may come out as 0, which compares with any budget as it should.
    """
    return a * _SCALE * (_gain(a, q) + _loss(a / (1 - q)))


def _gain(a: float, q: float) -> float:
    """Return h(x)/x at x = a/q."""
    x = a / q
    if x <= _SERIES_UP_TO:
        return -_series(-x)
    # A subnormal q can push x past the largest float; there log(1 + x) = log(a) - log(q) to the last bit.
    log_ratio = math.log1p(x) if x < math.inf else math.log(a) - math.log(q)
    return (1 + 1 / x) * log_ratio - 1


def _loss(y: float) -> float:
    """Return h(-y)/y for 0 < y <= 1."""
    if y <= _SERIES_UP_TO:
        return _series(y)
    return 1 + (1 / y - 1) * math.log1p(-y) if y < 1 else 1.0


def _series(z: float) -> float:
    total = 0.0
    for coefficient in _SERIES:
        total = (total + coefficient) * z
    return total


def _covered(budget: float) -> float:
    return budget * _SCALE * _COVER


def _largest_budget_within(scaled_kl: float) -> float:
    """Return the largest budget that success_bound takes to an advantage of this KL or a smaller one."""
    budget = scaled_kl / _COVER / _SCALE
    while _covered(budget) > scaled_kl:
        budget = math.nextafter(budget, 0.0)
    while _covered(following := math.nextafter(budget, math.inf)) <= scaled_kl:
        budget = following
    return budget


def _grid_index(value: float) -> int:
    """Return the number of the largest grid float that is at most `value`."""
    mantissa, exponent = math.frexp(value)
    return exponent * _HALF_GRID + math.floor(math.ldexp(mantissa, _GRID_BITS)) - _HALF_GRID


def _grid_float(index: int) -> float:
    exponent, rest = divmod(index, _HALF_GRID)
    return math.ldexp(rest + _HALF_GRID, exponent - _GRID_BITS)
