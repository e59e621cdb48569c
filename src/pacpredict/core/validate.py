"""Checks of arguments that come from outside; those of single numbers are in scalars.py, free of NumPy."""

import math

import numpy as np
import numpy.typing as npt

from pacpredict.core.compiled import compiled
from pacpredict.core.scalars import check_budget, check_leakage, check_model_count, check_prior
from pacpredict.exceptions import InvalidBelief, InvalidOutputs, InvalidVotes
from pacpredict.types import FloatArray, Votes

__all__ = [
    "check_belief",
    "check_budget",
    "check_leakage",
    "check_model_count",
    "check_outputs",
    "check_prior",
    "check_votes",
]

# As many classes as a vote can name.
MOST_CLASSES = int(np.iinfo(np.int16).max)

# Sums of up to thousands of rounded probabilities differ from 1 by far less; a forgotten
# normalisation by far more.
BELIEF_SUM_TOLERANCE = 1e-6


def check_belief(belief: npt.ArrayLike, m: int | None = None, name: str = "belief") -> FloatArray:
    """Return probabilities over m models that sum to 1 (renormalised to the last bit)."""
    p = _as_array(belief, name, InvalidBelief)
    if p.ndim != 1 or p.size == 0 or (m is not None and p.size != m):
        expected = "(n_models,)" if m is None else f"({m},)"
        raise InvalidBelief(f"{name} must have shape {expected}, got {p.shape}")
    if not np.isfinite(p).all() or (p < 0).any():
        bad = _first(p, ~((p >= 0) & (p < np.inf)))
        raise InvalidBelief(f"{name} must hold finite probabilities of at least 0; found {bad}")
    total = math.fsum(p)
    if abs(total - 1) > BELIEF_SUM_TOLERANCE:
        raise InvalidBelief(f"{name} must sum to 1, but sums to {total!r}; divide it by its sum")
    return p / total


def check_votes(votes: npt.ArrayLike, n_classes: int, m: int | None = None) -> Votes:
    """Return a copy of the labels as a (n_queries, m) matrix; a single query of shape (m,) becomes one row.

    A copy, because the same votes must serve calibration, release and update, whatever the caller does meanwhile.
    """
    try:
        v = np.array(votes, order="C")
    except ValueError as problem:
        raise InvalidVotes(f"votes must be a rectangular array of class indices ({problem})") from problem
    if v.ndim == 1:
        v = v[None, :]
    if v.ndim != 2 or v.size == 0:
        raise InvalidVotes(
            "votes must have shape (n_models,) or (n_queries, n_models) and not be empty, "
            f"got {np.shape(votes)}"
        )
    if m is not None and v.shape[1] != m:
        raise InvalidVotes(f"votes must come from all {m} models, got {v.shape[1]} columns")
    if v.dtype.kind not in "iu":
        raise InvalidVotes(
            f"votes must be integer class indices, got dtype {v.dtype}; encode the labels first"
        )
    if n_classes > MOST_CLASSES:
        raise InvalidVotes(f"there can be at most {MOST_CLASSES} classes, not {n_classes}")
    if v.dtype != np.int16:
        _check_range(int(v.min()), int(v.max()), n_classes)
        v = v.astype(np.int16)
    elif not are_labels(v, n_classes):
        _check_range(int(v.min()), int(v.max()), n_classes)
    return v


def _check_range(low: int, high: int, n_classes: int) -> None:
    if low < 0 or high >= n_classes:
        raise InvalidVotes(
            f"votes must be class indices from 0 to {n_classes - 1}, found {low if low < 0 else high}; "
            "check n_classes and the label encoding"
        )


@compiled
def are_labels(votes: Votes, n_classes: int) -> bool:
    """Check the range of votes; several times as fast as NumPy for a single query."""
    wrong = 0
    for q in range(votes.shape[0]):
        for i in range(votes.shape[1]):
            wrong += (votes[q, i] < 0) | (votes[q, i] >= n_classes)
    return wrong == 0


def check_outputs(outputs: npt.ArrayLike, m: int | None = None) -> FloatArray:
    """Return finite real outputs of shape (m, d)."""
    y = _as_array(outputs, "outputs", InvalidOutputs)
    if y.ndim != 2 or y.size == 0 or (m is not None and y.shape[0] != m):
        expected = "(n_models, n_outputs)" if m is None else f"({m}, n_outputs)"
        raise InvalidOutputs(f"outputs must have shape {expected} and not be empty, got {y.shape}")
    if not np.isfinite(y).all():
        raise InvalidOutputs(f"outputs must be finite; found {_first(y, ~np.isfinite(y))}")
    return np.ascontiguousarray(y)


def _as_array(values: npt.ArrayLike, name: str, error: type[ValueError]) -> FloatArray:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise error(f"{name} must be a rectangular array of real numbers ({problem})") from problem


def _first(values: FloatArray, bad: npt.NDArray[np.bool_]) -> str:
    position = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{values[position]} at index {position[0] if len(position) == 1 else position}"
