"""How well naming something close to a record of the training set succeeds before any answer (appendix C)."""

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from pacpredict.core.masses import Mass, as_membership, chunks, holders_of
from pacpredict.exceptions import InvalidSubsets
from pacpredict.types import BoolArray, FloatArray

# Balls sized at a time; few, because the first one that meets every subset ends the search.
_BALLS = 1024
# Neighbours listed at a time; a list of Python integers takes some 36 bytes for each.
_NEIGHBOURS = 1_000_000
# Distances are rounded, and a record at exactly the distance counts. In fewer than a million dimensions
# rounding is far below this, and a radius that is a little too large errs to the safe side.
_RADIUS_SLACK = 1 + 1e-9


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
        (n_models, n_records): of each record whether the i-th subset has its unit.
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
    subsets = as_membership(membership)
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
    return _best_ball(subsets, records, centres, radius, Mass.over(subsets, weights))


def _best_ball(
    subsets: BoolArray, records: FloatArray, centres: FloatArray, radius: float, mass: Mass
) -> float:
    """Return the largest Pr[S meets the ball] over balls around the centres."""
    from scipy.spatial import KDTree  # noqa: PLC0415  # half a second that no other prior needs

    tree = KDTree(records)
    holders = holders_of(subsets)
    best = 0.0
    for chunk in chunks(len(centres), _BALLS):
        sizes = tree.query_ball_point(centres[chunk], radius, return_length=True)
        for some in _split(centres[chunk][sizes > 0], sizes[sizes > 0]):
            balls = tree.query_ball_point(some, radius)
            starts = np.cumsum([0, *map(len, balls[:-1])])
            best = max(best, mass.heaviest_run(holders, np.concatenate(balls).astype(np.intp), starts))
            if best == 1:
                return best
    return best


def _split(centres: FloatArray, sizes: npt.NDArray[np.intp]) -> Iterator[FloatArray]:
    """Yield the centres in runs whose balls hold about _NEIGHBOURS records together."""
    runs = np.cumsum(sizes) // _NEIGHBOURS
    return (run for run in np.split(centres, np.flatnonzero(np.diff(runs)) + 1) if len(run))


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
