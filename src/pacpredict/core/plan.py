"""Queries, target and step budget: from any two the third, never promising more than is obtained."""

import math
from dataclasses import dataclass
from fractions import Fraction

from pacpredict import defaults
from pacpredict.core.bounds import budget_for_success, success_bound
from pacpredict.core.roc import DEFAULT_FPR, budget_for_tpr, tpr_bound, tpr_for_epsilon
from pacpredict.core.rounding import float_down, float_up
from pacpredict.core.scalars import (
    LARGEST_ODDS_LIMIT,
    TOO_LARGE_BUDGET,
    check_budget,
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
    step_budget
        Nats charged for one answer.
    total_budget_nats
        Nats charged for all answers, rounded up.
    prior
        Success rate of the attack before any answer.
    fpr
        A rate of false positives.
    tpr
        Highest rate of true positives at that rate of false ones, of a test for what has this prior probability, by
        nats alone.
    odds_limit
        The limit on odds that goes with the total: `propose_odds_limit`; infinite for totals that no budget can have.
    limited_tpr
        The highest rate of true positives with that limit, whatever the decoder.

    """

    queries: int
    success: float
    step_budget: float
    total_budget_nats: float
    prior: float
    fpr: float
    tpr: float
    odds_limit: float
    limited_tpr: float


def plan(
    *,
    queries: float | None = None,
    success: float | None = None,
    tpr: float | None = None,
    total_budget: float | None = None,
    step_budget: float | None = None,
    prior: float = 0.5,
    fpr: float = DEFAULT_FPR,
) -> Plan:
    """Return the plan that two of number of queries, target and step budget determine.

    The target is one of `success`, of an attack with the given `prior`; `tpr`, the share of true positives at `fpr`
    false ones, by nats alone; and `total_budget`, the nats of all answers. Queries and step budgets are rounded down,
    so that what the plan says is obtained does not pass the target.
    """
    targets = {"success": success, "tpr": tpr, "total_budget": total_budget}
    _require_two(queries, targets, step_budget)
    q, f = check_prior(prior), check_rate(fpr, "fpr")
    # 0 stands for what is to be found; neither may be 0 when given.
    count = 0 if queries is None else _as_count(queries)
    step = 0.0 if step_budget is None else check_budget(step_budget, "step_budget")
    allowed = math.inf
    if success is not None:
        allowed = _allowance_for_success(success, q)
    if tpr is not None:
        allowed = _allowance_for_tpr(tpr, f, q)
    if total_budget is not None:
        allowed = check_budget(total_budget, "total_budget")
    count = count or _queries_within(allowed, step)
    step = step or _step_within(allowed, count)
    total = float_up(count * Fraction(step))
    by_nats, limit = (
        tpr_bound(total, f, q),
        math.inf if total >= TOO_LARGE_BUDGET else propose_odds_limit(total),
    )
    limited = min(by_nats, tpr_for_epsilon(limit, f, defaults.ODDS_DELTA))
    return Plan(count, success_bound(total, q), step, total, q, f, by_nats, limit, limited)


def propose_odds_limit(total_budget: float) -> float:
    """Return the limit on odds that goes with a total: 12 sqrt(2 B), in two digits, rounded down.

    Under ordinary queries the log-likelihoods of the subsets spread by sqrt(2 B); honest use was measured at 7 to 8
    times that (docs/theory.md, 10), so a limit of 12 changes none of its answers.
    """
    limit = _SPREADS * math.sqrt(2.0 * check_budget(total_budget, "total_budget"))
    unit = 10.0 ** (math.floor(math.log10(limit)) - 1)
    return min(float(f"{math.floor(limit / unit) * unit:.1e}"), LARGEST_ODDS_LIMIT)


def _require_two(queries: float | None, targets: dict[str, float | None], step_budget: float | None) -> None:
    aims = [name for name, value in targets.items() if value is not None]
    if len(aims) > 1:
        raise InvalidPlan(f"give either {' or '.join(aims)} as the target, not both")
    given = (queries is not None) + bool(aims) + (step_budget is not None)
    if given != 2:
        amount = "all three leave nothing to plan" if given == 3 else f"{given} is too few"
        raise InvalidPlan(
            "give exactly two of queries, target (success, tpr or total_budget) and step_budget; " + amount
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
