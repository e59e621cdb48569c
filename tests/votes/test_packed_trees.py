"""Packed trees vote as the libraries that grew them predict, on every row."""

import io
import json
import os
import signal
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from pacpredict.exceptions import InvalidInput, InvalidModel
from pacpredict.votes import column_kernel, packed_trees, tree_kernel
from pacpredict.votes.pack_sklearn import pack_sklearn
from pacpredict.votes.packed_trees import PackedTrees
from pacpredict.votes.trees import TreeModel, pack

xgboost = pytest.importorskip("xgboost")

from pacpredict.votes.pack_xgboost import pack_xgboost  # noqa: E402

FORESTS = (RandomForestClassifier, ExtraTreesClassifier, DecisionTreeClassifier)
LARGEST_SINGLE = float(np.finfo(np.float32).max)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Libraries that wait for a second thread on a busy machine wait long."""
    with threadpool_limits(1):
        yield


def training_data(rng, n_rows=300, n_classes=2, missing=0.0, category_counts=(), n_numbers=4):
    """Return rows whose last columns are category codes, and labels that depend on all columns."""
    numbers = rng.normal(size=(n_rows, n_numbers))
    numbers[:, 0] = np.round(numbers[:, 0], 1)  # few values, so that rows lie on thresholds
    codes = [rng.integers(count, size=n_rows) for count in category_counts]
    x = np.column_stack([numbers, *codes]).astype(float)
    score = (
        x[:, :n_numbers].sum(axis=1) + sum(np.sin(column) for column in codes) + 0.5 * rng.normal(size=n_rows)
    )
    x[rng.random(x.shape) < missing] = np.nan
    edges = np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1])
    y = np.searchsorted(edges, score)
    y[:n_classes] = np.arange(n_classes)  # every class occurs
    return x, y


def probes(packed, x, rng, n_categorical=0, *, infinite=True, n_rows=300):
    """Return rows with values of training, on thresholds, one float beside them, far away, missing and unknown."""
    rows = x[rng.integers(len(x), size=n_rows)].copy()
    for f in range(packed.n_features):
        cuts = packed.cuts[packed.cut_starts[f] : packed.cut_starts[f + 1]]
        finite = np.append(cuts[np.isfinite(cuts)], 0.0)
        if f >= packed.n_features - n_categorical:
            pool = np.concatenate([finite, np.arange(300), [-1, -0.5, -7, 0.5, 2.75, 1e6, 2.0**24, 2.0**31]])
        else:
            single = finite.astype(np.float32)
            beside = [np.nextafter(single, np.float32(end)).astype(float) for end in (-np.inf, np.inf)]
            between = [(finite + other) / 2 for other in beside]  # rounds to one of them in float32
            pool = np.concatenate([finite, np.nextafter(finite, -np.inf), np.nextafter(finite, np.inf)])
            pool = np.concatenate([pool, *beside, *between, [1e30, -1e30, 1e-46, -1e-46]])
            if infinite:
                far = [np.inf, 1e300, LARGEST_SINGLE]
                pool = np.concatenate([pool, far, np.negative(far)])
        chosen = rng.random(n_rows) < 0.5
        rows[chosen, f] = rng.choice(pool, size=chosen.sum())
    rows[rng.random(rows.shape) < 0.05] = np.nan
    return rows


def fit_xgboost(x, y, n_categorical=0, **options):
    kinds = ["q"] * (x.shape[1] - n_categorical) + ["c"] * n_categorical
    options = {"n_estimators": 10, "n_jobs": 1, **options}
    if n_categorical:
        options |= {"enable_categorical": True, "feature_types": kinds}
    return xgboost.XGBClassifier(**options).fit(x, y)


def assert_same_labels(packed, models, rows):
    expected = np.column_stack([model.predict(rows) for model in models])
    for one in every_way(packed):
        votes = one.votes(rows)
        assert votes.dtype == np.int16
        np.testing.assert_array_equal(votes, expected)


def every_way(packed):
    """Return the same trees as they vote by words alone, by columns, and if they can be filled up as perfect trees.

    The latter two one row after the other, and many rows at once.
    """
    columns = packed.columns
    assert columns is not None
    ways = [packed, packed.voting_by(None), packed.voting_by(replace(columns, least_swept=sys.maxsize))]
    if columns.n_leaves <= column_kernel.MOST_SWEPT_LEAVES:
        ways.append(packed.voting_by(replace(columns, least_swept=1)))
    if (perfect := packed.perfect) is not None:
        ways += [packed.voting_by(columns, replace(perfect, least_swept=n)) for n in (1, sys.maxsize)]
    return ways


XGBOOST_GRID = [
    *({"n_classes": k, "max_depth": d} for k in (2, 3, 10) for d in (1, 2, 6, 12)),
    {"max_depth": 0, "n_estimators": 3},
    {"n_classes": 3, "max_depth": 0, "grow_policy": "lossguide", "max_leaves": 60},
    *({"n_classes": k, "missing": 0.2} for k in (2, 3)),
    *({"n_classes": k, "missing": 0.1, "counts": (3, 9)} for k in (2, 10)),
    {"counts": (90, 5, 200), "missing": 0.1, "n_rows": 900},
    {"n_classes": 3, "counts": (6, 9), "max_cat_to_onehot": 20},
    {"counts": (70,), "max_cat_to_onehot": 100, "n_rows": 600},
    {"n_classes": 3, "counts": (70,), "max_cat_threshold": 4},
    {"n_classes": 3, "num_parallel_tree": 3, "subsample": 0.5},
    *({"n_classes": k, "tree_method": method} for k in (2, 3) for method in ("exact", "approx")),
    *({"n_classes": k, "objective": "multi:softmax"} for k in (3,)),
    *({"n_classes": k, "base_score": 0.3} for k in (2, 3)),
    *({"n_classes": k, "learning_rate": 1e-7, "base_score": 0.5} for k in (2, 3, 10)),
    *({"n_classes": k, "learning_rate": 1e-8, "base_score": 0.5, "reg_lambda": 0.0} for k in (2, 3, 10)),
    {"n_estimators": 1, "max_depth": 1},
    {"n_classes": 3, "gamma": 1e9},  # trees of one leaf
]


@pytest.mark.parametrize("case", XGBOOST_GRID, ids=str)
def test_xgboost_labels(case):
    """XGBoost: binary and multi-class, all depths, missing values, both kinds of categorical splits, near ties."""
    options = dict(case)
    shape = {name: options.pop(name) for name in ("n_classes", "missing", "n_rows") if name in options}
    counts = options.pop("counts", ())
    rng = np.random.default_rng(7)
    models = []
    for _ in range(3):
        x, y = training_data(rng, category_counts=counts, **shape)
        models.append(fit_xgboost(x, y, len(counts), **options))
    packed = pack_xgboost([model.get_booster() for model in models])
    rows = probes(packed, x, rng, len(counts))
    assert_same_labels(packed, models, rows)
    with np.errstate(over="ignore"):
        assert_same_labels(packed, models, rows.astype(np.float32))


def test_xgboost_trained_on_a_data_frame():
    """The codes of a categorical column of pandas are the codes of a row."""
    pandas = pytest.importorskip("pandas")
    x, y = training_data(np.random.default_rng(4), 600, 3, category_counts=(8,))
    frame = pandas.DataFrame(x[:, :4], columns=list("abcd"))
    words = np.array(["kiwi", "fig", "apple", "pear", "plum", "date", "lime", "nut"])
    frame["e"] = pandas.Categorical(words[x[:, 4].astype(int)])
    model = xgboost.XGBClassifier(n_estimators=5, n_jobs=1, enable_categorical=True).fit(frame[::2], y[::2])
    rows = np.column_stack([frame.iloc[:, :4], frame["e"].cat.codes])
    votes = pack_xgboost([model.get_booster()]).votes(rows)
    np.testing.assert_array_equal(votes[:, 0], model.predict(frame))


def test_xgboost_margin_of_one_half():
    """The label changes where XGBoost's float32 probability passes 1/2, not where the margin passes 0."""
    x, y = training_data(np.random.default_rng(0))
    labels = []
    for exponent in range(-30, -16):
        for factor in (1.0, 1.25, 1.5, 1.75):
            score = 0.5 + factor * 2.0**exponent
            model = fit_xgboost(x, y, n_estimators=1, learning_rate=1e-12, base_score=score)
            votes = pack_xgboost([model.get_booster()]).votes(x[:20])
            np.testing.assert_array_equal(votes[:, 0], model.predict(x[:20]))
            labels.append(votes[0, 0])
    assert set(labels) == {0, 1}


