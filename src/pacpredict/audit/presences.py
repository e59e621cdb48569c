"""Whose presence in the pool is asked about, by which ways of leaving a record out, and of whose answers."""

from collections.abc import Iterator, Sequence

import numpy as np

from pacpredict import defaults
from pacpredict.artifact.artifact import Artifact
from pacpredict.audit.presence import (
    ANSWERERS,
    SEES,
    Presence,
    Worlds,
    measure,
    memorised,
    n_variants,
    rates_of,
    retrain_without,
    worlds_on_hand,
)
from pacpredict.audit.subject import Subject
from pacpredict.core.decode import NoiseRule
from pacpredict.exceptions import InvalidInput
from pacpredict.mechanism.budget import Charging
from pacpredict.training.fit import Progress, no_progress
from pacpredict.training.pool import Pool
from pacpredict.types import IntArray, Votes

# Records that are asked about: those that are remembered best, and others at random.
N_REMEMBERED = 200
_N_OTHERS = 1000
# Without many records a pool would be another pool: one in so many is left out at most.
LEFT_OUT = 50
LARGE_STEP = 2.0**-8  # the paper's largest budget for one answer


def choose_records(subject: Subject, n_others: int, seed: int) -> tuple[IntArray, IntArray]:
    """Return the records that are remembered best, most first, and others."""
    order = np.argsort(-memorised(subject), kind="stable")
    others = np.random.default_rng(seed).permutation(order[N_REMEMBERED:])[:n_others]
    return order[:N_REMEMBERED], others


def measure_all(
    worlds: Worlds,
    steps: Sequence[float],
    charging: Charging = defaults.CHARGING,
    noise: NoiseRule = defaults.NOISE,
) -> list[Presence]:
    """Measure one unprotected model, and every decoder at every step, by one question and, at small steps, by many.

    Both for whoever looks at labels alone, and for whoever looks at charges, too.
    """
    model = rates_of(worlds, ANSWERERS[0], steps[0])
    found = [measure(model, ANSWERERS[0], steps[0])]  # it has no noise to draw anew
    for step in steps:
        rates = {decoder: rates_of(worlds, decoder, step, charging, noise=noise) for decoder in ANSWERERS[1:]}
        found += [
            measure(rates[decoder], decoder, step, n_questions, sees)
            for n_questions in sorted({1, n_variants(step)})
            for decoder in rates
            for sees in SEES
        ]
    return found


def votes_without(
    artifact: Artifact,
    pool: Pool,
    subject: Subject,
    records: IntArray,
    *,
    n_jobs: int | None,
    progress: Progress = no_progress,
) -> Votes:
    """Train all models again without some records, and let them vote on these; the rule of votes is not applied."""
    votes = retrain_without(
        artifact.trainer(),
        pool,
        artifact.space.subsets,
        artifact.recipe.seed,
        np.unique(subject.units[records]),
        n_jobs=n_jobs,
        progress=progress,
    )
    return votes(records)


def check_retrained(n_retrained: int, n_records: int) -> None:
    most = min(N_REMEMBERED, n_records // LEFT_OUT)
    if n_retrained > most:
        raise InvalidInput(
            f"models can be trained again without {most:,} of these {n_records:,} records at most, and {n_retrained:,} "
            "were asked for: without more the pool would be another pool"
        )


def presences(
    artifact: Artifact, pool: Pool, subject: Subject, n_retrained: int, seed: int, n_jobs: int | None
) -> Iterator[tuple[str, list[Presence]]]:
    """Measure by the votes on hand, and last, if that is asked for, by training again."""
    remembered, others = choose_records(subject, _N_OTHERS, seed)
    budget = subject.budget
    terms = sorted({budget.step, LARGE_STEP}), budget.charging, budget.noise
    best = f"the {len(remembered):,} remembered best"
    for which, records in ((best, remembered), (f"{len(others):,} others", others)):
        if records.size:
            worlds = worlds_on_hand(subject, records)
            yield f"{which}, by the votes on hand", measure_all(worlds, *terms)
    if n_retrained:
        records = remembered[:n_retrained]
        votes = votes_without(artifact, pool, subject, records, n_jobs=n_jobs)
        seen, which = worlds_on_hand(subject, records), f"the {len(records):,} remembered best"
        yield f"{which}, by the votes on hand", measure_all(seen, *terms)
        yield (
            f"{which}, by training without them",
            measure_all(_without(subject, records, seen, votes), *terms),
        )


def _without(subject: Subject, records: IntArray, seen: Worlds, votes: Votes) -> Worlds:
    """Put the votes of models that were trained without some records into the world without them."""
    if seen.plain is None:
        return seen._replace(outside=votes)
    others = np.setdiff1d(np.arange(subject.n_units), subject.units[records])
    counted = subject.count(votes, subject.membership[:, others])
    return seen._replace(outside=counted, plain=seen.plain._replace(outside=votes))
