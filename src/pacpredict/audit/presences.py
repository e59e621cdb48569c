"""Whose presence in the pool an audit asks about, and by which ways of leaving a record out."""

from collections.abc import Iterator, Sequence

import numpy as np

from pacpredict.artifact.artifact import Artifact
from pacpredict.audit.presence import (
    ANSWERERS,
    N_VARIANTS,
    Presence,
    Worlds,
    measure,
    memorised,
    retrain_without,
    worlds_on_hand,
)
from pacpredict.audit.subject import Subject
from pacpredict.training.pool import Pool

# Records that are asked about: those that are remembered best, and others at random.
_N_REMEMBERED, _N_OTHERS = 200, 1000
_LARGE_STEP = 2.0**-8  # the paper's largest budget for one answer


def presences(
    artifact: Artifact, pool: Pool, subject: Subject, n_retrained: int, seed: int, n_jobs: int | None
) -> Iterator[tuple[str, list[Presence]]]:
    order = np.argsort(-memorised(subject), kind="stable")
    remembered = order[:_N_REMEMBERED]
    others = np.random.default_rng(seed).permutation(order[_N_REMEMBERED:])[:_N_OTHERS]
    steps = sorted({subject.budget.step, _LARGE_STEP})
    on_hand = f"the {len(remembered):,} remembered best, by the votes on hand"
    yield on_hand, _measure(worlds_on_hand(subject, remembered), steps)
    if others.size:
        yield (
            f"{len(others):,} others, by the votes on hand",
            _measure(worlds_on_hand(subject, others), steps),
        )
    if n_retrained:
        records = order[:n_retrained]
        votes = retrain_without(
            artifact.trainer(),
            pool,
            artifact.space.subsets,
            artifact.recipe.seed,
            np.unique(subject.units[records]),
            n_jobs=n_jobs,
        )
        seen = worlds_on_hand(subject, records)
        yield f"the {len(records):,} remembered best, by the votes on hand", _measure(seen, steps)
        without = seen._replace(outside=votes(records))
        yield f"the {len(records):,} remembered best, by training without them", _measure(without, steps)


def _measure(worlds: Worlds, steps: Sequence[float]) -> list[Presence]:
    return [
        measure(worlds, answerer, step, n_questions)
        for step in steps
        for n_questions in (1, N_VARIANTS)
        for answerer in ANSWERERS
        if answerer != "one model" or (step == steps[0] and n_questions == 1)  # it has no noise to draw anew
    ]