def with_base_score(booster, score):
    document = json.loads(booster.save_raw("json"))
    document["learner"]["learner_model_param"]["base_score"] = f"[{score}]"
    other = xgboost.Booster({"nthread": 1})
    other.load_model(bytearray(json.dumps(document).encode()))
    return other


def test_xgboost_sums_in_single_precision():
    """Where a row is on the edge between two labels, the rounding of every addition decides."""
    x, y = training_data(np.random.default_rng(6))
    rows = x[:30]
    model = fit_xgboost(x, y, n_estimators=40, max_depth=3, base_score=0.5)
    even = (1 / (1 + np.exp(model.predict(rows, output_margin=True)))).astype(np.float32)
    near = even.view(np.int32)[:, None] + np.arange(-3, 4, dtype=np.int32)
    scores = np.unique(near.view(np.float32)).tolist()
    boosters = [with_base_score(model.get_booster(), score) for score in scores]
    expected = np.column_stack([booster.inplace_predict(rows) > 0.5 for booster in boosters])
    np.testing.assert_array_equal(pack_xgboost(boosters).votes(rows), expected)


FOREST_GRID = [
    *({"n_classes": k, "max_depth": d} for k in (2, 3, 10) for d in (1, 6, None)),
    *({"n_classes": k, "missing": 0.15} for k in (2, 3)),
    {"n_classes": 3, "max_depth": 2, "n_estimators": 7},
    {"n_classes": 2, "n_estimators": 2},  # ties of 1/2 and 1/2
    {"n_classes": 3, "n_estimators": 6, "class_weight": "balanced"},
]


