"""The limit on odds as a session keeps it (docs/theory.md, 10)."""

import numpy as np

from pacpredict.core.belief import Belief
from pacpredict.core.calibrate import Noise
from pacpredict.core.decode import Decoder, check_decoder
from pacpredict.core.odds_limit import reach_of_noise, spread_of
from pacpredict.exceptions import OddsLimitReached
from pacpredict.mechanism.budget import Budget


def admit_vector(noise: Noise, budget: Budget, belief: Belief, prior: Belief, contested: int) -> None:
    """Refuse a noisy vector that could move the odds of a statement about the secret past the limit, before drawing."""
    if budget.odds_limit is None:
        return
    spread = spread_of(belief.log_probabilities, prior.log_probabilities, contested)
    if spread + noise.reach(budget.step_delta) > budget.odds_limit:
        raise OddsLimitReached(
            f"this release could move the odds of a statement about the training set past the limit of "
            f"{budget.odds_limit:g}. Nothing was drawn or charged: release less, or use a smaller step budget"
        )


def limit_warning(budget: Budget, decode: Decoder, n_models: int) -> str | None:
    """Warn if the noise of this step is too little for the limit on odds, so that the belief will answer instead.

    Of two labels, noise that hides a vote in halves moves odds least, and that of a single dissenter most.
    """
    if budget.odds_limit is None or check_decoder(decode)[0] != "gaussian":
        return None
    least, most = (_reach_of_two(budget, mass) for mass in (0.5, 1 / n_models))
    if most <= budget.odds_limit:
        return None
    which = "all" if least > budget.odds_limit else "some"
    return (
        f"with {budget.step:g} nats a step, noise could move odds past the limit of {budget.odds_limit:g}: {which} "
        "answers on which models differ will come from the belief instead, without the secret model and without a "
        "charge; choose a smaller step, decode by sample, or raise the limit"
    )


def _reach_of_two(budget: Budget, mass: float) -> float:
    """Return how far a release about two labels could move odds, if one of them has this share of the belief."""
    variance = mass * (1 - mass) / (2 * budget.step)
    return reach_of_noise(np.array([[0.0], [1.0]]), np.array([variance]), 0, budget.step_delta)
