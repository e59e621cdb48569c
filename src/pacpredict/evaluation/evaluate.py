"""Evaluate before deploying: what one learner would be worth, without drawing a secret or spending anything."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pacpredict import defaults
from pacpredict.core.decode import NoiseRule
from pacpredict.core.vote_rule import VoteRule
from pacpredict.evaluation.crossfit import Chooser, cross_fit
from pacpredict.evaluation.forecast import Forecast, forecast
from pacpredict.exceptions import InvalidInput, PrivacyWarning
from pacpredict.learners.registry import Tune, learner_from
from pacpredict.mechanism.budget import Budget
from pacpredict.rows.sizes import ImageSize
from pacpredict.tables.schema import Types
from pacpredict.training.fit import Progress, no_progress
from pacpredict.training.pool import Pool
from pacpredict.training.recipe import Construction, Recipe
from pacpredict.training.train import Backend

# From one at which few answers exhaust any budget to the paper's smallest.
STEP_BUDGETS = (2.0**-4, 2.0**-8, 2.0**-12, 2.0**-16, 2.0**-24, 2.0**-32)
FOLDS = 5
TRIALS = 100


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A forecast, and how it came about."""

    learner: str
    labels: tuple[str, ...]
    records: int
    units: int
    unit: str  # what one is: a person, or a record
    models: int
    folds: int
    trials: int
    forecast: Forecast
    noise: NoiseRule = defaults.NOISE  # of argmax and map

    def to_json(self) -> dict[str, Any]:
        """Return plain values: accuracies as shares of 1, budgets in nats."""
        found = self.forecast
        return {
            "learner": self.learner,
            "unprotected": found.unprotected.accuracy,
            "half": found.half.accuracy,
            "majority": found.majority,
            "contested": found.contested,
            "cases": [case.to_json() for case in found.cases],
            "records": self.records,
            "units": self.units,
            "unit": self.unit,
            "models": self.models,
            "folds": self.folds,
            "trials": self.trials,
            "noise": self.noise,
            "details": {
                "labels": list(self.labels),
                "unprotected": found.unprotected.to_json(),
                "half": found.half.to_json(),
                "cases": [
                    {"decode": case.decode, "step_budget": case.step_budget, **case.score.to_json()}
                    for case in found.cases
                ],
            },
        }


def evaluate_pool(
    pool: Pool,
    choose: Chooser,
    recipe: Recipe,
    step_budgets: Sequence[float] = STEP_BUDGETS,
    *,
    name: str,
    folds: int = FOLDS,
    trials: int = TRIALS,
    n_jobs: int | None = None,
    backend: Backend = None,
    progress: Progress = no_progress,
) -> Evaluation:
    """Evaluate what `choose` trains, by the recipe of a deployment; its decoder and total budget do not matter."""
    if trials < 1:
        raise InvalidInput(f"trials must be at least 1, got {trials}")
    parts = cross_fit(pool, choose, recipe, folds, n_jobs=n_jobs, backend=backend, progress=progress)
    noise = recipe.budget.noise
    found = forecast(parts, len(pool.classes), step_budgets, n_trials=trials, seed=recipe.seed, noise=noise)
    labels = tuple(map(str, pool.classes.values))
    return Evaluation(
        name,
        labels,
        len(pool),
        pool.units.count,
        pool.units.kind,
        recipe.n_models,
        folds,
        trials,
        found,
        noise,
    )


def evaluate(
    X: Any,
    y: Any,
    estimator: Any = defaults.LEARNER,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    person_per_row: bool = False,
    params: Mapping[str, Any] | None = None,
    tune: Tune = defaults.TUNE,
    types: Types | None = None,
    min_category: int = defaults.MIN_CATEGORY,
    image_size: ImageSize | None = None,
    step_budgets: Sequence[float] = STEP_BUDGETS,
    noise: NoiseRule = defaults.NOISE,
    votes: VoteRule = defaults.VOTES,
    n_models: int = defaults.MODELS,
    construction: Construction = defaults.CONSTRUCTION,
    rate: float = defaults.RATE,
    folds: int = FOLDS,
    trials: int = TRIALS,
    n_jobs: int | None = None,
    backend: Backend = None,
    random_state: int = 0,
) -> Evaluation:
    """Measure what PrivateClassifier would be worth on these records, before there is a secret.

    Arguments that it shares with PrivateClassifier mean the same there. The result is for the owner, as is any figure
    that is computed on the records.

    Parameters
    ----------
    step_budgets
        Nats per answer to try.
    folds
        Parts that are held out in turn. Models train on what is left, so that a deployment, which trains on all, does a
        little better.
    trials
        Deployments that are simulated for each fold and budget.
    random_state
        Decides folds, subsets, models and simulated secrets.
    """
    learner = learner_from(estimator, params, tune)
    pool = Pool.of(
        X,
        y,
        types=types,
        min_category=min_category,
        weights=sample_weight,
        persons=groups,
        person_per_row=person_per_row,
        kinds=learner.takes,
        image_size=image_size,
    )
    for hint in pool.hints(X):
        warnings.warn(hint, PrivacyWarning, stacklevel=2)
    budget = Budget(min(step_budgets), max(step_budgets), noise=noise)
    recipe = Recipe(random_state, budget, n_models, construction, rate, votes=votes)
    return evaluate_pool(
        pool,
        lambda _: learner,
        recipe,
        step_budgets,
        name=learner.name,
        folds=folds,
        trials=trials,
        n_jobs=n_jobs,
        backend=backend,
    )