@pytest.mark.parametrize("kind", FORESTS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("case", FOREST_GRID, ids=str)
def test_forest_labels(kind, case):
    """Forests and trees: mean probabilities, first of ties, rows rounded to float32, missing values."""
    options = {"n_estimators": 10, **case}
    shape = {name: options.pop(name) for name in ("n_classes", "missing") if name in options}
    if kind is DecisionTreeClassifier:
        del options["n_estimators"]
    rng = np.random.default_rng(11)
    models = []
    for seed in range(3):
        x, y = training_data(rng, **shape)
        models.append(kind(random_state=seed, **options).fit(x, y))
    packed = pack_sklearn(models)
    assert_same_labels(packed, models, probes(packed, x, rng, infinite=False))


def test_means_are_compared_not_sums():
    """A forest divides before it looks for the largest: two sums can have one mean, and then the first class wins."""
    sums = 1.5 + np.spacing(1.5) * np.arange(60)[:, None] + [0, np.spacing(1.5)]
    models = [TreeModel((), pair, np.arange(2), divisor=3.0) for pair in sums]
    expected = np.argmax(sums / 3, axis=1)
    assert set(expected) == {0, 1}
    np.testing.assert_array_equal(PackedTrees(**pack(models, 1, single=True)).votes([0.0])[0], expected)


BOOSTING_GRID = [
    *({"n_classes": k, "max_depth": d} for k in (2, 3, 10) for d in (1, 3, 12, None)),
    *({"n_classes": k, "missing": 0.2} for k in (2, 3)),
    *({"n_classes": k, "missing": 0.1, "counts": (3, 9)} for k in (2, 3)),
    {"counts": (90, 5, 200), "n_rows": 900, "missing": 0.05},
    {"n_classes": 3, "counts": (1, 2), "missing": 0.3},
    {"counts": (70,), "n_rows": 600, "max_bins": 100},
    {"n_classes": 2, "min_samples_leaf": 200},  # trees of one leaf
    {"n_classes": 3, "learning_rate": 1e-16},
]


@pytest.mark.parametrize("case", BOOSTING_GRID, ids=str)
def test_histogram_boosting_labels(case):
    """Histogram gradient boosting: float64 thresholds, infinite ones, bitsets, categories that one model never saw."""
    options = {"max_iter": 8, **case}
    shape = {name: options.pop(name) for name in ("n_classes", "missing", "n_rows") if name in options}
    counts = options.pop("counts", ())
    rng = np.random.default_rng(13)
    models = []
    for _ in range(3):
        x, y = training_data(rng, category_counts=counts, **shape)
        categorical = list(range(x.shape[1] - len(counts), x.shape[1])) or None
        models.append(HistGradientBoostingClassifier(categorical_features=categorical, **options).fit(x, y))
    packed = pack_sklearn(models)
    assert_same_labels(packed, models, probes(packed, x, rng, len(counts)))


def test_categories_before_numbers_and_of_any_value():
    """Histogram gradient boosting moves categorical columns to the front and takes any number as a code."""
    rng = np.random.default_rng(5)
    x, y = training_data(rng, n_rows=600, category_counts=(6,), missing=0.1)
    x = x[:, [0, 4, 1, 2, 3]]
    x[:, 1] = x[:, 1] * 37.5 - 100
    models = [
        HistGradientBoostingClassifier(categorical_features=[1], max_iter=5).fit(x[k::2], y[k::2])
        for k in (0, 1)
    ]
    packed = pack_sklearn(models)
    rows = np.repeat(x, 3, axis=0)
    rows[:, 1] += rng.choice([0, 0, 37.5, 0.5], size=len(rows))
    assert_same_labels(packed, models, rows)


ANY_FLOAT = st.floats(allow_nan=True, allow_infinity=True)
CODE = st.one_of(st.integers(-3, 40).map(float), st.just(np.nan), st.floats(0, 50))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 2**32 - 1),
    n_classes=st.sampled_from([2, 3, 5]),
    n_trees=st.integers(1, 6),
    depth=st.integers(1, 12),
    missing=st.sampled_from([0.0, 0.3]),
    row=st.tuples(ANY_FLOAT, ANY_FLOAT, CODE),
)
def test_any_xgboost_model_and_row(seed, n_classes, n_trees, depth, missing, row):
    """Whatever was trained and whatever is asked, packed and original agree."""
    rng = np.random.default_rng(seed)
    x, y = training_data(rng, 80, n_classes, missing, (int(rng.integers(2, 40)),), n_numbers=2)
    model = fit_xgboost(x, y, 1, n_estimators=n_trees, max_depth=depth)
    packed = pack_xgboost([model.get_booster()])
    assert_same_labels(packed, [model], np.vstack([row, probes(packed, x, rng, 1, n_rows=40)]))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 2**32 - 1),
    n_classes=st.sampled_from([2, 3, 5]),
    n_trees=st.integers(1, 6),
    depth=st.integers(1, 12),
    missing=st.sampled_from([0.0, 0.3]),
    row=st.tuples(ANY_FLOAT, ANY_FLOAT, CODE),
)
def test_any_sklearn_model_and_row(seed, n_classes, n_trees, depth, missing, row):
    """Likewise for scikit-learn; its forests refuse infinity, so they are asked for something smaller."""
    rng = np.random.default_rng(seed)
    x, y = training_data(rng, 80, n_classes, missing, (int(rng.integers(2, 40)),), n_numbers=2)
    forest = RandomForestClassifier(n_trees, max_depth=depth, random_state=0).fit(x, y)
    boosted = HistGradientBoostingClassifier(
        max_iter=n_trees, max_depth=depth, categorical_features=[2], min_samples_leaf=3, early_stopping=False
    ).fit(x, y)
    packed = pack_sklearn([boosted])
    assert_same_labels(packed, [boosted], np.vstack([row, probes(packed, x, rng, 1, n_rows=40)]))
    packed = pack_sklearn([forest])
    rows = np.vstack([np.clip(row, -1e38, 1e38), probes(packed, x, rng, infinite=False, n_rows=40)])
    assert_same_labels(packed, [forest], rows)


