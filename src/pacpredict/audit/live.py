"""What the releases of a live deployment have revealed so far, replayed from its ledger. For the owner only.

The units that are named are in the pool. The information that a history revealed is the divergence of the posterior
from the prior: in one history it may be more than what was charged, on average over histories it is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np

from pacpredict.core.belief import Belief
from pacpredict.deployment import Deployment
from pacpredict.exceptions import InvalidInput
from pacpredict.mechanism.replay import retrace
from pacpredict.types import FloatArray, IntArray

# Points of a curve over time; more cannot be told apart on paper.
_MOMENTS = 100
# Units that are named.
N_NAMED = 20


class Moment(NamedTuple):
    time: datetime
    answers: int
    charged_nats: float
    learnt_nats: float  # about the secret, by this very history
    spread: float  # of log-likelihoods over the subsets: what the limit on odds is about
    largest_shift: float  # of the log-odds of any unit's membership
    typical_shift: float  # the root of their mean square


class MovedUnit(NamedTuple):
    """A unit and what an attacker who knows everything but the secret believes about it now."""

    unit: int
    records: list[int]  # rows of the training data, counted from 0
    probability: float  # of having been trained on
    shift: float  # of its log-odds


@dataclass(frozen=True)
class LedgerReview:
    moments: Sequence[Moment]
    most_moved: Sequence[MovedUnit]
    total_nats: float
    limit: float | None
    unit: str


def review(deployment: Deployment, *, n_named: int = N_NAMED) -> LedgerReview:
    """Replay a ledger and say what it revealed; the deployment's history is verified first, bit for bit."""
    points = deployment.course.points(_MOMENTS)
    if not points:
        raise InvalidInput("this deployment has answered nothing yet: there is nothing to review")
    deployment.verify()
    artifact = deployment.artifact
    recipe, space = artifact.recipe, artifact.space
    prior, budget = Belief.uniform(recipe.n_models), recipe.budget
    stops = {point.sequence for point in points}
    states = retrace(deployment.entries(), len(artifact.classes), budget, prior, stops=stops)
    moments, before = [], _log_odds(space.membership_posterior(prior))
    for point, state in zip(points, states, strict=True):
        belief = Belief(state.log_belief)
        shifts = _shifts(space.membership_posterior(belief), before)
        moments.append(
            Moment(
                datetime.fromisoformat(point.time),
                point.sequence,
                budget.nats(point.steps),
                belief.divergence(prior),
                float(np.ptp(belief.log_probabilities)),
                float(np.abs(shifts).max()),
                float(np.sqrt(np.mean(shifts**2))),
            )
        )
    named = _most_moved(space.membership_posterior(belief), before, space.units.of_record, n_named)
    return LedgerReview(moments, named, budget.total, budget.odds_limit, space.units.kind)


def _most_moved(now: FloatArray, before: FloatArray, of_record: IntArray, n_named: int) -> list[MovedUnit]:
    shifts = _shifts(now, before)
    chosen = np.argsort(-np.abs(shifts), kind="stable")[:n_named]
    return [
        MovedUnit(int(u), np.flatnonzero(of_record == u).tolist(), float(now[u]), float(shifts[u]))
        for u in chosen
    ]


def _shifts(now: FloatArray, before: FloatArray) -> FloatArray:
    """Return how far the log-odds of units have moved; those of a unit in all subsets or in none cannot."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(_log_odds(now) - before, nan=0.0)


def _log_odds(p: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(p) - np.log1p(-p))
