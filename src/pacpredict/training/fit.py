"""From a pool of records to m trained models, in memory."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from pacpredict.learners.journal import Stage
from pacpredict.learners.learner import Learner
from pacpredict.training.block import Fitted
from pacpredict.training.ensemble import Ensemble
from pacpredict.training.pool import Pool
from pacpredict.training.recipe import Recipe
from pacpredict.training.space import Space
from pacpredict.training.train import Backend, check_training, train
from pacpredict.types import IntArray


class Progress(Protocol):
    """Is told how many models are finished of all, and how far those are that are being trained."""

    def __call__(self, done: int, total: int, doing: Mapping[int, Stage] = ..., /) -> None: ...


def no_progress(done: int, total: int, doing: Mapping[int, Stage] | None = None) -> None:
    pass


class Fit(NamedTuple):
    """All models in memory, with what an artifact of them needs."""

    pool: Pool
    learner: Learner
    recipe: Recipe
    models: list[Fitted]
    ensemble: Ensemble

    def trained_on(self, i: int) -> IntArray:
        """Return the records that model i was trained on, in order."""
        return self.pool.units.records(self.ensemble.space.subsets.row(i))


def fit(
    pool: Pool,
    learner: Learner,
    recipe: Recipe,
    *,
    n_jobs: int | None = None,
    backend: Backend = None,
    progress: Progress = no_progress,
) -> Fit:
    """Train all models in memory."""
    check_training(learner, pool, n_jobs, backend)
    subsets, n_models = recipe.subsets(pool.units), recipe.n_models
    progress(0, n_models)
    models: dict[int, Fitted] = {}
    for i, fitted in train(
        learner, pool, subsets, recipe.seed, range(n_models), n_jobs=n_jobs, backend=backend
    ):
        models[i] = fitted
        progress(len(models), n_models)
    in_order = [models[i] for i in range(n_models)]
    voter = learner.voter(
        [one.model for one in in_order], [one.classes for one in in_order], len(pool.classes), pool.schema
    )
    space = Space.realised(pool, subsets, learner, voter, recipe.seed)
    ensemble = Ensemble(pool.schema, pool.classes, learner, voter, n_models, space, recipe.votes)
    return Fit(pool, learner, recipe, in_order, ensemble)