@pytest.fixture(scope="module")
def ensemble():
    """Return an ensemble of XGBoost models with missing values and categories, and rows to ask."""
    rng = np.random.default_rng(3)
    x, y = training_data(rng, 600, 3, 0.1, (70,))
    models = [fit_xgboost(x[k::5], y[k::5], 1, n_estimators=3 + k) for k in range(5)]
    packed = pack_xgboost([model.get_booster() for model in models])
    return packed, models, probes(packed, x, rng, 1, n_rows=700)


def test_models_may_differ_in_size(ensemble):
    """Models with 9 to 21 trees stand side by side."""
    packed, models, rows = ensemble
    assert np.diff(packed.tree_starts).tolist() == [9, 12, 15, 18, 21]
    assert_same_labels(packed, models, rows)
    assert repr(packed) == "PackedTrees(n_models=5, n_features=5, n_trees=75)"


def test_votes_do_not_depend_on_the_batch(ensemble, monkeypatch):
    """One row at a time, any block, several threads: the same votes."""
    for name in ("LEAST_WALKS", "LEAST_PERFECT_WALKS"):
        monkeypatch.setattr(packed_trees, name, 1)
    _, _, rows = ensemble
    together = ensemble[0].votes(rows)
    for packed in every_way(ensemble[0]):
        np.testing.assert_array_equal(np.vstack([packed.votes(row) for row in rows]), together)
        for size in (2, 3, 7, 8, 9, 63, 64, 65, 127, 128, 129, 500):
            np.testing.assert_array_equal(packed.votes(rows[:size]), together[:size])
        np.testing.assert_array_equal(packed.votes(rows, n_threads=3), together)
        np.testing.assert_array_equal(packed.votes(np.asfortranarray(rows)), together)
        assert packed.votes(rows[:0]).shape == (0, 5)
        for few in (1, 5):
            np.testing.assert_array_equal(packed.votes(rows[:few], n_threads=3), together[:few])


