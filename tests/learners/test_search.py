"""The search for XGBoost's settings: what it tries, what it sees and what it finds."""

import math

import numpy as np
import pytest
import xgboost
from records import labels_of, mixed_pool, mixed_table, quick_fit, recipe
from sklearn.model_selection import StratifiedKFold, cross_val_score

from pacpredict.learners import search as module
from pacpredict.learners.folds import split_units
from pacpredict.learners.learner import TrainingSet
from pacpredict.learners.registry import learner_named
from pacpredict.learners.search import GRID, N_FOLDS, RUNGS, TREES, settings
from pacpredict.learners.xgboost import feature_types
from pacpredict.training.pool import Pool
from pacpredict.training.train import seeds_of

SMALL_GRID = {"max_depth": (1, 3), "learning_rate": (0.05, 0.5), "subsample": (0.6, 1.0)}
SMALL_TREES = (2, 5, 10)


@pytest.fixture
def small(monkeypatch):
    """Make the grid small enough for tests: eight settings, three numbers of trees."""
    monkeypatch.setattr(module, "GRID", SMALL_GRID)
    monkeypatch.setattr(module, "TREES", SMALL_TREES)
    monkeypatch.setattr(module, "RUNGS", ((4, 1), (2, 3), (2, 5)))


def problem(n=120, n_classes=2):
    pool = mixed_pool(n, n_classes)
    return pool.schema.features(pool.rows), pool.labels, feature_types(pool.schema)


def search(features, labels, types, fixed, seed, tune):
    names = list(range(labels.max() + 1))
    return module.search(TrainingSet(features, labels, names), types, fixed, seed, tune)


def accuracy(features, labels, types, setting, seed):
    """Return the cross-validated accuracy of a setting, by scikit-learn and XGBoost's classifier."""
    model = xgboost.XGBClassifier(
        **setting,
        tree_method="hist",
        random_state=seed,
        n_jobs=1,
        feature_types=types,
        enable_categorical=True,
    )
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    return cross_val_score(model, features, labels, cv=folds)


def test_the_grid_is_the_papers():
    """The grid has the paper's 1,458 settings, three numbers of trees included, on five folds."""
    assert math.prod(map(len, GRID.values())) * len(TREES) == 1458
    assert len(settings()) == 486
    assert TREES == (50, 100, 200)
    assert N_FOLDS == 5
    assert GRID == {
        "max_depth": (3, 4, 5),
        "learning_rate": (0.01, 0.05, 0.1),
        "subsample": (0.6, 0.8, 1.0),
        "colsample_bytree": (0.8, 1.0),
        "min_child_weight": (1, 5, 10),
        "gamma": (0, 0.1, 0.2),
    }


def test_halving_needs_a_small_fraction_of_the_fits():
    """Thirty fits in place of 2,430, as the comment beside the rungs says."""
    fits, before = 0, 0
    for entering, folds in RUNGS:
        fits, before = fits + entering * (folds - before), folds
    assert fits == 30
    assert N_FOLDS * len(settings()) == 2430


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("tune", ["halving", "full"])
def test_what_is_chosen_is_in_the_grid_and_repeats(tune, n_classes, small):
    """Both searches choose one of the settings, the same one each time."""
    features, labels, types = problem(n_classes=n_classes)
    found = [search(features, labels, types, {}, 3, tune) for _ in range(2)]
    assert found[0] == found[1]
    assert found[0].pop("n_estimators") in SMALL_TREES
    assert found[0] in settings()


def test_full_finds_the_best_of_the_grid(small):
    """No setting of the grid is right more often on the folds, counted by scikit-learn's cross-validation."""
    features, labels, types = problem(150)
    grid = [{**setting, "n_estimators": n} for setting in settings() for n in SMALL_TREES]
    right = [accuracy(features, labels, types, setting, 3).mean() for setting in grid]
    found = grid.index(search(features, labels, types, {}, 3, "full"))
    assert right[found] == pytest.approx(max(right), abs=1e-9)
    assert right[found] > min(right) + 0.02  # it is not that all are equal


def test_halving_is_nearly_as_good(small):
    """Halving ends with a setting whose accuracy is within three points of the best, with a half of the fits."""
    losses = []
    for seed in range(2):
        pool = mixed_pool(150, seed=seed)
        features, labels, types = pool.schema.features(pool.rows), pool.labels, feature_types(pool.schema)
        full, halving = (
            accuracy(features, labels, types, search(features, labels, types, {}, seed, tune), seed).mean()
            for tune in ("full", "halving")
        )
        losses.append(full - halving)
    assert min(losses) >= -1e-9
    assert np.mean(losses) < 0.03


