"""How well each attack of appendix C succeeds before it has seen any answer.

Every function takes the realised subsets: `membership[i, u]` says whether record u is in the i-th of the m
subsets. The attacker knows them all and the prior `weights` over them (uniform unless given), so the best
guess succeeds with the largest probability mass that one guess can cover. Give the result to
`bounds.success_bound` as its prior.
"""

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pacpredict.core.validate import FloatArray, check_belief
from pacpredict.exceptions import InvalidSubsets, InvalidVotes

BoolArray = npt.NDArray[np.bool_]

# Records worked on at a time: 128 models x 8 bytes x 16,384 records are 16 MB.
_CHUNK = 16_384
# Balls sized at a time; few, because the first one that meets every subset ends the search.
_BALLS = 1024
# Neighbours listed at a time; a list of Python integers takes some 36 bytes for each.
_NEIGHBOURS = 1_000_000
# Distances are rounded, and a record at exactly the distance counts. In fewer than a million dimensions
# rounding is far below this, and a radius that is a little too large errs to the safe side.
_RADIUS_SLACK = 1 + 1e-9


class GroupPrior(NamedTuple):
    """Mean and standard deviation of the group prior over random groups."""

    mean: float
    sd: float


def membership_priors(membership: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> FloatArray:
    """Return, for each record, the success of the better constant guess: max(p, 1 - p)."""
    p = _inclusion(_as_membership(membership), weights)
    return np.maximum(p, 1 - p)


def group_prior(
    membership: npt.ArrayLike, records: Sequence[int], weights: npt.ArrayLike | None = None
) -> float:
    """Return the success of the best guess at the joint membership of these records.

    It is the mass of the most common configuration; for one record it is `membership_priors` of it.
    """
    subsets = _as_membership(membership)
    return _heaviest(_rows(subsets[:, _as_records(records, subsets.shape[1])]), _Mass.over(subsets, weights))


def simulate_group_prior(
    membership: npt.ArrayLike,
    group_size: int,
    rng: np.random.Generator,
    *,
    n_groups: int = 1000,
    weights: npt.ArrayLike | None = None,
) -> GroupPrior:
    """Return how the group prior is distributed over random groups of distinct records.

    The mean describes a typical group, as Figure group_mia_prior does. The bound for one particular group
    follows from its own `group_prior`.
    """
    subsets = _as_membership(membership)
    n_records = subsets.shape[1]
    if not 1 <= group_size <= n_records:
        raise InvalidSubsets(
            f"group_size must be from 1 to the {n_records} records there are, got {group_size}"
        )
    if n_groups < 2:
        raise InvalidSubsets(f"n_groups must be at least 2 to have a standard deviation, got {n_groups}")
    mass = _Mass.over(subsets, weights)
    groups = (rng.choice(n_records, group_size, replace=False, shuffle=False) for _ in range(n_groups))
    priors = [_heaviest(_rows(subsets[:, group]), mass) for group in groups]
    return GroupPrior(math.fsum(priors) / n_groups, float(np.std(priors, ddof=1)))


def reconstruction_prior(membership: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    """Return the success of naming one record of the training set: the largest Pr[x in S].

    Records that are equal in content are told apart here; with `near_reconstruction_prior` at distance 0
    either of them counts.
    """
    subsets = _as_membership(membership)
    likeliest = int(np.argmax(_inclusion(subsets, weights)))
    return _Mass.over(subsets, weights).of(subsets[:, likeliest])


def near_reconstruction_prior(
    membership: npt.ArrayLike,
    points: npt.ArrayLike,
    distance: float,
    *,
    guesses: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
) -> float:
    """Return the success of a guess that must come within a Euclidean distance of some training record.

    Parameters
    ----------
    membership
        (n_models, n_records).
    points
        (n_records, n_dimensions), the records as the attacker would write them.
    distance
        The t of appendix C.
    guesses
        (n_guesses, n_dimensions). With guesses the prior of the best of them, exactly; it says nothing about
        other guesses. Without, an upper bound for every guess in space: records within t of one guess are
        within 2 t of each other, so no guess covers more than the ball of radius 2 t around some record.
    weights
        (n_models,), the prior over the subsets.

    """
    subsets = _as_membership(membership)
    records = _as_points(points, "points")
    if len(records) != subsets.shape[1]:
        raise InvalidSubsets(
            f"points must have one row for each of {subsets.shape[1]} records, got {len(records)}"
        )
    if not 0 <= distance < math.inf:
        raise InvalidSubsets(f"distance must be finite and at least 0, got {distance!r}")
    centres = records if guesses is None else _as_points(guesses, "guesses")
    if centres.shape[1] != records.shape[1]:
        raise InvalidSubsets(
            f"guesses must have {records.shape[1]} dimensions like points, got {centres.shape[1]}"
        )
    radius = distance * (2 if guesses is None else 1) * _RADIUS_SLACK
    return _best_ball(subsets, records, centres, radius, _Mass.over(subsets, weights))


def full_set_prior(membership: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    """Return the success of guessing the whole training set; equal subsets count together.

    It is 1/m for m different subsets, the floor of Proposition 4.1.
    """
    subsets = _as_membership(membership)
    return _heaviest(_rows(subsets), _Mass.over(subsets, weights))


def model_prior(identities: Sequence[Hashable], weights: npt.ArrayLike | None = None) -> float:
    """Return the success of guessing the model: the mass of the most common identity among the m.

    An identity is anything that is equal for equal models, such as a digest of the weights.
    """
    if len(identities) == 0:
        raise InvalidSubsets("identities must name at least one model")
    return _heaviest(identities, _Mass.over(identities, weights))


def model_prior_from_votes(votes: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    """Return the success of guessing the model's behaviour, given the labels (n_models, n_probes) on probes.

    Models that agree on all probes may still differ elsewhere. Taking them as one overstates the prior, and
    so the bound: an error to the safe side, which more probes make smaller.
    """
    labels = np.asarray(votes)
    if labels.ndim != 2 or labels.size == 0:
        raise InvalidVotes(f"votes must have shape (n_models, n_probes) and not be empty, got {labels.shape}")
    if not np.issubdtype(labels.dtype, np.integer):
        raise InvalidVotes(f"votes must be integer class indices, got dtype {labels.dtype}")
    return _heaviest((row.tobytes() for row in labels), _Mass.over(labels, weights))


@dataclass(frozen=True)
class _Mass:
    """Weights of the models and what they sum to, so that uniform masses are exact counts divided by m."""

    values: FloatArray
    total: float

    @classmethod
    def over(cls, models: Sequence[Any] | npt.NDArray[Any], weights: npt.ArrayLike | None) -> "_Mass":
        m = len(models)
        if weights is None:
            return cls(np.ones(m), float(m))
        return cls(check_belief(weights, m, "weights"), 1.0)

    def of(self, models: BoolArray) -> float:
        return self.of_values(self.values[models])

    def of_values(self, values: Iterable[float]) -> float:
        return min(1.0, math.fsum(values) / self.total)


def _heaviest(keys: Iterable[Hashable], mass: _Mass) -> float:
    """Return the largest mass of models that share a key."""
    shares: dict[Hashable, list[float]] = {}
    try:
        for key, value in zip(keys, mass.values, strict=True):
            shares.setdefault(key, []).append(value)
    except TypeError as problem:
        raise InvalidSubsets(f"identities must be hashable, such as digests ({problem})") from problem
    return max(mass.of_values(values) for values in shares.values())


def _rows(subsets: BoolArray) -> Iterator[bytes]:
    return (np.packbits(row).tobytes() for row in subsets)


def _inclusion(subsets: BoolArray, weights: npt.ArrayLike | None) -> FloatArray:
    """Return Pr[u in S] of every record."""
    mass = _Mass.over(subsets, weights)
    p = np.empty(subsets.shape[1])
    for chunk in _chunks(len(p)):
        p[chunk] = mass.values @ subsets[:, chunk] / mass.total
    return np.minimum(p, 1.0)


def _best_ball(
    subsets: BoolArray, records: FloatArray, centres: FloatArray, radius: float, mass: _Mass
) -> float:
    """Return the largest Pr[S meets the ball] over balls around the centres."""
    from scipy.spatial import KDTree  # noqa: PLC0415  # half a second that no other prior needs

    tree = KDTree(records)
    containing = np.ascontiguousarray(np.packbits(subsets, axis=0).T)  # per record, the models as bits
    best = 0.0
    for chunk in _chunks(len(centres), _BALLS):
        sizes = tree.query_ball_point(centres[chunk], radius, return_length=True)
        for some in _split(centres[chunk][sizes > 0], sizes[sizes > 0]):
            balls = tree.query_ball_point(some, radius)
            starts = np.cumsum([0, *map(len, balls[:-1])])
            met = np.bitwise_or.reduceat(containing[np.concatenate(balls).astype(np.intp)], starts, axis=0)
            models = np.unpackbits(met, axis=1, count=len(subsets)).astype(np.bool_)
            best = max(best, mass.of(models[np.argmax(models @ mass.values)]))
            if best == 1:
                return best
    return best


def _split(centres: FloatArray, sizes: npt.NDArray[np.intp]) -> Iterator[FloatArray]:
    """Yield the centres in runs whose balls hold about _NEIGHBOURS records together."""
    runs = np.cumsum(sizes) // _NEIGHBOURS
    return (run for run in np.split(centres, np.flatnonzero(np.diff(runs)) + 1) if len(run))


def _chunks(length: int, size: int = _CHUNK) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, length, size))


def _as_membership(membership: npt.ArrayLike) -> BoolArray:
    try:
        given = np.asarray(membership)
    except ValueError as problem:
        raise InvalidSubsets(f"membership must be a rectangular array ({problem})") from problem
    if given.ndim != 2 or given.size == 0:
        raise InvalidSubsets(
            f"membership must have shape (n_models, n_records) and not be empty, got {given.shape}"
        )
    if given.dtype == np.bool_:
        return given
    subsets = np.empty(given.shape, dtype=np.bool_)
    for chunk in _chunks(given.shape[1]):
        part = given[:, chunk]
        subsets[:, chunk] = part == 1
        if not (subsets[:, chunk] | (part == 0)).all():
            raise InvalidSubsets("membership must hold only 0 and 1, or False and True")
    return subsets


def _as_records(records: Sequence[int], n_records: int) -> npt.NDArray[np.intp]:
    chosen = np.asarray(records)
    if chosen.ndim != 1 or chosen.size == 0 or not np.issubdtype(chosen.dtype, np.integer):
        raise InvalidSubsets(f"records must be a non-empty list of record numbers, got {records!r}")
    if chosen.min() < 0 or chosen.max() >= n_records:
        raise InvalidSubsets(
            f"records must be numbers from 0 to {n_records - 1}, found {chosen.min()} to {chosen.max()}"
        )
    return chosen.astype(np.intp)


def _as_points(points: npt.ArrayLike, name: str) -> FloatArray:
    try:
        values = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise InvalidSubsets(f"{name} must be a rectangular array of numbers ({problem})") from problem
    if values.ndim != 2 or values.size == 0 or not np.isfinite(values).all():
        raise InvalidSubsets(
            f"{name} must be finite, of shape (rows, dimensions) and not empty, got {values.shape}"
        )
    return values
