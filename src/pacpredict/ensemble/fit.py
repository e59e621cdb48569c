"""From a pool of records to m trained models: in memory, or into an artifact that survives interruptions."""

import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pacpredict.core.belief import Belief
from pacpredict.ensemble.artifact.artifact import Artifact, voter_of
from pacpredict.ensemble.artifact.workshop import Workshop, begun_plan
from pacpredict.ensemble.ensemble import Ensemble
from pacpredict.ensemble.learners.learner import Learner
from pacpredict.ensemble.pool import Pool
from pacpredict.ensemble.recipe import Recipe
from pacpredict.ensemble.subsets import Subsets
from pacpredict.ensemble.train import Fitted, check_parallel, train
from pacpredict.mechanism.secret import Secret

# Called with the number of finished models and of all.
Progress = Callable[[int, int], None]


def no_progress(_done: int, _total: int) -> None:
    pass


class Fit(NamedTuple):
    """All models in memory, with what an artifact of them needs."""

    pool: Pool
    learner: Learner
    recipe: Recipe
    subsets: Subsets
    models: list[Fitted]
    ensemble: Ensemble


def fit(
    pool: Pool,
    learner: Learner,
    recipe: Recipe,
    *,
    n_jobs: int | None = None,
    backend: str | None = None,
    progress: Progress = no_progress,
) -> Fit:
    """Train all models in memory."""
    check_parallel(n_jobs, backend)
    subsets, n_models = recipe.subsets(len(pool)), recipe.n_models
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
    ensemble = Ensemble(pool.schema, pool.classes, learner, voter, n_models)
    return Fit(pool, learner, recipe, subsets, in_order, ensemble)


def fit_artifact(
    path: str | Path,
    pool: Pool,
    learner: Learner,
    recipe: Recipe,
    *,
    before_publishing: Callable[[Path, str], None],
    source: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    backend: str | None = None,
    progress: Progress = no_progress,
) -> Artifact:
    """Train what is missing, draw the secret and publish the artifact.

    `before_publishing` gets the directory and the deployment's identity, to put a ledger into it.
    """
    check_parallel(n_jobs, backend)
    subsets, n_models = recipe.subsets(len(pool)), recipe.n_models
    with Workshop(path, pool, learner, recipe).open() as workshop:
        done = workshop.done()
        progress(len(done), n_models)
        missing = sorted(set(range(n_models)) - done)
        for i, fitted in train(learner, pool, subsets, recipe.seed, missing, n_jobs=n_jobs, backend=backend):
            workshop.put(i, fitted)
            done.add(i)
            progress(len(done), n_models)
        voter = voter_of(learner, workshop.partial, n_models, len(pool.classes), pool.schema)
        # From the operating system, never from the seed: who knows the recipe must not know the secret.
        secret = Secret.draw(Belief.uniform(n_models))
        workshop.publish(voter, subsets, secret, source, before_publishing)
    return Artifact.open(path, trust=True)  # its own models were in this process already


def save_artifact(
    path: str | Path, fitted: Fit, secret: Secret, *, before_publishing: Callable[[Path, str], None]
) -> Artifact:
    """Write models that are in memory as an artifact."""
    with Workshop(path, fitted.pool, fitted.learner, fitted.recipe).open() as workshop:
        for i, model in enumerate(fitted.models):
            workshop.put(i, model)
        workshop.publish(fitted.ensemble.voter, fitted.subsets, secret, None, before_publishing)
    return Artifact.open(path, trust=True)


def settle_seed(path: str | Path | None, seed: int | None) -> int:
    """Return the seed that was given, that an interrupted fit to this path began with, or a new one."""
    if seed is not None:
        return seed
    begun = None if path is None else begun_plan(path)
    return secrets.randbits(63) if begun is None else int(begun["recipe"]["seed"])
