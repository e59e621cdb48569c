"""What many releases leak together, in nats, rounded up."""

import math

import numpy as np
import numpy.typing as npt

from pacpredict.core.rounding import sum_up
from pacpredict.exceptions import InvalidBudget
from pacpredict.types import FloatArray

# A product, a square root, a sum and this product itself round four times, each by at most 2^-53.
_ROUNDINGS = 1 + 2.0**-50


def compose_linear(step_budgets: npt.ArrayLike) -> float:
    """Return the total leakage under posterior-aware noise: the sum of the steps (Theorem 3.3)."""
    budgets = _as_budgets(step_budgets, "step_budgets")
    try:
        return sum_up(budgets.tolist()) if np.isfinite(budgets).all() else math.inf
    except OverflowError:
        return math.inf


def compose_oblivious(step_budgets: npt.ArrayLike, worst_case_budgets: npt.ArrayLike) -> FloatArray:
    """Return the bounds B_1, ..., B_T on leakage under noise that ignores the posterior (Theorem A.1).

    Parameters
    ----------
    step_budgets
        b_t, the leakage of each release under the prior.
    worst_case_budgets
        b'_t, its leakage under the worst distribution of the secret; one number stands for all steps.

    """
    budgets = _as_budgets(step_budgets, "step_budgets")
    worst = _as_budgets(worst_case_budgets, "worst_case_budgets")
    if worst.shape != budgets.shape and worst.size != 1:
        raise InvalidBudget(
            "worst_case_budgets must be one number or one per step, "
            f"got {worst.size} for {budgets.size} steps"
        )
    totals = np.empty(budgets.size)
    total = 0.0
    steps = zip(budgets.tolist(), np.broadcast_to(worst, budgets.shape).tolist(), strict=True)
    for t, (b, b_worst) in enumerate(steps):
        total = _add_up(total, _step(total, b, b_worst)) if t else b
        totals[t] = total
    return totals


def _step(total: float, b: float, b_worst: float) -> float:
    """Return min(b' sqrt(2 B) + b, b') rounded up; nextafter is for what a product below 1e-308 lost."""
    if total == 0:
        return min(b_worst, b)
    through_prior = math.nextafter((b_worst * math.sqrt(2 * total) + b) * _ROUNDINGS, math.inf)
    # min keeps its first argument when the other is NaN, as 0 times infinity is; b' is valid alone.
    return min(b_worst, through_prior)


def _add_up(total: float, step: float) -> float:
    nearest = total + step
    # The larger minus the sum is exact, so this is what rounding took away (Dekker's fast two-sum).
    large, small = (total, step) if total >= step else (step, total)
    return math.nextafter(nearest, math.inf) if small > nearest - large else nearest


def _as_budgets(budgets: npt.ArrayLike, name: str) -> FloatArray:
    try:
        values = np.atleast_1d(np.asarray(budgets, dtype=np.float64))
    except (TypeError, ValueError) as problem:
        raise InvalidBudget(f"{name} must be numbers of nats ({problem})") from problem
    if values.ndim != 1:
        raise InvalidBudget(f"{name} must be one number per step, got shape {values.shape}")
    if not (values >= 0).all():
        raise InvalidBudget(f"{name} must be at least 0 nats, found {values[~(values >= 0)][0]}")
    return values
