"""What the releases of a live deployment have exposed so far, replayed from its ledger. For the owner's eyes.

Whoever sees which units are exposed learns who is in the pool. Information that a history revealed is the divergence of
what is believed by now from what was at first: in one history it may be more than what was charged, on average over
histories it is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np

from pacpredict.core.belief import Belief
from pacpredict.deployment import Deployment
from pacpredict.exceptions import InvalidInput
from pacpredict.mechanism.limit import Limit
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
    largest_shift: float  # of anybody's log-odds
    typical_shift: float  # the root of their mean square


class Exposed(NamedTuple):
    """A unit and what an attacker who knows everything but the secret believes about it now."""

    unit: int
    records: list[int]  # rows of the training data, counted from 0
    probability: float  # of having been trained on
    shift: float  # of its log-odds


@dataclass(frozen=True)
class Exposure:
    moments: Sequence[Moment]
    most_exposed: Sequence[Exposed]
    total_nats: float
    limit: float | None
    unit: str


def expose(deployment: Deployment, *, n_named: int = N_NAMED) -> Exposure:
    """Replay a ledger and say what it exposed; the deployment's history is verified first, bit for bit."""
    points = deployment.course.points(_MOMENTS)
    if not points:
        raise InvalidInput("this deployment has answered nothing yet: its releases have exposed nobody")
    deployment.verify()
    artifact = deployment.artifact
    recipe, space = artifact.recipe, artifact.space
    prior, budget = Belief.uniform(recipe.n_models), recipe.budget
    membership = space.membership()
    states = retrace(
        deployment.entries(),
        len(artifact.classes),
        budget.step,
        prior,
        limit=Limit.of(budget, membership, prior),
        total_steps=budget.total_steps,
        stops={point.sequence for point in points},
    )
    moments = []
    for point, state in zip(points, states, strict=True):
        belief = Belief(state.log_belief)
        shifts = membership.shifts(belief)
        moments.append(
            Moment(
                datetime.fromisoformat(point.time),
                point.sequence,
                budget.nats(point.steps),
                belief.divergence(prior),
                float(np.abs(shifts).max()),
                float(np.sqrt(np.mean(shifts**2))),
            )
        )
    probabilities, before = space.exposure(belief), space.exposure(prior)
    named = _most_exposed(probabilities, before, space.units.of_record, n_named)
    return Exposure(moments, named, budget.total, budget.exposure, space.units.kind)


def _most_exposed(now: FloatArray, before: FloatArray, of_record: IntArray, n_named: int) -> list[Exposed]:
    shifts = _log_odds(now) - _log_odds(before)
    chosen = np.argsort(-np.abs(shifts), kind="stable")[:n_named]
    return [
        Exposed(int(u), np.flatnonzero(of_record == u).tolist(), float(now[u]), float(shifts[u]))
        for u in chosen
    ]


def _log_odds(p: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(p) - np.log1p(-p))
