"""The paper's search for XGBoost's settings, by five-fold cross-validation on the subset alone (appendix D).

The chosen settings are part of the model: they are a function of the subset, so each of the m models searches on its
own subset, and nothing is learned from records outside of it.

The grid has 1,458 settings. Numbers of trees need no fits of their own: the first 50 trees of a model with 200 are the
model with 50. What is left, 486 settings, is searched in full, or by successive halving (Jamieson and Talwalkar, 2016):
a random sample of settings is tried on one fold, the better ones on more folds, and the last two on all five.
"""

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from pacpredict.learners.folds import split_units
from pacpredict.learners.learner import TrainingSet
from pacpredict.learners.registry import Tune
from pacpredict.types import FloatArray, IntArray

GRID: dict[str, tuple[float, ...]] = {
    "max_depth": (3, 4, 5),
    "learning_rate": (0.01, 0.05, 0.1),
    "subsample": (0.6, 0.8, 1.0),
    "colsample_bytree": (0.8, 1.0),
    "min_child_weight": (1, 5, 10),
    "gamma": (0, 0.1, 0.2),
}
TREES = (50, 100, 200)
N_FOLDS = 5
# (settings that enter, folds they have been tried on by the end): 16 + 5 * 2 + 2 * 2 = 30 fits in place of 2,430.
RUNGS = ((16, 1), (5, 3), (2, 5))

# Of a setting on a fold: how many records each number of trees gets right, by weight.
Score = Callable[[int, int], FloatArray]


def settings() -> list[dict[str, float]]:
    """Return the grid without the numbers of trees."""
    return [dict(zip(GRID, values, strict=True)) for values in product(*GRID.values())]


def search(
    records: TrainingSet, types: list[str], fixed: Mapping[str, Any], seed: int, tune: Tune
) -> dict[str, Any]:
    """Return the setting, n_estimators included, that is right most often on the folds; the first among equals."""
    grid = settings()
    n_folds = min(N_FOLDS, len(np.unique(_units(records))))
    score = _memory(_scorer(records, types, grid, fixed, seed, n_folds))
    best = _full(score, len(grid), n_folds) if tune == "full" else _halving(score, len(grid), n_folds, seed)
    right = _total(score, best, n_folds)
    return {**grid[best], "n_estimators": TREES[int(np.argmax(right))]}


def _full(score: Score, n_settings: int, n_folds: int) -> int:
    return max(range(n_settings), key=lambda setting: _total(score, setting, n_folds).max())


def _halving(score: Score, n_settings: int, n_folds: int, seed: int) -> int:
    alive = np.random.default_rng(seed).permutation(n_settings)[: RUNGS[0][0]].tolist()
    for (_, tried), n_survivors in zip(RUNGS, [*(n for n, _ in RUNGS[1:]), 1], strict=True):
        totals = {setting: _total(score, setting, min(tried, n_folds)).max() for setting in alive}
        alive = sorted(alive, key=lambda setting: -totals[setting])[:n_survivors]
    return int(alive[0])


def _total(score: Score, setting: int, n_folds: int) -> FloatArray:
    return np.asarray(np.sum([score(setting, fold) for fold in range(n_folds)], axis=0), np.float64)


def _memory(score: Score) -> Score:
    known: dict[tuple[int, int], FloatArray] = {}

    def remembered(setting: int, fold: int) -> FloatArray:
        if (setting, fold) not in known:
            known[setting, fold] = score(setting, fold)
        return known[setting, fold]

    return remembered


def _scorer(
    records: TrainingSet,
    types: list[str],
    grid: list[dict[str, float]],
    fixed: Mapping[str, Any],
    seed: int,
    n_folds: int,
) -> Score:
    """Keep each fold as XGBoost's binned matrix: it is built once and serves every setting."""
    import xgboost  # noqa: PLC0415  # an extra

    features, labels = records.prepared, records.labels
    weights = np.ones(len(labels)) if records.weights is None else records.weights
    n_classes = int(labels.max()) + 1
    goal: dict[str, Any] = {"objective": "binary:logistic"}
    if n_classes > 2:
        goal = {"objective": "multi:softprob", "num_class": n_classes}
    # Among the parameters of the classifier are some that are not XGBoost's own, which it would complain about.
    known = xgboost.XGBClassifier(**fixed).get_xgb_params()
    native = {name: known[name] for name in fixed if name in known and name not in {"n_jobs", "random_state"}}
    common = {**native, **goal, "tree_method": "hist", "nthread": 1, "seed": seed}
    options = {"feature_types": types, "enable_categorical": True, "nthread": 1}
    folds = []
    for held_out in split_units(labels, _units(records), n_folds, seed):
        train = ~held_out
        counted = {} if records.weights is None else {"weight": weights[train]}
        trained_on = xgboost.QuantileDMatrix(features[train], labels[train], **counted, **options)
        tried_on = xgboost.QuantileDMatrix(features[held_out], ref=trained_on, **options)
        folds.append((trained_on, tried_on, labels[held_out], weights[held_out]))

    def score(setting: int, fold: int) -> FloatArray:
        trained_on, tried_on, truth, counts = folds[fold]
        booster = xgboost.train({**common, **grid[setting]}, trained_on, max(TREES))
        answers = [_decide(booster.predict(tried_on, iteration_range=(0, n))) for n in TREES]
        return np.array([counts[answer == truth].sum() for answer in answers])

    return score


def _units(records: TrainingSet) -> IntArray:
    """Return whose each record is; where all are one's, each counts by itself, since something must be held out."""
    if records.units is None or len(np.unique(records.units)) < 2:
        return np.arange(len(records.labels))
    return records.units


def _decide(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    return np.asarray(scores.argmax(axis=1) if scores.ndim == 2 else scores > 0.5, np.int64)
