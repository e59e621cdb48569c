"""Queries, target and step budget: from any two the third, never promising more than is obtained."""

import math
from dataclasses import dataclass
from fractions import Fraction

from pacpredict.core.attacks import as_membership_prior, matching_epsilon
from pacpredict.core.bounds import (
    DEFAULT_DELTA,
    budget_for_success,
    epsilon_for_success,
    success_bound,
    success_for_epsilon,
)
from pacpredict.core.roc import DEFAULT_FPR, budget_for_tpr, tpr_bound, tpr_for_epsilon
from pacpredict.core.rounding import float_down, float_up
from pacpredict.core.scalars import (
    check_budget,
    check_delta,
    check_epsilon,
    check_prior,
    check_rate,
    check_success,
)
from pacpredict.exceptions import InvalidPlan

_SPREADS = 12.0


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
        The DP epsilon that promises the same average success of membership inference with this prior, or with 1/2 if
        the prior is smaller, which none has; infinite where nothing is promised. It promises more where false
        positives are few: compare `tpr` with `epsilon_tpr`.
    step_budget
        Nats charged for one answer.
    total_budget_nats
        Nats charged for all answers, rounded up.
    prior
        Success rate of the attack before any answer.
    fpr
        A rate of false positives.
    tpr
        Highest rate of true positives at that rate of false ones, of a test for what has this prior probability.
    epsilon_tpr
        What DP of the matching epsilon would allow there.

    """

    queries: int
    success: float
    epsilon: float
    step_budget: float
    total_budget_nats: float
    prior: float
    fpr: float
    tpr: float
    epsilon_tpr: float


def plan(
    *,
    queries: float | None = None,
    success: float | None = None,
    epsilon: float | None = None,
    tpr: float | None = None,
    total_budget: float | None = None,
    step_budget: float | None = None,
    prior: float = 0.5,
    fpr: float = DEFAULT_FPR,
    delta: float = DEFAULT_DELTA,
) -> Plan:
    """Return the plan that two of number of queries, target and step budget determine.

    The target is one of `success`, of an attack with the given `prior`; `epsilon`, whose (epsilon, delta)-DP has the
    same average success of membership inference; `tpr`, the share of true positives at `fpr` false ones; and
    `total_budget`, the nats of all answers. Queries and step budgets are rounded down, so that what the plan says is
    obtained does not pass the target.
    """
    targets = {"success": success, "epsilon": epsilon, "tpr": tpr, "total_budget": total_budget}
    _require_two(queries, targets, step_budget)
    q, d, f = check_prior(prior), check_delta(delta), check_rate(fpr, "fpr")
    # 0 stands for what is to be found; neither may be 0 when given.
    count = 0 if queries is None else _as_count(queries)
    step = 0.0 if step_budget is None else check_budget(step_budget, "step_budget")
    allowed = math.inf
    if success is not None:
        allowed = _allowance_for_success(success, q)
    if epsilon is not None:
        allowed = _allowance_for_epsilon(epsilon, d, as_membership_prior(q))
    if tpr is not None:
        allowed = _allowance_for_tpr(tpr, f, q)
    if total_budget is not None:
        allowed = check_budget(total_budget, "total_budget")
    count = count or _queries_within(allowed, step)
    step = step or _step_within(allowed, count)
    total = float_up(count * Fraction(step))
    matching = matching_epsilon(total, q, d)
    true_positives = tpr_bound(total, f, q), tpr_for_epsilon(matching, f, d)
    return Plan(count, success_bound(total, q), matching, step, total, q, f, *true_positives)


def propose_odds_limit(total_budget: float) -> float:
    """Return the limit on odds that goes with a total: 12 sqrt(2 B), in two digits, rounded down.

    Under ordinary queries the log-likelihoods of the subsets spread by sqrt(2 B); honest use was measured at 7 to 8
    times that (docs/theory.md, 10), so a limit of 12 changes none of its answers.
    """
    limit = _SPREADS * math.sqrt(2.0 * check_budget(total_budget, "total_budget"))
    unit = 10.0 ** (math.floor(math.log10(limit)) - 1)
    return float(f"{math.floor(limit / unit) * unit:.1e}")


def _require_two(queries: float | None, targets: dict[str, float | None], step_budget: float | None) -> None:
    aims = [name for name, value in targets.items() if value is not None]
    if len(aims) > 1:
        raise InvalidPlan(f"give either {' or '.join(aims)} as the target, not both")
    given = (queries is not None) + bool(aims) + (step_budget is not None)
    if given != 2:
        amount = "all three leave nothing to plan" if given == 3 else f"{given} is too few"
        raise InvalidPlan(
            "give exactly two of queries, target (success, epsilon, tpr or total_budget) and step_budget; "
            + amount
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


def _allowance_for_epsilon(epsilon: float, delta: float, q: float) -> float:
    """Return the largest total budget whose matching epsilon is not above the target."""
    target = check_epsilon(epsilon)
    if target == math.inf:
        raise InvalidPlan("an infinite epsilon promises nothing; ask for a finite one")
    success = min(success_for_epsilon(target, delta), math.nextafter(1.0, 0.0))
    while epsilon_for_success(success, delta) > target:  # by a rounding or two
        success = math.nextafter(success, 0.0)
    if success <= q:
        raise InvalidPlan(
            f"epsilon {epsilon!r} with delta {delta!r} allows no leakage at all where guessing membership succeeds "
            f"with {q!r} already; allow more"
        )
    return budget_for_success(success, q)


def _allowance_for_tpr(tpr: float, fpr: float, q: float) -> float:
    """Return the largest total budget that keeps true positives within `tpr` at this rate of false ones."""
    target = check_rate(tpr, "tpr")
    if target == 1:
        raise InvalidPlan("a tpr of 1 promises nothing; ask for less than 1")
    if target <= fpr:
        raise InvalidPlan(
            f"tpr {target!r} is not above fpr {fpr!r}, which a test that knows nothing has; ask for more than that"
        )
    return budget_for_tpr(target, fpr, q)


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
