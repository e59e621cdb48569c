"""Training: one model per subset, one thread per model, many models at a time, here or on a cluster."""

from collections.abc import Collection, Iterable, Iterator

import numpy as np

from pacpredict.exceptions import InvalidInput
from pacpredict.learners.learner import Learner, TrainingSet
from pacpredict.training.block import Block, Fitted, Work
from pacpredict.training.cluster import Cluster
from pacpredict.training.local import check_parallel, train_here
from pacpredict.training.pool import Pool
from pacpredict.training.ray import check_cluster, train_on_cluster
from pacpredict.training.scratch import Scratch
from pacpredict.training.subsets import Subsets

# Where models are trained: a cluster, any backend that joblib knows, or None for processes of this machine.
Backend = Cluster | str | None


def train(
    learner: Learner,
    pool: Pool,
    subsets: Subsets,
    seed: int,
    wanted: Iterable[int],
    *,
    n_jobs: int | None = None,
    backend: Backend = None,
    scratch: Scratch | None = None,
) -> Iterator[tuple[int, Fitted]]:
    """Yield the wanted models as they are finished, in any order.

    Each depends on its subset and its own seed alone: neither their order nor where they are trained changes a model.

    Parameters
    ----------
    n_jobs
        models trained at a time; None is joblib's default, which a `joblib.parallel_config` around the call sets.
    backend
        a Cluster of Ray, or any backend that joblib knows: "loky" (processes, the default), "threading", or one that a
        cluster engine registered. "ray" is the cluster that runs on this machine.
    scratch
        where models that take long leave their journals, to go on from there after an interruption.
    """
    prepared, names = learner.prepare(pool.schema, pool.rows), pool.classes.values
    everything = TrainingSet(prepared, pool.labels, names, pool.weights, pool.units.of_record)
    seeds = seeds_of(seed, subsets.n_models)
    work, chosen, place = Work(learner, everything, pool.schema), set(wanted), _place(backend)
    blocks = (
        Block(models, [pool.units.records(subsets.row(i)) for i in models], [seeds[i] for i in models])
        for models in _blocks(chosen, subsets.n_models, learner.together)
    )
    if isinstance(place, Cluster):
        trained = train_on_cluster(place, work, blocks, scratch)
    else:
        trained = train_here(n_jobs, place, work, blocks, scratch)
    for block in trained:
        yield from ((i, fitted) for i, fitted in block if i in chosen)


def _blocks(wanted: Collection[int], n_models: int, size: int) -> list[range]:
    """Return the blocks that have a wanted model; they are the same whichever models are wanted."""
    blocks = (range(start, min(start + size, n_models)) for start in range(0, n_models, size))
    return [block for block in blocks if any(i in wanted for i in block)]


def check_training(learner: Learner, pool: Pool, n_jobs: int | None = None, backend: Backend = None) -> None:
    """Refuse what cannot be trained, or not there, before anything is begun."""
    if pool.schema.kind not in learner.takes:
        raise InvalidInput(
            f"the learner {learner.name} takes {' or '.join(learner.takes)}s, and these records are {pool.schema.kind}s"
        )
    learner.check_labels(pool.classes.values)
    if pool.weights is not None and not learner.takes_weights:
        raise InvalidInput(f"the learner {learner.name} does not take weights of records: fit without them")
    place = _place(backend)
    if isinstance(place, Cluster):
        check_cluster(place, learner)
    else:
        check_parallel(n_jobs, place)
        learner.require_device()


def seeds_of(seed: int, n_models: int) -> list[int]:
    """Return the seed of each model, 31 bits as XGBoost and scikit-learn take them."""
    return [int(s) for s in np.random.SeedSequence(seed).generate_state(n_models) >> np.uint32(1)]


def _place(backend: Backend) -> Backend:
    return Cluster() if backend == "ray" else backend
