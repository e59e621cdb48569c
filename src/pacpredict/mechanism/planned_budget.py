"""From what an owner asks for to a budget: the planner, with a default that promises something."""

from pacpredict import defaults
from pacpredict.core.plan import plan
from pacpredict.core.roc import DEFAULT_FPR
from pacpredict.mechanism.budget import Budget, Charging, WhenExhausted


def plan_budget(
    *,
    queries: float | None = None,
    success: float | None = None,
    tpr: float | None = None,
    fpr: float = DEFAULT_FPR,
    epsilon: float | None = None,
    total: float | None = None,
    step: float | None = None,
    prior: float = 0.5,
    charging: Charging = defaults.CHARGING,
    when_exhausted: WhenExhausted = defaults.WHEN_EXHAUSTED,
    exposure: float | None = None,
) -> Budget:
    """Return the budget that follows from what was asked for; `exposure` is its limit on odds, if it has one.

    Two of number of queries, target (`success`, `tpr`, `epsilon` or `total`) and `step` decide; all three are refused.
    The default target stands in for a missing one, unless queries and step decide together what they amount to; a
    million queries stand in where neither they nor the step were given.
    """
    has_target = any(target is not None for target in (success, tpr, epsilon, total))
    if not has_target and (queries is None or step is None):
        total = defaults.TOTAL_BUDGET
    if queries is None and step is None:
        queries = defaults.QUERIES
    made = plan(
        queries=queries,
        success=success,
        tpr=tpr,
        epsilon=epsilon,
        total_budget=total,
        step_budget=step,
        prior=0.5 if success is tpr is epsilon is None else prior,  # queries and nats do not refer to it
        fpr=fpr,
    )
    return Budget(made.step_budget, made.total_budget_nats, charging, when_exhausted, exposure)
