"""The training of one model, or of several that are trained together, wherever that happens."""

import time
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pacpredict.learners.journal import Journal, NoJournal
from pacpredict.learners.learner import Learner, Trained, TrainingSet, subset_of
from pacpredict.rows.kind import AnySchema
from pacpredict.training.scratch import Desk, PacedJournal
from pacpredict.types import IntArray


class Work(NamedTuple):
    """What the models of a fit have in common."""

    learner: Learner
    everything: TrainingSet
    schema: AnySchema


class Block(NamedTuple):
    """What makes some of them: one, unless the learner trains several together."""

    models: Sequence[int]
    chosen: Sequence[npt.NDArray[np.int64]]  # the records of each subset
    seeds: Sequence[int]


class Fitted(NamedTuple):
    """One model and the label indices that its classes stand for; no model if its subset has one class only."""

    model: Any
    classes: IntArray
    notes: dict[str, Any]
    cpu_seconds: float


def train_block(work: Work, block: Block, desk: Desk | None = None) -> list[tuple[int, Fitted]]:
    """Train the models of a block; one that takes long leaves its journal on the desk."""
    if work.learner.together > 1:
        return _train_together(work, block)
    (model,), (chosen,), (seed,) = block
    journal = NoJournal() if desk is None else PacedJournal(desk, model)
    return [(model, _train_one(work, chosen, seed, journal))]


def _train_together(work: Work, block: Block) -> list[tuple[int, Fitted]]:
    started = time.process_time()
    every = work.everything
    members = np.zeros((len(block.models), len(every.labels)), np.bool_)
    for own, records in zip(members, block.chosen, strict=True):
        own[records] = True
    with _thread_pools().limit(limits=1):
        trained = work.learner.fit_together(every, members, work.schema, block.seeds)
    seconds = round((time.process_time() - started) / len(block.models), 3)
    classes = [np.unique(every.labels[records]).astype(np.int64) for records in block.chosen]
    return [
        (i, Fitted(one.model if len(own) > 1 else None, own, dict(one.notes), seconds))
        for i, one, own in zip(block.models, trained, classes, strict=True)
    ]


def _train_one(work: Work, chosen: npt.NDArray[np.int64], seed: int, journal: Journal) -> Fitted:
    started = time.process_time()
    every = work.everything
    classes, own = np.unique(every.labels[chosen], return_inverse=True)
    trained = Trained(None, {})
    if len(classes) > 1:
        records = TrainingSet(
            subset_of(every.prepared, chosen),
            own.astype(np.int64),
            [every.names[c] for c in classes],
            None if every.weights is None else every.weights[chosen],
            None if every.units is None else every.units[chosen],
        )
        with _thread_pools().limit(limits=1):
            trained = work.learner.fit_resumably(records, work.schema, seed, journal)
    seconds = round(time.process_time() - started, 3)
    return Fitted(trained.model, classes.astype(np.int64), dict(trained.notes), seconds)


@cache
def _thread_pools() -> Any:
    """Look for thread pools once per process: a Ctrl-C that comes during the search gets lost in its callback."""
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415  # takes time to import; only training needs it

    return ThreadpoolController()
