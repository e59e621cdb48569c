"""A budget is what two of queries, target and step decide; what is not said never weakens the promise."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pacpredict import defaults
from pacpredict.core.bounds import epsilon_for_success, success_bound, success_for_epsilon
from pacpredict.core.plan import plan
from pacpredict.exceptions import InvalidBudget, InvalidPlan
from pacpredict.mechanism.planned_budget import plan_budget


def test_default_is_a_million_queries_at_the_papers_step():
    """Who asks for nothing gets 10^6 contested queries at 2^-32 nats, and membership told in at most 51.08 %."""
    made = plan_budget()
    assert (made.step, made.total_steps) == (2.0**-32, 10**6)
    assert made.total == 10**6 * 2.0**-32
    assert 0.5107 < success_bound(made.total) < 0.5108
    assert (made.charging, made.when_exhausted) == ("adaptive", "halt")


@settings(deadline=None)
@given(
    queries=st.none() | st.integers(1, 10**9),
    step=st.none() | st.floats(2.0**-50, 2.0**-13),
)
def test_without_a_target_the_default_promise_is_kept(queries, step):
    """More queries or larger steps alone never raise the total: the one makes way for the other."""
    made = plan_budget(queries=queries, step=step)
    if queries is None or step is None:
        assert made.total <= defaults.TOTAL_BUDGET
        assert made.total_steps == (
            queries or (defaults.QUERIES if step is None else defaults.TOTAL_BUDGET // step)
        )
    else:  # both together say what they amount to
        assert (made.step, made.total_steps) == (step, queries)


def test_targets_take_a_million_queries_unless_others_are_asked_for():
    """--success alone leaves the number of queries as it is and makes the step larger."""
    made = plan_budget(success=0.55)
    assert made.total_steps == defaults.QUERIES
    assert success_bound(made.total) <= 0.55 < success_bound(made.total * 1.0001)
    assert plan_budget(success=0.55, queries=500).total_steps == 500
    assert plan_budget(total=1.0).step == plan_budget(total=1.0, queries=1e6).step


@settings(deadline=None)
@given(queries=st.integers(1, 10**9), success=st.floats(0.7, 0.99), prior=st.floats(0.5, 0.66))
def test_the_planner_decides(queries, success, prior):
    """Queries and a target give the plan of `pacpredict plan`, nats and all."""
    made = plan_budget(queries=queries, success=success, prior=prior)
    planned = plan(queries=queries, success=success, prior=prior)
    assert (made.step, made.total) == (planned.step_budget, planned.total_budget_nats)
    assert made.total_steps == queries
    assert success_bound(made.total, prior) <= success


def test_success_and_step():
    """The paper's 477 million queries: the success of epsilon 1 at 2^-32 nats."""
    made = plan_budget(success=success_for_epsilon(1.0), step=2.0**-32)
    assert made.total_steps == 476_512_710
    assert epsilon_for_success(success_bound(made.total)) <= 1.0


@settings(deadline=None)
@given(total=st.floats(1e-6, 10.0), step=st.floats(2.0**-40, 1e-6))
def test_a_total_in_nats_is_not_passed(total, step):
    """What is promised is what can really be spent: whole steps within the total."""
    made = plan_budget(total=total, step=step)
    assert made.total <= total < (made.total_steps + 1) * Fraction(step)


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ({"queries": 5, "success": 0.6, "step": 0.1}, InvalidPlan, "all three"),
        ({"success": 0.6, "tpr": 0.1}, InvalidPlan, "not both"),
        ({"success": 0.6, "total": 1.0}, InvalidPlan, "not both"),
        ({"step": 2.0**-8}, InvalidPlan, "not even one query fits"),
        ({"queries": 0}, InvalidPlan, "at least 1"),
        ({"queries": 1.5}, InvalidPlan, "whole number"),
        ({"success": 0.5}, InvalidPlan, "not above the prior"),
        ({"total": 0.0}, InvalidBudget, "total_budget"),
        ({"step": -1.0}, InvalidBudget, "step_budget"),
    ],
    ids=str,
)
def test_what_cannot_be_planned_is_refused(asked, error, words):
    """Contradictions and promises that nothing fits into are said in the planner's words."""
    with pytest.raises(error, match=words):
        plan_budget(**asked)