def test_halving_keeps_the_better_half():
    """Of settings whose scores are known, each rung keeps the best so far, and the last survivor wins."""
    scores = np.random.default_rng(0).integers(0, 100, (40, 5))
    asked = set()

    def score(setting, fold):
        asked.add((setting, fold))
        return scores[setting, fold : fold + 1]

    chosen = module._halving(score, 40, 5, seed=1)
    rungs = [{setting for setting, fold in asked if fold == last} for last in (0, 2, 4)]
    assert [len(rung) for rung in rungs] == [16, 5, 2]
    assert min(scores[list(rungs[1]), 0]) >= max(scores[s, 0] for s in rungs[0] - rungs[1])
    assert min(scores[list(rungs[2]), :3].sum(axis=1)) >= max(
        scores[s, :3].sum() for s in rungs[1] - rungs[2]
    )
    assert scores[chosen].sum() == max(scores[s].sum() for s in rungs[2])


def test_the_first_trees_are_the_smaller_model():
    """What a model with fewer trees predicts is what the first trees of a larger one predict, subsampling included."""
    features, labels, types = problem()
    common = {"max_depth": 3, "subsample": 0.6, "colsample_bytree": 0.8, "seed": 5, "nthread": 1}
    options = {"feature_types": types, "enable_categorical": True, "nthread": 1}
    data = xgboost.QuantileDMatrix(features, labels, **options)
    goal = {"objective": "binary:logistic", "tree_method": "hist"}
    large = xgboost.train({**common, **goal}, data, 20)
    for n in (1, 5, 10):
        small = xgboost.train({**common, **goal}, data, n)
        assert np.array_equal(large.predict(data, iteration_range=(0, n)), small.predict(data))


def test_each_model_searches_on_its_subset_alone(small):
    """Changing every record outside of a subset changes neither the settings that it chose nor its model."""
    table = mixed_table(100)
    labels = labels_of(table)
    learner = learner_named("xgboost", {}, "halving")
    first = quick_fit(Pool.of(table, labels), learner)
    for i in range(2):
        outside = np.setdiff1d(np.arange(len(first.pool)), first.trained_on(i))
        changed, other = table.copy(), labels.copy()
        changed.loc[outside, "age"] = 50
        changed.loc[outside, "grade"] = "mid"
        other[outside] = "a"
        second = quick_fit(Pool.of(changed, other), learner)
        assert second.models[i].model == first.models[i].model
        assert second.models[i].notes == first.models[i].notes
        assert [one.model for one in second.models] != [one.model for one in first.models]


def test_the_fit_has_the_settings_that_the_search_found(small):
    """The notes of a model are what a search on its records with its seed finds, beside what the user fixed."""
    pool = mixed_pool(100)
    fixed = {
        "reg_lambda": 2.0,
        "n_jobs": 2,
        "random_state": 9,
        "enable_categorical": True,
        "n_estimators": 77,
    }
    fitted = quick_fit(pool, learner_named("xgboost", fixed, "halving"), recipe(seed=4))
    seed, chosen = seeds_of(4, 4)[0], fitted.trained_on(0)
    features = pool.schema.features(pool.rows)[chosen]
    own = np.unique(pool.labels[chosen], return_inverse=True)[1]
    found = search(features, own, feature_types(pool.schema), fixed, seed, "halving")
    assert fitted.models[0].notes == {**fixed, **found}
    assert found["n_estimators"] in SMALL_TREES


@pytest.mark.parametrize("tune", ["halving", "full"])
def test_subsets_smaller_than_the_folds(tune, small):
    """A subset of three records is searched with three folds instead of failing."""
    features, _, types = problem(20)
    found = search(features[:3], np.array([0, 1, 0]), types, {}, 1, tune)
    assert found["n_estimators"] in SMALL_TREES


def test_a_search_holds_out_whole_persons(small, monkeypatch):
    """Records of one person are all tried or all trained on; without that, settings that learn persons by heart win."""
    features, labels, types = problem(60)
    units = np.repeat(np.arange(12), 5)
    seen = []
    monkeypatch.setattr(module, "split_units", lambda *args: seen.append(split_units(*args)) or seen[-1])
    records = TrainingSet(features, labels, [0, 1], units=units)
    assert module.search(records, types, {}, 1, "halving")["n_estimators"] in SMALL_TREES
    assert len(seen[0]) == 5
    for held_out in seen[0]:
        assert not set(units[held_out]) & set(units[~held_out])
    alone = TrainingSet(features[:6], np.arange(6) % 2, [0, 1], units=np.zeros(6, int))
    assert module.search(alone, types, {}, 1, "halving")["n_estimators"] in SMALL_TREES


def test_rare_classes_are_searched(small):
    """A class of which there are fewer records than folds does not stop a search."""
    features, labels, types = problem(40)
    labels = labels.copy()
    labels[3] = 2
    assert search(features, labels, types, {}, 1, "halving")["n_estimators"] in SMALL_TREES
