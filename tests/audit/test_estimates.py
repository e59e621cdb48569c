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
    least_to_tell,
    mean_of,
    rate_over_trials,
    roc,
    students_mean,
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


# Values from 0 to 1 by which an interval can be fooled: trials that are all or nothing, or seldom anything else.
DRAWS = {
    "a coin": (0.5, lambda rng, n: rng.integers(0, 2, n)),
    "seldom": (0.02, lambda rng, n: rng.random(n) < 0.02),
    "mostly": (0.98, lambda rng, n: rng.random(n) < 0.98),
    "near the middle, or nothing": (0.475, lambda rng, n: 0.5 * (rng.random(n) < 0.95)),
    "two values": (0.55, lambda rng, n: np.where(rng.random(n) < 0.9, 0.5, 1.0)),
    "spread": (0.5, lambda rng, n: rng.beta(20, 20, n)),
}


@pytest.mark.parametrize("n", [1, 2, 3, 5, 10, 20, 100])
@pytest.mark.parametrize("what", DRAWS)
def test_the_interval_of_a_mean_holds_for_whatever_is_between_0_and_1(what, n):
    """However few trials there are, and however they are distributed, the mean is missed no more often than is said."""
    truth, draw = DRAWS[what]
    rng = np.random.default_rng(n)
    found = [mean_of(draw(rng, n)) for _ in range(500)]
    missed = sum(not one.low <= truth <= one.high for one in found)
    assert binomtest(missed, len(found), 1 - LEVEL, alternative="greater").pvalue > 1e-4
    assert all(one.low <= one.value <= one.high and one.high - one.low > 0 for one in found)


def test_the_interval_of_a_mean_narrows_where_trials_agree():
    """A hundred equal trials say more than a hundred tosses; Hoeffding's inequality would not tell the two apart."""
    hoeffding = math.sqrt(math.log(2 / (1 - LEVEL)) / 200)
    equal, tossed = mean_of(np.full(100, 0.5)), mean_of([0, 1] * 50)
    assert equal.high - equal.low < 0.1 < tossed.high - tossed.low
    assert 0.5 - equal.low < hoeffding / 4
    assert mean_of(np.ones(100)).high == 1.0
    assert mean_of(np.zeros(100)).low == 0.0
    for wrong in ([], [0.5, 1.1], [-0.1], [math.nan]):
        with pytest.raises(InvalidInput, match="from 0 to 1"):
            mean_of(wrong)


def test_how_many_games_it_takes_is_as_it_is_counted():
    """So many games that are all won are above the ceiling, and one game less is not."""
    for ceiling in (0.3, 0.5001, 0.731, 0.99):
        n = least_to_tell(ceiling, of_means=False)
        assert clopper_pearson(n, n).passes(ceiling)
        assert not clopper_pearson(n - 1, n - 1).passes(ceiling)
        n = least_to_tell(ceiling, of_means=True)
        assert mean_of(np.ones(n)).passes(ceiling)
        assert not mean_of(np.ones(n - 1)).passes(ceiling + 0.01)
    assert least_to_tell(1.0, of_means=True) is None


def test_a_mean_has_students_interval():
    """The interval covers the true mean as often as it says, for values that are normal."""
    rng = np.random.default_rng(0)
    found = [students_mean(rng.normal(size=8)) for _ in range(4000)]
    covered = sum(one.low <= 0 <= one.high for one in found)
    assert binomtest(covered, 4000, LEVEL).pvalue > 1e-3
    assert students_mean([1.0]) == Estimate(1.0, -math.inf, math.inf)


@pytest.mark.parametrize("n_trials", [2, 3, 5, 10, 20])
@pytest.mark.parametrize("evenness", [0.3, 1, 5])
def test_few_trials_say_little_about_their_spread(n_trials, evenness):
    """Where the rate differs between trials, it is missed about as often as is said, also by two trials."""
    rng = np.random.default_rng(n_trials)
    missed = 0
    for _ in range(2000):
        hits = rng.binomial(20, rng.beta(evenness, evenness, n_trials))
        found = rate_over_trials(hits, np.full(n_trials, 20))
        missed += not found.low <= 0.5 <= found.high
    assert missed / 2000 < 0.005, (
        "it is an approximation: five times as often is its worst where rates are even"
    )


def test_trials_without_cases_count_for_nothing():
    """A trial in which nothing could be hit makes the interval neither narrower nor wider."""
    hits, cases = np.array([3, 1, 0, 2, 0]), np.array([5, 4, 0, 5, 0])
    assert rate_over_trials(hits, cases) == rate_over_trials(hits[cases > 0], cases[cases > 0])


def test_cases_of_one_trial_count_less_where_they_belong_together():
    """Where all cases of a trial go the same way, there are as many cases as trials, less what their spread costs."""
    together = rate_over_trials([20, 0, 20, 0] * 25, [20] * 100)
    apart = rate_over_trials(np.random.default_rng(0).binomial(20, 0.5, 100), [20] * 100)
    as_trials = clopper_pearson(50, 100)
    assert together.low <= as_trials.low < as_trials.high <= together.high
    assert (together.low, together.high) == pytest.approx((as_trials.low, as_trials.high), abs=0.01)
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