def test_little_work_stays_in_one_thread(ensemble, monkeypatch):
    """Rows are split among threads once each of them has enough to do, and never among more."""
    packed, _, rows = ensemble
    split = []
    monkeypatch.setattr(
        packed_trees, "run_together", lambda jobs: split.append(len(jobs)) or [job() for job in jobs]
    )
    for least, n_threads in ((len(packed.roots) * 10, 1), (len(packed.roots) * 5, 2), (1, 3)):
        for name in ("LEAST_WALKS", "LEAST_PERFECT_WALKS"):
            monkeypatch.setattr(packed_trees, name, least)
        split.clear()
        np.testing.assert_array_equal(packed.votes(rows[:10], n_threads=3), packed.votes(rows[:10]))
        assert (split or [1]) == [n_threads]


def test_threads_after_a_fork(monkeypatch):
    """A forked process votes with threads of its own; it does not wait for those of its parent."""
    for name in ("LEAST_WALKS", "LEAST_PERFECT_WALKS"):
        monkeypatch.setattr(packed_trees, name, 1)
    x = np.random.default_rng(0).normal(size=(100, 3))
    y = (x[:, 0] > 0).astype(int)
    packed = pack_sklearn([RandomForestClassifier(3, random_state=i).fit(x, y) for i in range(4)])
    expected = packed.votes(x[:1], n_threads=2)
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # kills a child that waits for ever
        os._exit(0 if (packed.votes(x[:1], n_threads=2) == expected).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_round_trip_through_a_file(ensemble):
    """Saved without pickles and loaded, it is the same ensemble."""
    packed, _, rows = ensemble
    file = io.BytesIO()
    np.savez(file, **packed.arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        loaded = PackedTrees.from_arrays(arrays)
    np.testing.assert_array_equal(loaded.votes(rows), packed.votes(rows))
    assert loaded.arrays().keys() == packed.arrays().keys()


def damage(name, change):
    return pytest.param(name, change, id=f"{name}-{change.__name__.strip('<>')}")


LARGEST = np.iinfo(np.int64).max  # beyond it sums wrap around
STEPS = np.uint64(((1 << tree_kernel.STEP_BITS) - 1) << tree_kernel.STEP_SHIFT)

DAMAGES = [
    damage("nodes", lambda a: a[:-1]),
    damage("nodes", lambda a: np.where((a & STEPS > 0) & (a < 2**63), a | np.uint64(tree_kernel.LEAF), a)),
    damage("nodes", lambda a: a | np.uint64(((1 << tree_kernel.STEP_BITS) - 1) << tree_kernel.STEP_SHIFT)),
    damage(
        "nodes", lambda a: a | np.uint64(((1 << tree_kernel.COLUMN_BITS) - 1) << tree_kernel.COLUMN_SHIFT)
    ),
    damage("nodes", lambda a: a | np.uint64(1 << 63)),
    damage("nodes", lambda a: a.astype(np.int64)),
    damage("nodes", lambda a: a & ~np.uint64(tree_kernel.LEAF)),
    damage("nodes", lambda a: np.where(a & np.uint64(tree_kernel.LEAF), a | np.uint64(1), a)),
    damage("nodes", lambda a: np.where(a >> np.uint64(63), a | np.uint64(5 << tree_kernel.COLUMN_SHIFT), a)),
    damage("depths", lambda a: a - 1),
    damage("depths", lambda a: np.full_like(a, LARGEST)),
    damage("values", lambda a: a[:-1]),
    damage("values", lambda a: a.astype(np.float64)),
    damage("sets", lambda a: a[:-1]),
    damage("roots", lambda a: a + np.uint64(1)),
    damage("outputs", lambda a: a + 1),
    damage("outputs", lambda a: a - 3),
    damage("outputs", lambda a: np.full_like(a, LARGEST)),
    damage("widths", lambda a: a[1:]),
    damage("value_starts", lambda a: np.full_like(a, LARGEST)),
    damage("value_starts", lambda a: a + 1),
    damage("tree_starts", lambda a: a[::-1]),
    damage("class_starts", lambda a: a[:-1]),
    damage("cut_starts", lambda a: a + 1),
    damage("cut_starts", lambda a: np.array([0, LARGEST, -LARGEST - 1, -1, *a[4:]])),
    damage("categorical", lambda a: a | True),
    damage("categorical", lambda a: a & False),
    damage("labels", lambda a: a[1:]),
    damage("softmax", lambda a: a[1:]),
    damage("single", lambda a: a[None]),
]


@pytest.mark.parametrize(("name", "change"), DAMAGES)
def test_damaged_arrays_are_refused(ensemble, name, change):
    """What would lead the kernel outside its arrays, or to cells that nobody filled, is refused before it runs."""
    arrays = ensemble[0].arrays()
    with pytest.raises(InvalidModel):
        PackedTrees.from_arrays({**arrays, name: change(arrays[name])})


def test_missing_array_is_refused(ensemble):
    """A file of something else is recognised."""
    arrays = ensemble[0].arrays()
    del arrays["cuts"]
    with pytest.raises(InvalidModel, match="lack cuts"):
        PackedTrees.from_arrays(arrays)


@pytest.mark.parametrize(
    "rows",
    [np.zeros((2, 4)), np.zeros((2, 6)), np.zeros(3), np.zeros((1, 1, 5)), 1.0, [["a"] * 5], [[1], [1, 2]]],
)
def test_wrong_rows_are_refused(ensemble, rows):
    """A row has as many numbers as the models have features."""
    with pytest.raises(InvalidInput):
        ensemble[0].votes(rows)


def test_models_that_saw_fewer_classes():
    """A model votes in the label space of the ensemble; one that saw a single class is a constant."""
    rng = np.random.default_rng(2)
    x, y = training_data(rng, n_classes=4)
    some = np.isin(y, [1, 3])
    full = fit_xgboost(x, y)
    partial = fit_xgboost(x[some], (y[some] == 3).astype(int))
    boosters = [full.get_booster(), partial.get_booster(), None, partial.get_booster()]
    votes = pack_xgboost(boosters, [None, [1, 3], [2], [0]]).votes(x)
    np.testing.assert_array_equal(votes[:, 0], full.predict(x))
    np.testing.assert_array_equal(votes[:, 1], np.array([1, 3])[partial.predict(x)])
    assert (votes[:, 2] == 2).all()
    assert (votes[:, 3] == 0).all()


@pytest.mark.parametrize("kind", [*FORESTS, HistGradientBoostingClassifier], ids=lambda kind: kind.__name__)
def test_sklearn_models_that_saw_fewer_classes(kind):
    """Integer classes are labels themselves; others are named by `classes`."""
    rng = np.random.default_rng(2)
    x, y = training_data(rng, n_classes=4)
    some = np.isin(y, [1, 3])
    partial = kind(random_state=0).fit(x[some], y[some])
    named = kind(random_state=0).fit(x, np.array(["d", "c", "b", "a"])[y])
    models = [partial, named, None]
    if kind is not HistGradientBoostingClassifier:
        models.append(kind(random_state=0).fit(x[y == 2], y[y == 2]))
    votes = pack_sklearn(models, [None, [3, 2, 1, 0], [1], None][: len(models)]).votes(x)
    np.testing.assert_array_equal(votes[:, 0], partial.predict(x))
    np.testing.assert_array_equal(np.array(["d", "c", "b", "a"])[votes[:, 1]], named.predict(x))
    assert (votes[:, 2] == 1).all()
    assert (votes[:, 3:] == 2).all()
    with pytest.raises(InvalidModel, match="label indices"):
        pack_sklearn([named])


@pytest.mark.parametrize(
    "options",
    [
        {"booster": "dart"},
        {"booster": "gblinear"},
        {"objective": "binary:hinge"},
        {"multi_strategy": "multi_output_tree", "n_classes": 3},
    ],
    ids=str,
)
def test_other_boosters_are_refused(options):
    """What would be packed wrongly is not packed."""
    x, y = training_data(np.random.default_rng(0), n_classes=options.pop("n_classes", 2))
    model = xgboost.XGBClassifier(n_estimators=2, n_jobs=1, **options).fit(x, y)
    with pytest.raises(InvalidModel):
        pack_xgboost([model.get_booster()])


def test_models_that_do_not_fit_together_are_refused():
    """All models read the same columns in the same way."""
    rng = np.random.default_rng(0)
    x, y = training_data(rng, category_counts=(5,))
    model = fit_xgboost(x, y, 1)
    booster = model.get_booster()
    with pytest.raises(InvalidModel, match="number of features"):
        pack_xgboost([booster, fit_xgboost(x[:, :3], y).get_booster()])
    with pytest.raises(InvalidModel, match="categorical in one model"):
        pack_xgboost([booster, fit_xgboost(x, y).get_booster()])
    with pytest.raises(InvalidModel, match="as many entries"):
        pack_xgboost([booster], [None, None])
    for classes in ([0, 1, 2], [0, 0], [[0, 1]], [0.0, 1.0], [-1, 0], ["a", "b"]):
        with pytest.raises(InvalidModel):
            pack_xgboost([booster], [classes])
    for boosters in ([], [None]):
        with pytest.raises(InvalidModel, match="at least one"):
            pack_xgboost(boosters)
    forest = RandomForestClassifier(2).fit(x, y)
    boosted = HistGradientBoostingClassifier(max_iter=2).fit(x, y)
    with pytest.raises(InvalidModel, match="precision"):
        pack_sklearn([forest, boosted])
    for other in (LogisticRegression().fit(x, y), RandomForestClassifier()):
        with pytest.raises(InvalidModel):
            pack_sklearn([other])
    with pytest.raises(InvalidModel):
        pack_sklearn([RandomForestClassifier(2).fit(x, np.column_stack([y, y]))])


def test_categories_that_are_not_codes_are_refused():
    """A row holds numbers, so the categories a model knows must be numbers."""
    x, y = training_data(np.random.default_rng(0), category_counts=(3,))
    words = x.astype(object)
    words[:, 4] = np.array(["red", "green", "blue"])[x[:, 4].astype(int)]
    model = HistGradientBoostingClassifier(categorical_features=[4], max_iter=2).fit(words, y)
    with pytest.raises(InvalidModel, match="must be codes"):
        pack_sklearn([model])
