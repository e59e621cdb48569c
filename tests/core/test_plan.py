"""A plan obtains at most what was asked for, and the smallest step beyond it would not."""

import math
import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pacpredict import defaults
from pacpredict.core.bounds import success_bound, success_for_epsilon
from pacpredict.core.plan import Plan, plan, propose_odds_limit
from pacpredict.core.roc import tpr_bound, tpr_for_epsilon
from pacpredict.core.rounding import float_up
from pacpredict.exceptions import InvalidBudget, InvalidPlan, InvalidProbability

shares = st.floats(1e-6, 0.999999)
priors = st.one_of(st.just(0.5), st.floats(1e-6, 0.999))
counts = st.integers(1, 10**12)
steps = st.builds(math.ldexp, st.floats(0.5, 1), st.integers(-60, -30))


def between(prior, share):
    return prior + share * (1 - prior)


def total_of(queries, step):
    return float_up(queries * Fraction(step))


def assert_consistent(made):
    assert made.total_budget_nats == total_of(made.queries, made.step_budget)
    assert made.success == success_bound(made.total_budget_nats, made.prior)
    assert made.tpr == tpr_bound(made.total_budget_nats, made.fpr, made.prior)
    assert made.odds_limit == propose_odds_limit(made.total_budget_nats)
    limited = tpr_for_epsilon(made.odds_limit, made.fpr, defaults.ODDS_DELTA)
    assert made.limited_tpr == min(made.tpr, limited)


@settings(deadline=None)
@given(queries=counts, prior=priors, share=shares)
def test_step_for_queries_and_success_is_tight(queries, prior, share):
    """The success obtained is within the target, and the next larger step budget would pass it."""
    target = between(prior, share)
    made = plan(queries=queries, success=target, prior=prior)
    assert_consistent(made)
    assert (made.queries, made.prior) == (queries, prior)
    assert made.success <= target
    larger = math.nextafter(made.step_budget, math.inf)
    assert success_bound(total_of(queries, larger), prior) > target


@settings(deadline=None)
@given(step=steps, prior=priors, share=st.floats(0.01, 0.999))
def test_queries_for_step_and_success_are_tight(step, prior, share):
    """The success obtained is within the target, and one query more would pass it."""
    target = between(prior, share)
    made = plan(step_budget=step, success=target, prior=prior)
    assert_consistent(made)
    assert made.success <= target
    assert success_bound(total_of(made.queries + 1, step), prior) > target


@settings(deadline=None)
@given(queries=counts, total=st.floats(1e-12, 1e6))
def test_step_for_queries_and_total_is_tight(queries, total):
    """What all answers take together is within the total, and the next larger step budget would pass it."""
    made = plan(queries=queries, total_budget=total)
    assert_consistent(made)
    assert made.total_budget_nats <= total
    assert queries * Fraction(math.nextafter(made.step_budget, math.inf)) > total


@settings(deadline=None, max_examples=30)
@given(queries=counts, fpr=st.floats(0, 0.9), share=shares, prior=priors)
def test_step_for_queries_and_true_positives_is_tight(queries, fpr, share, prior):
    """The true positives obtained are within the target, and the next larger step budget would pass it."""
    target = fpr + share * (1 - fpr)
    made = plan(queries=queries, tpr=target, fpr=fpr, prior=prior)
    assert_consistent(made)
    assert made.tpr <= target
    assert tpr_bound(total_of(queries, math.nextafter(made.step_budget, math.inf)), fpr, prior) > target


@settings(deadline=None, max_examples=30)
@given(step=steps, share=st.floats(0.01, 0.999))
def test_queries_for_step_and_true_positives_are_tight(step, share):
    """One query more would find more members than the target at 0.1 % false positives."""
    target = 0.001 + share * 0.999
    made = plan(step_budget=step, tpr=target)
    assert made.tpr <= target < tpr_bound(total_of(made.queries + 1, step))


@settings(deadline=None)
@given(queries=counts, step=steps, prior=priors)
def test_queries_and_step_give_the_success(queries, step, prior):
    """With queries and step given the plan says what they guarantee."""
    made = plan(queries=queries, step_budget=step, prior=prior)
    assert_consistent(made)
    assert (made.queries, made.step_budget, made.prior) == (queries, step, prior)


