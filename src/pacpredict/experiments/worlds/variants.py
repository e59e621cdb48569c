"""Variants of a record that an attacker asks about: a shadow ensemble chooses those on which the record may decide.

Candidates come in two generations: variants of the record, and variants of the most promising of these. Models of the
shadow ensemble that were trained on the record and those that were not show how far it moves the votes on each of them.
Kept are candidates whose answer the record would change: a third of them whatever it moves, a third where it moves
votes by less than leave-one-out votes notice with 128 models, and a third by less than they notice with 512.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.special import ndtr

from pacpredict.types import BoolArray, FloatArray, IntArray, Votes

N_FIRST, N_PARENTS, N_CHILDREN = 2000, 50, 40  # candidates per target: 2,000 and 2,000
_MOST_SWAPPED = 4  # columns
_FARTHEST = 0.5  # of the way to another record
_UNNOTICED = (np.inf, 0.35, 0.18)  # differences of vote shares
_DEVIATION = 0.12  # of the margin of votes from one ensemble to the next

# Returns how promising candidates are, (n_targets, n), by each of the thresholds above.
Judge = Callable[[pd.DataFrame], list[FloatArray]]


def choose_variants(
    targets: pd.DataFrame, donors: pd.DataFrame, n: int, judge: Judge, seed: int
) -> pd.DataFrame:
    """Return n + 1 rows for each target: the record itself, then its most promising variants."""
    rng = np.random.default_rng(seed)
    first = vary(_repeat(targets, N_FIRST), donors, rng)
    promising = judge(first)
    parents = _take_best(first, promising, N_PARENTS, len(targets))
    second = vary(_repeat(parents, N_CHILDREN), donors, rng)
    both = [np.hstack(parts) for parts in zip(promising, judge(second), strict=True)]
    mixed = _interleave(first, second, len(targets))
    best = _take_best(mixed, both, n, len(targets))
    return _interleave(targets, best, len(targets))


def vary(rows: pd.DataFrame, donors: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return a variant of each row.

    Half of them have one to four columns of another record. The others are moved in all their numbers up to half of
    the way towards another record, whole numbers to the next whole number.
    """
    n = len(rows)
    others = donors.iloc[rng.integers(len(donors), size=n)].reset_index(drop=True)
    is_swapped = rng.random(n) < 0.5
    swapped = _choose_columns(rng, n, rows.shape[1]) & is_swapped[:, None]
    share = np.where(is_swapped, 0.0, rng.uniform(0, _FARTHEST, n))
    columns = {name: _mix(rows[name], others[name], swapped[:, j], share) for j, name in enumerate(rows)}
    return pd.DataFrame(columns)


def _choose_columns(rng: np.random.Generator, n_rows: int, n_columns: int) -> BoolArray:
    """Choose one to four columns in each row."""
    order = rng.random((n_rows, n_columns)).argsort(axis=1)
    wanted = rng.integers(1, min(_MOST_SWAPPED, n_columns) + 1, n_rows)
    return np.asarray(order < wanted[:, None])


def _mix(own: pd.Series, other: pd.Series, swapped: BoolArray, share: FloatArray) -> pd.Series:
    if not pd.api.types.is_numeric_dtype(own):
        return own.where(~swapped, other)
    moved = own + np.where(swapped, 1.0, share) * (other - own)
    return moved.round().astype(own.dtype) if pd.api.types.is_integer_dtype(own) else moved


def judge_votes(votes: Votes, trained: BoolArray, labels: IntArray, n_classes: int) -> list[FloatArray]:
    """Judge candidates (n_targets, n) by how a shadow ensemble votes on them, (n_targets * n, n_models).

    `trained` (n_targets, n_models) says which models were trained on each target, with these `labels`. Were it not in
    the pool, all models would vote as those without it do.
    """
    n_targets, n_models = trained.shape
    by_target = votes.reshape(n_targets, -1, n_models)
    inside, outside = np.empty((2, n_classes, *by_target.shape[:2]))
    for t in range(n_targets):
        for c in range(n_classes):
            is_c = by_target[t] == c
            inside[c, t], outside[c, t] = is_c[:, trained[t]].mean(axis=1), is_c[:, ~trained[t]].mean(axis=1)
    effect = _of(inside, labels) - _of(outside, labels)
    present, absent = _margin((inside + outside) / 2, labels), _margin(outside, labels)
    changes = np.abs(ndtr(present / _DEVIATION) - ndtr(absent / _DEVIATION))
    return [np.where(np.abs(effect) < most, changes, 0.0) for most in _UNNOTICED]


def _of(shares: FloatArray, labels: IntArray) -> FloatArray:
    """Return the shares (n_targets, n) of one class per target."""
    return shares[labels, np.arange(len(labels))]


def _margin(shares: FloatArray, labels: IntArray) -> FloatArray:
    """Return how far the share of a class is above that of the strongest other."""
    others = shares.copy()
    others[labels, np.arange(len(labels))] = -1.0
    return np.asarray(_of(shares, labels) - others.max(axis=0))


def _repeat(rows: pd.DataFrame, n: int) -> pd.DataFrame:
    return rows.iloc[np.repeat(np.arange(len(rows)), n)].reset_index(drop=True)


def _take_best(rows: pd.DataFrame, promising: list[FloatArray], n: int, n_targets: int) -> pd.DataFrame:
    """Take n of the candidates of each target: those that one judgement after the other finds most promising."""
    orders = [np.argsort(-one, axis=1, kind="stable") for one in promising]
    size, chosen = len(rows) // n_targets, []
    for t in range(n_targets):
        in_turn = np.stack([order[t] for order in orders], axis=1).ravel()
        _, first = np.unique(in_turn, return_index=True)
        chosen.append(t * size + in_turn[np.sort(first)][:n])
    return rows.iloc[np.concatenate(chosen)].reset_index(drop=True)


def _interleave(one: pd.DataFrame, other: pd.DataFrame, n_targets: int) -> pd.DataFrame:
    """Put the rows of each target together: first those of one table, then those of the other."""
    both = pd.concat([one, other], ignore_index=True)
    parts = [np.arange(len(rows)).reshape(n_targets, -1) for rows in (one, other)]
    order = np.hstack([parts[0], parts[1] + len(one)]).ravel()
    return both.iloc[order].reset_index(drop=True)
