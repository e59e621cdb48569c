"""Models on their way into an artifact, by a fit that survives interruptions."""

import secrets
from collections.abc import Iterable
from pathlib import Path

from pacpredict.artifact.artifact import read_records, voter_of
from pacpredict.artifact.workshop import Workshop, begun_plan
from pacpredict.files import as_json
from pacpredict.learners.learner import Learner, Voter
from pacpredict.training.fit import Fit, Progress, no_progress
from pacpredict.training.scratch import SECONDS_BETWEEN_STATES, Scratch
from pacpredict.training.subsets import Subsets
from pacpredict.training.train import Backend, train
from pacpredict.training.watch import watching


def train_missing(
    workshop: Workshop,
    subsets: Subsets,
    *,
    n_jobs: int | None = None,
    backend: Backend = None,
    progress: Progress = no_progress,
    seconds_between_states: float = SECONDS_BETWEEN_STATES,
) -> Voter:
    """Train the models that an interrupted fit has not finished; returns all of them, ready to vote.

    One that takes long is written down every `seconds_between_states`, to go on from there after an interruption.
    """
    pool, learner, recipe = workshop.pool, workshop.learner, workshop.recipe
    n_models = recipe.n_models
    done, scratch = workshop.done(), Scratch(workshop.training, seconds_between_states)
    missing = sorted(set(range(n_models)) - done)
    models = train(
        learner, pool, subsets, recipe.seed, missing, n_jobs=n_jobs, backend=backend, scratch=scratch
    )
    with watching(scratch, progress, len(done), n_models) as finished:
        for i, fitted in models:
            workshop.put(i, fitted)
            scratch.forget(i)
            finished()
    scratch.remove()
    home = workshop.partial
    records = read_records(home, n_models)
    return voter_of(learner, records, lambda name: (home / name).read_bytes(), len(pool.classes), pool.schema)


def store_models(workshop: Workshop, fitted: Fit) -> None:
    """Write models that are in memory."""
    for i, model in enumerate(fitted.models):
        workshop.put(i, model)


def begun_learner(path: str | Path, candidates: Iterable[Learner]) -> Learner | None:
    """Return which of several learners an interrupted fit to this path chose."""
    begun = begun_plan(path)
    chosen = None if begun is None else as_json(begun["learner"])
    return next((one for one in candidates if as_json(one.config()) == chosen), None)


def settle_seed(path: str | Path | None, seed: int | None) -> int:
    """Return the seed that was given, that an interrupted fit to this path began with, or a new one."""
    if seed is not None:
        return seed
    begun = None if path is None else begun_plan(path)
    return secrets.randbits(63) if begun is None else int(begun["recipe"]["seed"])
