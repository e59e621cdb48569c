"""Queries, target and step budget: from any two the third, never promising more than is obtained."""

import math
from dataclasses import dataclass
from fractions import Fraction

from pacpredict.core.bounds import (
    DEFAULT_DELTA,
    budget_for_success,
    epsilon_for_success,
    success_bound,
    success_for_epsilon,
)
from pacpredict.core.rounding import float_down, float_up
from pacpredict.core.scalars import check_budget, check_delta, check_epsilon, check_prior, check_success
from pacpredict.exceptions import InvalidPlan

MEMBERSHIP_PRIOR = 0.5  # what a matching epsilon refers to, whatever the prior of the plan is


@dataclass(frozen=True)
class Plan:
    """What a deployment will answer and what it then guarantees.

    Attributes
    ----------
    queries
        Answers that may be given.
    success
        Highest success rate of an attack with this prior after all of them.
    epsilon
        The DP epsilon that promises the same about membership (prior 1/2); infinite where nothing is.
    step_budget
        Nats charged for one answer.
    total_budget_nats
        Nats charged for all answers, rounded up.
    prior
        Success rate of the attack before any answer.

    """

    queries: int
    success: float
    epsilon: float
    step_budget: float
    total_budget_nats: float
    prior: float


def plan(
    *,
    queries: float | None = None,
    success: float | None = None,
    epsilon: float | None = None,
    step_budget: float | None = None,
    prior: float = 0.5,
    delta: float = DEFAULT_DELTA,
) -> Plan:
    """Return the plan that two of number of queries, target and step budget determine.

    The target is either `success`, of an attack with the given `prior`, or `epsilon`, the membership
    guarantee of (epsilon, delta)-DP. Queries and step budgets are rounded down, so that the plan's success
    and epsilon, which are what is really obtained, do not pass the target.
    """
    _require_two(queries, success, epsilon, step_budget)
    q, d = check_prior(prior), check_delta(delta)
    # 0 stands for what is to be found; neither may be 0 when given.
    count = 0 if queries is None else _as_count(queries)
    step = 0.0 if step_budget is None else check_budget(step_budget, "step_budget")
    allowed = math.inf
    if success is not None:
        allowed = _allowance_for_success(success, q)
    if epsilon is not None:
        allowed = _allowance_for_epsilon(epsilon, d)
    count = count or _queries_within(allowed, step)
    step = step or _step_within(allowed, count)
    total = float_up(count * Fraction(step))
    matching = epsilon_for_success(success_bound(total, MEMBERSHIP_PRIOR), d)
    return Plan(count, success_bound(total, q), matching, step, total, q)


def _require_two(
    queries: float | None, success: float | None, epsilon: float | None, step_budget: float | None
) -> None:
    if success is not None and epsilon is not None:
        raise InvalidPlan("give either success or epsilon as the target, not both")
    target = epsilon if success is None else success
    given = sum(value is not None for value in (queries, target, step_budget))
    if given != 2:
        amount = "all three leave nothing to plan" if given == 3 else f"{given} is too few"
        raise InvalidPlan(
            f"give exactly two of queries, target (success or epsilon) and step_budget; {amount}"
        )


def _as_count(queries: float) -> int:
    try:
        if 1 <= queries < math.inf and queries == int(queries):
            return int(queries)
    except (TypeError, ValueError):
        pass
    raise InvalidPlan(f"queries must be a whole number of at least 1, got {queries!r}")


def _allowance_for_success(success: float, q: float) -> float:
    """Return the largest total budget that keeps an attack with prior q within `success`."""
    target = check_success(success)
    if target == 1:
        raise InvalidPlan("a success of 1 promises nothing; ask for less than 1")
    if target <= q:
        raise InvalidPlan(
            f"success {target!r} is not above the prior {q!r}, which an attacker has without any answer; "
            "ask for more than the prior, or state the prior of the attack you mean"
        )
    return budget_for_success(target, q)


def _allowance_for_epsilon(epsilon: float, delta: float) -> float:
    """Return the largest total budget whose matching epsilon is not above the target."""
    target = check_epsilon(epsilon)
    if target == math.inf:
        raise InvalidPlan("an infinite epsilon promises nothing; ask for a finite one")
    success = min(success_for_epsilon(target, delta), math.nextafter(1.0, 0.0))
    while epsilon_for_success(success, delta) > target:  # by a rounding or two
        success = math.nextafter(success, 0.0)
    if success <= MEMBERSHIP_PRIOR:
        raise InvalidPlan(f"epsilon {epsilon!r} with delta {delta!r} allows no leakage at all; allow more")
    return budget_for_success(success, MEMBERSHIP_PRIOR)


def _queries_within(allowed: float, step: float) -> int:
    count = Fraction(allowed) // Fraction(step)
    if count == 0:
        raise InvalidPlan(
            f"not even one query fits: the target allows {allowed:.3g} nats in all and one query takes "
            f"{step:.3g}; lower step_budget or relax the target"
        )
    return count


def _step_within(allowed: float, count: int) -> float:
    step = float_down(Fraction(allowed) / count)
    if step == 0:
        raise InvalidPlan(f"{allowed:.3g} nats cannot be divided among so many queries; ask for fewer")
    return step
