"""Every attack of appendix C, made optimally at the end of simulated futures.

The attacker knows all subsets and the belief that a history leaves, and guesses whatever is most probable. What can be
guessed is the same thing in other words each time: a set of subsets, one of which is the secret.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pacpredict.audit.estimates import Estimate, clopper_pearson, mean_of
from pacpredict.audit.subject import Subject
from pacpredict.core.attacks import question, success_after
from pacpredict.core.near import near_reconstruction_prior
from pacpredict.core.priors import Records, full_set_prior, group_priors, model_prior, reconstruction_prior
from pacpredict.tables.schema import Rows, Schema
from pacpredict.training.pool import Pool
from pacpredict.types import BoolArray, FloatArray, IntArray, Votes

GROUP_SIZES = tuple(range(1, 11))
# Random groups that are attacked in each trial.
_GROUPS_PER_TRIAL = 20
# Records that a guess "something like this" is chosen from.
_N_CENTRES = 200
# Near is as near as this share of records is to another.
_NEAR = 0.05
# Trials whose guesses are computed together: a double for each record and trial.
_TRIALS_AT_A_TIME = 64


class Attack(NamedTuple):
    name: str
    question: str
    prior: float
    success: Estimate
    ceiling: float


class Futures(NamedTuple):
    """What is believed (n_trials, n_models) at the end of trials, which subsets were secret, and what leaked."""

    beliefs: FloatArray
    secrets: IntArray
    total_nats: float


def attack_all(
    subject: Subject,
    futures: Futures,
    *,
    points: FloatArray | None = None,
    group_sizes: Sequence[int] = GROUP_SIZES,
) -> list[Attack]:
    """Make every attack; `points` (n_records, n_dimensions) are the records as numbers, to guess something near one."""
    sizes = [size for size in group_sizes if size <= subject.n_units]
    found = [attack for size in sizes for attack in _attack_groups(subject, futures, size)]
    found += [_attack_records(subject, futures)]
    if points is not None:
        found += [_attack_near(subject, futures, points)]
    subsets = _same(subject.membership)
    models = _same(subject.votes.T)
    return [
        *found,
        _attack_sets(subject, futures, "full-set", subsets, full_set_prior(subject.membership)),
        _attack_sets(subject, futures, "model", models, model_prior(subject.votes.T)),
    ]


def _attack_groups(subject: Subject, futures: Futures, size: int) -> list[Attack]:
    """Guess of random groups whether any of them was trained on, and exactly who."""
    rng = np.random.default_rng([size, subject.n_units])
    hits: dict[str, list[int]] = {"group-any": [], "group-exact": []}
    bits = 1 << np.arange(size)
    for belief, secret in zip(futures.beliefs, futures.secrets, strict=True):
        drawn = [rng.choice(subject.n_units, size, replace=False) for _ in range(_GROUPS_PER_TRIAL)]
        patterns = np.stack([subject.membership[:, group] @ bits for group in drawn])  # (n_groups, n_models)
        whose = np.arange(_GROUPS_PER_TRIAL)[:, None] * (1 << size) + patterns
        mass = np.bincount(whose.ravel(), np.tile(belief, _GROUPS_PER_TRIAL), _GROUPS_PER_TRIAL << size)
        by_pattern = mass.reshape(_GROUPS_PER_TRIAL, -1)
        truth = patterns[:, secret]
        hits["group-exact"].append(int((by_pattern.argmax(axis=1) == truth).sum()))
        hits["group-any"].append(int(((by_pattern[:, 0] < 0.5) == (truth > 0)).sum()))
    priors = group_priors(subject.membership, size)
    # Groups of one trial belong together: what is independent is the share of them that was told in each.
    shares = {name: np.divide(counts, _GROUPS_PER_TRIAL) for name, counts in hits.items()}
    return [_attack(subject, futures, name, priors[name], mean_of(shares[name]), size) for name in hits]


def _attack_records(subject: Subject, futures: Futures) -> Attack:
    """Name the record that most probably was trained on; equal records of several units count together."""
    order = np.argsort(subject.contents, kind="stable")
    starts = np.flatnonzero(np.diff(subject.contents[order], prepend=subject.contents[order[0]] - 1))
    has = np.logical_or.reduceat(subject.membership.T[subject.units[order]], starts, axis=0)
    prior = reconstruction_prior(subject.membership, Records(subject.units, subject.contents))
    return _attack(subject, futures, "reconstruction", prior, _name_best(has, futures))


def _attack_near(subject: Subject, futures: Futures, points: FloatArray) -> Attack:
    """Name a point that most probably is near to a training record: as near as few records are to each other."""
    from scipy.spatial import KDTree  # noqa: PLC0415  # takes time to import

    centres = np.random.default_rng(0).permutation(len(points))[:_N_CENTRES]
    tree, by_record = KDTree(points), subject.membership.T[subject.units]
    nearest = tree.query(points[centres], k=2)[0][:, 1]
    distance = float(np.quantile(nearest, _NEAR))
    balls = tree.query_ball_point(points[centres], distance * (1 + 1e-9))
    has = np.stack([by_record[ball].any(axis=0) for ball in balls])
    prior = near_reconstruction_prior(by_record.T, points, distance, guesses=points[centres])
    near = _attack(subject, futures, "reconstruction", prior, _name_best(has, futures))
    return near._replace(
        name="near", question=f"name something within {distance:.3g} of a record that was trained on"
    )


def _name_best(has: BoolArray, futures: Futures) -> Estimate:
    """Name the thing that most probably one of the secret subset has; `has` (n_things, n_models) says which have it."""
    hits, weights = 0, has.astype(np.float64)
    for some in np.array_split(
        np.arange(len(futures.secrets)), 1 + len(futures.secrets) // _TRIALS_AT_A_TIME
    ):
        best = (weights @ futures.beliefs[some].T).argmax(axis=0)
        hits += int(has[best, futures.secrets[some]].sum())
    return clopper_pearson(hits, len(futures.secrets))


def _attack_sets(subject: Subject, futures: Futures, name: str, same: IntArray, prior: float) -> Attack:
    """Guess what the secret subset, or its model, is; those that are the same count together."""
    mass = np.stack([np.bincount(same, belief) for belief in futures.beliefs])
    hits = int((mass.argmax(axis=1) == same[futures.secrets]).sum())
    return _attack(subject, futures, name, prior, clopper_pearson(hits, len(futures.secrets)))


def _same(things: BoolArray | Votes) -> IntArray:
    """Give equal rows the same number."""
    return np.unique(things, axis=0, return_inverse=True)[1].ravel()


def _attack(
    subject: Subject, futures: Futures, name: str, prior: float, success: Estimate, size: int = 0
) -> Attack:
    asked = question(name, unit=subject.unit, n_models=subject.n_models, group_size=size)
    ceiling = success_after(futures.total_nats, prior)
    return Attack(f"{name}-{size}" if size else name, asked, prior, success, ceiling)


def points_of(pool: Pool) -> FloatArray | None:
    """Return the records of a table as points: columns scaled to the same spread, what is missing in their middle."""
    if not isinstance(pool.schema, Schema) or not isinstance(pool.rows, Rows):
        return None
    numbers = pool.schema.features(pool.rows)
    middle, spread = np.nanmean(numbers, axis=0), np.nanstd(numbers, axis=0)
    return np.nan_to_num((numbers - middle) / np.where(spread > 0, spread, 1.0))
