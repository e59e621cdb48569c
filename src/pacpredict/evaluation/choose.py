"""Choose a learner and its settings by what a deployment would be worth, before there is a secret.

The choice looks at the whole pool and is one for all models. It does not endanger the secret, which is drawn afterwards
and independently of it, but it is part of what the pool reveals, as a choice of the architecture is.

Candidates are tried by successive halving: all of them with few models, the better ones with more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from pacpredict.core.decode import check_decoder
from pacpredict.core.simulate import simulate
from pacpredict.evaluation.crossfit import votes_outside
from pacpredict.evaluation.folds import split
from pacpredict.exceptions import InvalidInput
from pacpredict.learners.learner import Learner
from pacpredict.learners.registry import GOALS, Goal
from pacpredict.training.fit import Progress, no_progress
from pacpredict.training.pool import Pool
from pacpredict.training.recipe import Recipe
from pacpredict.training.train import Backend
from pacpredict.types import BoolArray

# (share of the candidates that is tried, with how many models): 16 candidates take 16 * 16 + 4 * 64 models, as many as
# four deployments.
RUNGS = ((1.0, 16), (0.25, 64))
FOLDS = 5
# As many folds are asked as it takes to ask about so many records: a share is then known to a percent and a half.
ENOUGH_RECORDS = 1000
TRIALS = 50


class Choice(NamedTuple):
    learner: Learner
    accuracy: float  # by the goal, with the models of the last rung


def choose(
    pool: Pool,
    candidates: Sequence[Learner],
    recipe: Recipe,
    goal: Goal,
    *,
    n_jobs: int | None = None,
    backend: Backend = None,
    progress: Progress = no_progress,
) -> Choice:
    """Return the candidate that does best by the goal, at the recipe's budget and with its decoder."""
    if goal not in GOALS:
        raise InvalidInput(f"the goal must be one of {', '.join(GOALS)}, got {goal!r}")
    n_asked = min(FOLDS, math.ceil(ENOUGH_RECORDS * FOLDS / len(pool)))
    trial = _Trial(pool, split(pool, FOLDS, recipe.seed)[:n_asked], goal, n_jobs, backend)
    rungs = [(math.ceil(share * len(candidates)), min(models, recipe.n_models)) for share, models in RUNGS]
    done, total = 0, sum(size * models for size, models in rungs)
    progress(0, total)
    ranked, scores = list(range(len(candidates))), [0.0] * len(candidates)
    for size, models in rungs:
        ranked = ranked[:size]
        for i in ranked:
            scores[i] = trial.score(candidates[i], replace(recipe, n_models=models))
            done += models
            progress(done, total)
        ranked.sort(key=lambda i: -scores[i])  # the first stays first among equals
    return Choice(candidates[ranked[0]], scores[ranked[0]])


@dataclass(frozen=True)
class _Trial:
    """The records on which candidates are compared: the same for all."""

    pool: Pool
    folds: Sequence[BoolArray]
    goal: Goal
    n_jobs: int | None
    backend: Backend

    def score(self, learner: Learner, recipe: Recipe) -> float:
        return float(np.mean([self._score(learner, recipe, held_out) for held_out in self.folds]))

    def _score(self, learner: Learner, recipe: Recipe, held_out: BoolArray) -> float:
        votes = votes_outside(self.pool, held_out, learner, recipe, n_jobs=self.n_jobs, backend=self.backend)
        truth = self.pool.labels[held_out]
        if self.goal == "accuracy":
            return float((votes == truth[:, None]).mean())
        run = simulate(
            votes,
            truth,
            recipe.budget.step,
            n_trials=TRIALS,
            seed=recipe.seed,
            mechanism=check_decoder(recipe.decode)[0],
            noise=recipe.budget.noise,
            n_classes=len(self.pool.classes),
        )
        return float(run.accuracy(recipe.decode).mean())