@settings(deadline=None)
@given(queries=st.integers(1, 10**9), spare_bits=st.integers(1, 30))
def test_a_plan_plans_itself(queries, spare_bits):
    """The success that a plan reports supports the same queries and the same step again."""
    made = plan(queries=queries, step_budget=2.0 ** -(queries.bit_length() + spare_bits))
    assert plan(step_budget=made.step_budget, success=made.success).queries >= queries
    assert plan(queries=queries, success=made.success).step_budget >= made.step_budget


def test_the_paper_s_deployment():
    """A million queries at 51.08% take just over 2^-32 nats each, and an odds limit of 0.25 goes with them."""
    assert plan(queries=10**6, success=0.5108).step_budget == pytest.approx(2.0**-32, rel=0.01)
    assert round(plan(step_budget=2.0**-32, success=success_for_epsilon(1)).queries / 1e6) == 477
    made = plan(queries=1e6, step_budget=2.0**-32)
    given = Plan(
        *(10**6, made.success, 2.0**-32, 10**6 * 2.0**-32, 0.5, 0.001, made.tpr),
        *(defaults.ODDS_LIMIT, made.limited_tpr),
    )
    assert made == given
    assert isinstance(made.queries, int)
    assert f"{made.success:.4f} {made.tpr:.6f} {made.limited_tpr:.6f}" == "0.5108 0.002854 0.001284"


def test_a_plan_without_a_guarantee_says_so():
    """Past log(1/prior) nats success is 1, and past what a budget can have there is no limit on odds either."""
    made = plan(queries=100, step_budget=1)
    assert (made.success, made.tpr, made.odds_limit) == (1, 1, 160)
    endless = plan(queries=10**400, step_budget=1)
    assert (endless.total_budget_nats, endless.odds_limit, endless.limited_tpr) == (math.inf, math.inf, 1)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "0 is too few"),
        ({"queries": 5}, "1 is too few"),
        ({"success": 0.6}, "1 is too few"),
        ({"queries": 5, "success": 0.6, "step_budget": 0.1}, "all three"),
        ({"queries": 5, "success": 0.6, "total_budget": 1}, "either success or total_budget"),
        ({"queries": 5, "success": 0.5}, "not above the prior"),
        ({"queries": 5, "success": 0.4}, "not above the prior"),
        ({"queries": 5, "success": 0.6, "prior": 0.7}, "not above the prior"),
        ({"queries": 5, "success": 0.6, "tpr": 0.1}, "either success or tpr"),
        ({"queries": 5, "tpr": 0.001}, "not above fpr"),
        ({"queries": 5, "tpr": 0.01, "fpr": 0.1}, "not above fpr"),
        ({"queries": 5, "tpr": 1}, "promises nothing"),
        ({"queries": 5, "success": 1}, "promises nothing"),
        ({"step_budget": 0.1, "success": 0.51}, "not even one query"),
        ({"queries": 0, "success": 0.6}, "whole number"),
        ({"queries": 1.5, "success": 0.6}, "whole number"),
        ({"queries": math.nan, "success": 0.6}, "whole number"),
        ({"queries": math.inf, "success": 0.6}, "whole number"),
        ({"queries": "5", "success": 0.6}, "whole number"),
        ({"queries": 10**330, "success": 0.6}, "cannot be divided"),
    ],
)
def test_plans_that_are_refused(arguments, text):
    """What cannot be planned is refused with a hint."""
    with pytest.raises(InvalidPlan, match=text):
        plan(**arguments)


def test_values_that_are_refused():
    """Numbers out of range keep their own errors."""
    with pytest.raises(InvalidProbability, match="success"):
        plan(queries=5, success=51.08)
    with pytest.raises(InvalidProbability, match="prior"):
        plan(queries=5, success=0.6, prior=0)
    with pytest.raises(InvalidProbability, match="tpr"):
        plan(queries=5, tpr=10)
    with pytest.raises(InvalidProbability, match="fpr"):
        plan(queries=5, tpr=0.1, fpr=-1)
    with pytest.raises(InvalidBudget, match="step_budget"):
        plan(queries=5, step_budget=0)


def test_import_is_light():
    """Plans need neither NumPy nor SciPy."""
    program = (
        "import sys, pacpredict.core.plan; print(sorted({'numpy', 'scipy', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
