"""How well each attack of appendix C succeeds before it has seen any answer.

Every function takes the realised subsets: `membership[i, u]` says whether unit u, a person or a group of
identical records, is in the i-th of the m subsets. The attacker knows them all and the prior `weights` over them
(uniform unless given), so the best guess succeeds with the largest probability mass that one guess can cover.
Give the result to `bounds.success_bound` as its prior.
"""

import math
from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pacpredict.core.attacks import GROUP_SIZE
from pacpredict.core.masses import Mass, as_membership, chunks, holders_of, rows_of
from pacpredict.exceptions import InvalidSubsets, InvalidVotes
from pacpredict.types import BoolArray, FloatArray, IntArray

# Of the random groups over which a mean prior is estimated: whoever looks again sees the same number. If there are no
# more groups than this, all of them are counted.
_GROUP_SEED = 128
N_GROUPS = 20_000
# With this probability the true mean of all groups is above what is reported.
_GROUP_RISK = 1e-9


class Spread(NamedTuple):
    """Mean and standard deviation over random groups."""

    mean: float
    sd: float


class GroupPriors(NamedTuple):
    """Of the two questions that can be asked about a group."""

    any: Spread  # was any of them trained on?
    exact: Spread  # which of them were trained on?


class Records(NamedTuple):
    """Of each record the unit that it belongs to, and a number that equal records have in common."""

    units: IntArray
    contents: IntArray


def attack_priors(
    membership: npt.ArrayLike,
    records: Records,
    votes: npt.ArrayLike,
    *,
    group_size: int = GROUP_SIZE,
) -> dict[str, float]:
    """Return the prior of each attack of `core/attacks.py`; its keys are these.

    Membership is the worst of all units. `votes` (n_models, n_probes) tell models apart.
    """
    subsets = as_membership(membership)
    return {
        "membership": float(membership_priors(subsets).max()),
        **group_priors(subsets, group_size),
        "reconstruction": reconstruction_prior(subsets, records),
        "full-set": full_set_prior(subsets),
        "model": model_prior(votes),
    }


