"""From what an owner asks for to a budget: the planner, with a default that promises something."""

from typing import Literal

from pacpredict import defaults
from pacpredict.core.decode import NoiseRule
from pacpredict.core.plan import plan, propose_odds_limit
from pacpredict.core.roc import DEFAULT_FPR
from pacpredict.mechanism.budget import Budget, Charging, WhenExhausted

# How far log-odds may move, what goes with the total, or no limit.
OddsLimit = float | Literal["auto"] | None


def plan_budget(
    *,
    queries: float | None = None,
    success: float | None = None,
    tpr: float | None = None,
    fpr: float = DEFAULT_FPR,
    total: float | None = None,
    step: float | None = None,
    prior: float = 0.5,
    charging: Charging = defaults.CHARGING,
    when_exhausted: WhenExhausted = defaults.WHEN_EXHAUSTED,
    odds_limit: OddsLimit = None,
    noise: NoiseRule = defaults.NOISE,
) -> Budget:
    """Return the budget that follows from what was asked for; `odds_limit="auto"` is the limit proposed for its total.

    Two of number of queries, target (`success`, `tpr` or `total`) and `step` decide; all three are refused.
    The default target stands in for a missing one, unless queries and step decide together what they amount to; a
    million queries stand in where neither they nor the step were given.
    """
    has_target = any(target is not None for target in (success, tpr, total))
    if not has_target and (queries is None or step is None):
        total = defaults.TOTAL_BUDGET
    if queries is None and step is None:
        queries = defaults.QUERIES
    made = plan(
        queries=queries,
        success=success,
        tpr=tpr,
        total_budget=total,
        step_budget=step,
        prior=0.5 if success is tpr is None else prior,  # queries and nats do not refer to it
        fpr=fpr,
    )
    total = made.total_budget_nats
    limit = propose_odds_limit(total) if odds_limit == "auto" else odds_limit
    return Budget(made.step_budget, total, charging, when_exhausted, limit, noise=noise)
