"""Training: one model per subset, one thread per model, many models at a time."""

import time
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed, parallel_config
from threadpoolctl import ThreadpoolController

from pacpredict.core.validate import IntArray
from pacpredict.ensemble.learners.learner import Learner, Prepared, Trained, subset_of
from pacpredict.ensemble.pool import Pool
from pacpredict.ensemble.subsets import Subsets
from pacpredict.ensemble.tables.schema import Schema
from pacpredict.exceptions import InvalidInput


class Fitted(NamedTuple):
    """One model and the label indices that its classes stand for; no model if its subset has one class only."""

    model: Any
    classes: IntArray
    notes: dict[str, Any]
    cpu_seconds: float


def train(
    learner: Learner,
    pool: Pool,
    subsets: Subsets,
    seed: int,
    wanted: Iterable[int],
    *,
    n_jobs: int | None = None,
    backend: str | None = None,
) -> Iterator[tuple[int, Fitted]]:
    """Yield the wanted models as they are finished, in any order.

    Each depends on its subset and its own seed alone: neither their order nor the number of jobs changes a model.

    Parameters
    ----------
    n_jobs
        models trained at a time; None is joblib's default, which a `joblib.parallel_config` around the call sets.
    backend
        any backend that joblib knows: "loky" (processes, the default), "threading", or one that a cluster engine
        registered.
    """
    prepared = learner.prepare(pool.schema, pool.rows)
    seeds = seeds_of(seed, subsets.n_models)
    jobs = (
        delayed(_train_one)(i, learner, prepared, pool.labels, subsets.indices(i), pool.schema, seeds[i])
        for i in wanted
    )
    with _configured(backend):
        yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)


def check_parallel(n_jobs: int | None, backend: str | None) -> None:
    """Refuse what joblib cannot run, before anything is begun."""
    if n_jobs == 0:
        raise InvalidInput(
            "n_jobs must be a number of models to train at a time, or -1 for one per core; got 0"
        )
    try:
        with _configured(backend):
            pass
    except ValueError as problem:
        raise InvalidInput(f"joblib has no backend {backend!r}: {problem}") from problem


def _configured(backend: str | None) -> Any:
    # A backend of None would hide one that the caller has configured around the training.
    return parallel_config(**({} if backend is None else {"backend": backend}))


def seeds_of(seed: int, n_models: int) -> list[int]:
    """Return the seed of each model, 31 bits as XGBoost and scikit-learn take them."""
    return [int(s) for s in np.random.SeedSequence(seed).generate_state(n_models) >> np.uint32(1)]


@cache
def _thread_pools() -> ThreadpoolController:
    """Look for thread pools once per process: a Ctrl-C that comes during the search gets lost in its callback."""
    return ThreadpoolController()


def _train_one(
    i: int,
    learner: Learner,
    prepared: Prepared,
    labels: IntArray,
    records: npt.NDArray[np.int64],
    schema: Schema,
    seed: int,
) -> tuple[int, Fitted]:
    started = time.process_time()
    classes, own = np.unique(labels[records], return_inverse=True)
    trained = Trained(None, {})
    if len(classes) > 1:
        with _thread_pools().limit(limits=1):
            trained = learner.fit(subset_of(prepared, records), own.astype(np.int64), schema, seed)
    seconds = round(time.process_time() - started, 3)
    return i, Fitted(trained.model, classes.astype(np.int64), dict(trained.notes), seconds)
