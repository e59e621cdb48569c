"""Intervals cover what they should, ceilings are those of the theory, curves are those of the test."""

import math

import numpy as np
import pytest
from scipy.stats import beta, binomtest, norm

from pacpredict.audit.estimates import (
    LEVEL,
    RATES,
    Estimate,
    clopper_pearson,
    curve,
    mean_of,
    rate_over_trials,
    roc,
    success_ceiling,
)
from pacpredict.core.bounds import success_bound, success_for_epsilon
from pacpredict.core.roc import tpr_bound, tpr_for_epsilon
from pacpredict.exceptions import InvalidInput


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (10, 10), (3, 17), (499, 1000), (1, 100_000)])
def test_the_exact_interval_is_that_of_clopper_and_pearson(hits, n):
    """An independent implementation says the same."""
    found = clopper_pearson(hits, n)
    expected = binomtest(hits, n).proportion_ci(LEVEL, method="exact")
    assert found.value == hits / n
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


@pytest.mark.parametrize(("hits", "n"), [(-1, 5), (6, 5), (0, 0)])
def test_impossible_counts_are_refused(hits, n):
    """Nobody has more hits than cases."""
    with pytest.raises(InvalidInput, match="there cannot be"):
        clopper_pearson(hits, n)


def test_a_mean_has_students_interval():
    """The interval covers the true mean as often as it says, for values that are normal."""
    rng = np.random.default_rng(0)
    covered = [found.low <= 0 <= found.high for found in (mean_of(rng.normal(size=8)) for _ in range(4000))]
    assert binomtest(sum(covered), 4000, LEVEL).pvalue > 1e-3
    assert mean_of([1.0]) == Estimate(1.0, -math.inf, math.inf)


def test_cases_of_one_trial_count_less_where_they_belong_together():
    """Where all cases of a trial go the same way, there are as many cases as trials."""
    together = rate_over_trials([20, 0, 20, 0] * 25, [20] * 100)
    apart = rate_over_trials(np.random.default_rng(0).binomial(20, 0.5, 100), [20] * 100)
    as_trials = clopper_pearson(50, 100)
    assert (together.low, together.high) == pytest.approx((as_trials.low, as_trials.high), abs=0.002)
    assert apart.high - apart.low < (together.high - together.low) / 3
    assert rate_over_trials([0] * 9, [5] * 9).high == pytest.approx(
        float(beta.ppf(1 - (1 - LEVEL) / 2, 1, 9))
    )


def test_a_roc_curve_is_that_of_the_test():
    """For normal scores that members have shifted, true positives are those of the formula."""
    rng = np.random.default_rng(1)
    members = rng.random((200, 2000)) < 0.5
    scores = rng.normal(size=members.shape) + members
    for point in roc(scores, members, 0.5, None, 0.0):
        low, high = (norm.sf(norm.isf(rate) - 1) for rate in (point.accused.low, point.accused.high))
        assert point.tpr.low <= high
        assert point.tpr.high >= low
        assert point.accused.low <= point.fpr <= point.accused.high
        assert point.ceiling == tpr_bound(0.5, point.fpr)
        assert point.surely == tpr_bound(0.5, point.accused.high)
        assert not point.passes()
        assert point._replace(surely=point.tpr.low / 2).passes()
    for fpr, tpr in curve(scores, members):
        assert tpr == pytest.approx(norm.sf(norm.isf(fpr) - 1) if fpr < 1 else 1.0, rel=0.3, abs=0.003)
    assert [point.fpr for point in roc(scores, members, 0.5, 1.0, 1e-9)] == list(RATES)


def test_ceilings_are_the_lower_of_two():
    """Nats bound success, and so does the limit on odds; whichever is lower holds."""
    assert success_ceiling(0.01, 0.5, None, 0.0) == success_bound(0.01)
    assert success_ceiling(0.01, 0.5, 1.0, 0.0) == success_bound(0.01)
    assert success_ceiling(0.5, 0.5, 0.1, 0.0) == success_for_epsilon(0.1, 0.0)
    assert success_ceiling(0.5, 0.9, 0.1, 0.0) == 0.9, "a guess without any answer is right as often"
    (point, *_) = roc(np.zeros((2, 4)), np.array([[1, 0, 1, 0]] * 2, bool), 0.6, 0.5, 0.0)
    assert point.ceiling == tpr_for_epsilon(0.5, point.fpr, 0.0)


def test_only_what_is_surely_above_passes():
    """A rate passes a ceiling if its whole interval does."""
    assert Estimate(0.6, 0.55, 0.65).passes(0.54)
    assert not Estimate(0.6, 0.55, 0.65).passes(0.56)
