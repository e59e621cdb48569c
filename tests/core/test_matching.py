"""Both translations of a success rate into differential privacy, against quadrature and a search over all tests."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pacpredict.core.bounds import advantage_bound, budget_for_success, success_bound
from pacpredict.core.matching import (
    gaussian_epsilon,
    gaussian_mu,
    gaussian_tpr,
    match_gaussian,
    match_generic,
)
from pacpredict.exceptions import InvalidProbability

DEFAULT_TOTAL = 1_000_000 * 2.0**-32


def dp_success(epsilon, delta, prior):
    """Return the success of the best test under (epsilon, delta)-DP, by trying many false positive rates."""
    corner = (1 - delta) / (1 + math.exp(epsilon))
    fpr = np.union1d(np.linspace(0, 1, 2001), [corner, 1 - delta, delta])
    power = np.minimum(
        np.minimum(math.exp(epsilon) * fpr + delta, 1 - math.exp(-epsilon) * (1 - delta - fpr)), 1
    )
    return max(float((share * power + (1 - share) * (1 - fpr)).max()) for share in (prior, 1 - prior))


def hockey_stick(epsilon, mu):
    """Return the integral of the positive part of N(mu, 1) - e^epsilon N(0, 1): the least delta, by quadrature."""
    with mpmath.workdps(30):
        start = mpmath.mpf(epsilon) / mu + mpmath.mpf(mu) / 2
        excess = lambda x: mpmath.npdf(x, mu) - mpmath.exp(epsilon) * mpmath.npdf(x)  # noqa: E731
        return mpmath.quad(excess, [start, start + 2, start + 6, start + 40])


def best_success(mu, prior):
    """Return the integral of the larger of both weighted densities: the success of the best test, by quadrature."""
    with mpmath.workdps(30):
        even = mpmath.mpf(mu) / 2 - mpmath.log(prior / (1 - mpmath.mpf(prior))) / mu
        member = mpmath.quad(
            lambda x: prior * mpmath.npdf(x, mu), [even, max(even, mu) + 5, max(even, mu) + 40]
        )
        other = mpmath.quad(
            lambda x: (1 - mpmath.mpf(prior)) * mpmath.npdf(x), [min(even, 0) - 40, min(even, 0) - 5, even]
        )
        return member + other


@settings(deadline=None, max_examples=200)
@given(
    prior=st.one_of(st.just(0.5), st.floats(0.5, 0.99)),
    share=st.floats(1e-4, 0.99),
    delta=st.sampled_from([0, 1e-5, 0.01]),
)
def test_the_generic_formula_allows_the_same_success(prior, share, delta):
    """DP with this epsilon allows a test with this prior what the budget does, and with a smaller one less."""
    budget = budget_for_success(prior + share * (1 - prior), prior)
    success, match = success_bound(budget, prior), match_generic(budget, prior, delta=delta)
    assert match.success == pytest.approx(dp_success(match.epsilon, delta, prior), rel=1e-9)
    if match.epsilon == 0:
        assert success <= match.success
        return
    assert match.success == pytest.approx(success, rel=1e-9)
    if success > prior + (1 - prior) * delta + 1e-6:
        assert dp_success(0.999 * match.epsilon, delta, prior) < success


@settings(deadline=None, max_examples=40)
@given(mu=st.floats(0.01, 8), delta=st.sampled_from([1e-9, 1e-5, 0.01]))
def test_the_gaussian_curve_is_that_of_quadrature(mu, delta):
    """mu-GDP is (epsilon, delta)-DP with this epsilon and with none that is smaller by a millionth."""
    epsilon = gaussian_epsilon(mu, delta)
    if epsilon == 0:
        assert hockey_stick(0, mu) <= delta
        return
    assert hockey_stick(epsilon, mu) <= delta * (1 + 1e-6)
    assert hockey_stick(epsilon * (1 - 1e-6), mu) > delta * (1 - 1e-9)


@settings(deadline=None, max_examples=40)
@given(share=st.floats(1e-3, 0.95), prior=st.one_of(st.just(0.5), st.floats(0.5, 0.95)))
def test_the_gaussian_mechanism_has_that_success(share, prior):
    """The best test of N(0, 1) against N(mu, 1) succeeds as often as the budget allows."""
    budget = budget_for_success(prior + share * (1 - prior), prior)
    mu = gaussian_mu(advantage_bound(budget, prior), prior)
    assert float(best_success(mu, prior)) == pytest.approx(success_bound(budget, prior), abs=1e-9)


@settings(deadline=None)
@given(mu=st.floats(0, 8), fpr=st.floats(1e-9, 1 - 1e-9))
def test_true_positives_of_a_gaussian_mechanism(mu, fpr):
    """A threshold with this false positive rate has that true positive rate."""
    with mpmath.workdps(30):
        threshold = -mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(fpr) - 1)
        assert gaussian_tpr(mu, fpr) == pytest.approx(float(mpmath.ncdf(mu - threshold)), rel=1e-6)


def test_figures_that_are_quoted():
    """51.08% is (0.174, 1e-5)-DP if Gaussian and (0.043, 1e-5)-DP by the formula; 73.10% is 5.58 and 1."""
    generic, gaussian = match_generic(DEFAULT_TOTAL), match_gaussian(DEFAULT_TOTAL)
    assert (round(generic.epsilon, 3), round(gaussian.epsilon, 3)) == (0.043, 0.174)
    assert (round(100 * generic.tpr, 2), round(100 * gaussian.tpr, 2)) == (0.11, 0.12)
    assert gaussian_mu(advantage_bound(DEFAULT_TOTAL)) == pytest.approx(0.0541, abs=5e-5)
    generic, gaussian = match_generic(0.1109), match_gaussian(0.1109)
    assert (round(generic.epsilon, 3), round(gaussian.epsilon, 2)) == (1, 5.58)
    assert round(100 * gaussian.tpr, 1) == 3.2
    assert gaussian_mu(advantage_bound(0.1109)) == pytest.approx(1.232, abs=5e-4)


def test_one_with_delta_is_not_seventy_three_percent():
    """A Gaussian mechanism that is (1, 1e-5)-DP has mu 0.268: success 55.3%, and 0.24% found at 0.1%."""
    low, high = 0.0, 1.0
    for _ in range(60):
        low, high = (
            ((low + high) / 2, high) if gaussian_epsilon((low + high) / 2) < 1 else (low, (low + high) / 2)
        )
    assert high == pytest.approx(0.268, abs=5e-4)
    assert float(best_success(high, 0.5)) == pytest.approx(0.553, abs=5e-4)
    assert gaussian_tpr(high) == pytest.approx(0.0024, abs=5e-5)


def test_both_follow_the_prior():
    """A budget of 0 matches 0, one without a promise infinity; no membership inference has a prior below 1/2."""
    for match in (match_generic, match_gaussian):
        assert match(0.0).epsilon == match(0.0, 0.75).epsilon == 0
        assert match(0.1109, 1 / 128) == match(0.1109, 0.5)
        assert match(0.1109, 0.75).epsilon > 2 * match(0.1109, 0.5).epsilon
        assert (match(1.0).epsilon, match(1.0).tpr) == (math.inf, 1)
        with pytest.raises(InvalidProbability):
            match(0.1, 1.5)
    assert match_gaussian(0.1, delta=0).epsilon == math.inf
    assert (gaussian_tpr(1, 0.0), gaussian_tpr(1, 1.0)) == (0, 1)
