"""Votes on records that no model has seen: of the models of a deployment, and of one that is not protected."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pacpredict.evaluation.folds import split
from pacpredict.learners.learner import Learner
from pacpredict.training.fit import Progress, fit, no_progress
from pacpredict.training.pool import Pool
from pacpredict.training.recipe import Recipe
from pacpredict.training.subsets import Subsets
from pacpredict.training.train import Backend, seeds_of, train
from pacpredict.types import BoolArray, IntArray, Votes

# Which learner to train on some records: always the same, or what a search on these records chooses.
Chooser = Callable[[Pool], Learner]


class Fold(NamedTuple):
    """Held-out records, and what models that were trained on the others say about them."""

    truth: IntArray  # (n,)
    votes: Votes  # (n, n_models): of models on random halves, as in a deployment
    unprotected: Votes  # (n,): of one model on all of the others


def cross_fit(
    pool: Pool,
    choose: Chooser,
    recipe: Recipe,
    n_folds: int,
    *,
    n_jobs: int | None = None,
    backend: Backend = None,
    progress: Progress = no_progress,
) -> Iterator[Fold]:
    """Hold out each part of the pool in turn and train a deployment's models on the rest. No secret is drawn."""
    each = recipe.n_models + 1
    seeds = seeds_of(recipe.seed, n_folds)
    for i, held_out in enumerate(split(pool, n_folds, recipe.seed)):

        def count(done: int, _total: int, _doing: Any = None, before: int = i * each) -> None:
            progress(before + done, n_folds * each)

        learner, own = choose(pool.part(~held_out)), replace(recipe, seed=seeds[i])
        votes = votes_outside(pool, held_out, learner, own, n_jobs=n_jobs, backend=backend, progress=count)
        alone = answers_unprotected(pool, held_out, learner, seeds[i])
        count(each, each)
        yield Fold(pool.labels[held_out], votes, alone)


def votes_outside(
    pool: Pool,
    held_out: BoolArray,
    learner: Learner,
    recipe: Recipe,
    *,
    n_jobs: int | None = None,
    backend: Backend = None,
    progress: Progress = no_progress,
) -> Votes:
    """Train on random halves of the other records, and let all models vote on those that are held out."""
    rest = pool.part(~held_out)
    halves = fit(rest, learner, recipe, n_jobs=n_jobs, backend=backend, progress=progress)
    return halves.ensemble.votes(pool.rows.take(held_out))


def answers_unprotected(pool: Pool, held_out: BoolArray, learner: Learner, seed: int) -> Votes:
    """Train one model on all other records, as one would without protection, and ask it."""
    rest = pool.part(~held_out)
    everyone = Subsets.of(np.ones((1, rest.units.count), np.bool_))
    ((_, one),) = train(learner, rest, everyone, seed, [0], n_jobs=1)
    voter = learner.voter([one.model], [one.classes], len(pool.classes), pool.schema)
    asked = learner.prepare(pool.schema, pool.rows.take(held_out))
    return np.asarray(voter.votes(asked)[:, 0], np.int16)