def group_priors(membership: npt.ArrayLike, group_size: int) -> dict[str, float]:
    """Return the priors of the attacks on a group that chance chose: the means over all groups, or no less.

    A mean that is too low would make a ceiling that a blind guess passes. So all groups are counted if they are few;
    else an upper confidence limit is taken, which many random groups bring near to the mean.
    """
    subsets = as_membership(membership)
    n_units = subsets.shape[1]
    _check_group_size(group_size, n_units)
    if math.comb(n_units, group_size) <= N_GROUPS:
        groups = np.array(list(combinations(range(n_units), group_size)))
        means = [float(priors.mean()) for priors in _uniform_group_priors(subsets, groups)]
    else:
        rng = np.random.Generator(np.random.PCG64(_GROUP_SEED))
        # Larger groups take longer.
        n_groups = max(N_GROUPS * GROUP_SIZE // max(group_size, GROUP_SIZE), 5000)
        groups = np.array(
            [rng.choice(n_units, group_size, replace=False, shuffle=False) for _ in range(n_groups)]
        )
        means = [_upper_mean(priors) for priors in _uniform_group_priors(subsets, groups)]
    return dict(zip(("group-any", "group-exact"), means, strict=True))


def _uniform_group_priors(subsets: BoolArray, groups: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return, of each group, the success of guessing whether any of it was trained on, and which, by equal weights.

    A pattern of members has a number, made of 64 random bits for each. Two patterns that have the same by chance are
    taken for one, which makes the prior too high, never too low.
    """
    by_unit, m = np.ascontiguousarray(subsets.T), len(subsets)
    bits = np.random.Generator(np.random.PCG64(_GROUP_SEED)).integers(2**63, size=(groups.shape[1], 1))
    patterns, met = np.zeros((len(groups), m), np.int64), np.zeros((len(groups), m), np.bool_)
    for j in range(groups.shape[1]):
        inside = by_unit[groups[:, j]]
        met |= inside
        patterns ^= np.where(inside, bits[j], 0)
    patterns.sort(axis=1)
    run, longest = np.ones(len(groups)), np.ones(len(groups))
    for before, after in pairwise(np.ascontiguousarray(patterns.T)):
        run = np.where(before == after, run + 1, 1)
        longest = np.maximum(longest, run)
    share = met.mean(axis=1)
    return np.maximum(share, 1 - share), longest / m


def _upper_mean(values: FloatArray) -> float:
    """Bound the mean of all by that of a sample (the empirical Bernstein inequality of Maurer and Pontil, 2009)."""
    n, log = values.size, math.log(2 / _GROUP_RISK)
    margin = math.sqrt(2 * float(values.var(ddof=1)) * log / n) + 7 * log / (3 * (n - 1))
    return min(float(values.mean()) + margin, 1.0)


def _check_group_size(group_size: int, n_units: int) -> None:
    if not 1 <= group_size <= n_units:
        raise InvalidSubsets(f"group_size must be from 1 to the {n_units} units there are, got {group_size}")


def membership_priors(membership: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> FloatArray:
    """Return, for each unit, the success of the better constant guess: max(p, 1 - p)."""
    subsets = as_membership(membership)
    mass = Mass.over(subsets, weights)
    p = np.empty(subsets.shape[1])
    for chunk in chunks(len(p)):
        p[chunk] = mass.values @ subsets[:, chunk] / mass.total
    p = np.minimum(p, 1.0)
    return np.maximum(p, 1 - p)


def group_any_prior(
    membership: npt.ArrayLike, units: Sequence[int], weights: npt.ArrayLike | None = None
) -> float:
    """Return the success of guessing whether any of these units was trained on.

    It grows with the group: of two units that were drawn separately one is in 3/4 of the subsets.
    """
    subsets = as_membership(membership)
    group = subsets[:, _as_units(units, subsets.shape[1])]
    return _any(group, Mass.over(subsets, weights))


def group_exact_prior(
    membership: npt.ArrayLike, units: Sequence[int], weights: npt.ArrayLike | None = None
) -> float:
    """Return the success of guessing which of these units were trained on, each of them right.

    It is the mass of the most common configuration and falls as the group grows. It says nothing about whether
    *any* of them was trained on.
    """
    subsets = as_membership(membership)
    group = subsets[:, _as_units(units, subsets.shape[1])]
    return _exact(group, Mass.over(subsets, weights))


def simulate_group_priors(
    membership: npt.ArrayLike,
    group_size: int,
    rng: np.random.Generator,
    *,
    n_groups: int = 1000,
    weights: npt.ArrayLike | None = None,
) -> GroupPriors:
    """Return how both priors of a group are distributed over random groups of distinct units.

    The mean is the prior of an attack on a group that chance chose, as Figure group_mia_prior has it. The bound
    for one particular group follows from its own prior.
    """
    subsets = as_membership(membership)
    n_units = subsets.shape[1]
    _check_group_size(group_size, n_units)
    if n_groups < 2:
        raise InvalidSubsets(f"n_groups must be at least 2 to have a standard deviation, got {n_groups}")
    mass = Mass.over(subsets, weights)
    drawn = (rng.choice(n_units, group_size, replace=False, shuffle=False) for _ in range(n_groups))
    groups = [subsets[:, units] for units in drawn]
    return GroupPriors(
        _spread([_any(group, mass) for group in groups]), _spread([_exact(group, mass) for group in groups])
    )


def reconstruction_prior(
    membership: npt.ArrayLike, records: Records | None = None, weights: npt.ArrayLike | None = None
) -> float:
    """Return the success of naming a record of the training set: the largest Pr[a record with this content in S].

    Records of several units that are equal in content count together, since naming either is naming both.
    Without `records` each unit is one record, unlike all others.
    """
    subsets = as_membership(membership)
    n_units = subsets.shape[1]
    units, contents = Records(np.arange(n_units), np.arange(n_units)) if records is None else records
    if len(units) != len(contents):
        raise InvalidSubsets(f"{len(units)} records have units and {len(contents)} have contents")
    order = np.argsort(contents, kind="stable")
    starts = np.flatnonzero(np.diff(contents[order], prepend=contents[order[:1]] - 1))
    by_content = _as_units(units, n_units)[order]
    return Mass.over(subsets, weights).heaviest_run(holders_of(subsets), by_content, starts)


def full_set_prior(membership: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    """Return the success of guessing the whole training set; equal subsets count together.

    It is 1/m for m different subsets, the floor of Proposition 4.1.
    """
    subsets = as_membership(membership)
    return Mass.over(subsets, weights).heaviest(rows_of(subsets))


def model_prior(votes: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    """Return the success of guessing the model's behaviour, given the labels (n_models, n_probes) on probes.

    Models that agree on all probes may still differ elsewhere. Taking them as one overstates the prior, and
    so the bound: an error to the safe side, which more probes make smaller. Comparing files would err to the
    other side: different trees can be the same function.
    """
    labels = np.asarray(votes)
    if labels.ndim != 2 or labels.size == 0:
        raise InvalidVotes(f"votes must have shape (n_models, n_probes) and not be empty, got {labels.shape}")
    if not np.issubdtype(labels.dtype, np.integer):
        raise InvalidVotes(f"votes must be integer class indices, got dtype {labels.dtype}")
    return Mass.over(labels, weights).heaviest(row.tobytes() for row in labels)


def _any(group: BoolArray, mass: Mass) -> float:
    met: BoolArray = np.any(group, axis=1)
    return max(mass.of(met), mass.of(~met))


def _exact(group: BoolArray, mass: Mass) -> float:
    return mass.heaviest(rows_of(group))


def _spread(priors: Sequence[float]) -> Spread:
    return Spread(math.fsum(priors) / len(priors), float(np.std(priors, ddof=1)))


def _as_units(units: Sequence[int] | IntArray, n_units: int) -> npt.NDArray[np.intp]:
    chosen = np.asarray(units)
    if chosen.ndim != 1 or chosen.size == 0 or not np.issubdtype(chosen.dtype, np.integer):
        raise InvalidSubsets(f"units must be a non-empty list of unit numbers, got {units!r}")
    if chosen.min() < 0 or chosen.max() >= n_units:
        raise InvalidSubsets(
            f"units must be numbers from 0 to {n_units - 1}, found {chosen.min()} to {chosen.max()}"
        )
    return chosen.astype(np.intp)
