"""Votes of every learner beside what the library itself predicts, model by model and row by row."""

import numpy as np
import pandas as pd
import pytest
import xgboost
from records import TABLE_LEARNERS, labels_of, mixed_pool, mixed_table, quick_fit, recipe, small_learner
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from pacpredict.learners.registry import learner_for
from pacpredict.training.pool import Pool
from pacpredict.training.train import seeds_of

LINEAR = {
    "logistic": LogisticRegression(max_iter=1000),
    "linear-svc": LinearSVC(),
    "perceptron": Perceptron(),
    "ridge": RidgeClassifier(),
    "sgd": SGDClassifier(),
}
TREES = {
    "random-forest": RandomForestClassifier(n_estimators=5, min_samples_leaf=2),
    "hist-gradient-boosting": HistGradientBoostingClassifier(
        max_iter=5, min_samples_leaf=5, early_stopping=False
    ),
    "extra-trees": ExtraTreesClassifier(n_estimators=5),
    "decision-tree": DecisionTreeClassifier(),
}
ALL = ["xgboost", *LINEAR, *TREES]


@pytest.fixture(autouse=True)
def one_thread():
    """Let the library's own models not fight over cores: they are small, and tests run side by side."""
    with threadpool_limits(1):
        yield


both = pytest.mark.parametrize("n_classes", [2, 3])


@pytest.fixture(scope="module", params=[2, 3], ids=["binary", "multi-class"])
def problem(request):
    """Return records, their labels and further rows to ask about."""
    table = mixed_table(150)
    return table, labels_of(table, request.param), unusual(mixed_table(300, seed=9))


def unusual(table):
    """Return rows of which some have categories that no record has, and missing values where no record has one."""
    table.loc[::3, "job"], table.loc[1::3, "grade"] = "pilot", "mid"
    table["age"] = table["age"].astype(float)
    table.loc[::5, ["age", "grade"]] = None
    return table


def library_votes(fitted, rows_to_ask, models, ask):
    """Return the label that each of the library's models gives to each row, in the pool's label space."""
    columns = [one.classes[ask(model, rows_to_ask)] for one, model in zip(fitted.models, models, strict=True)]
    return np.column_stack(columns)


def own_fits(fitted, template, inputs):
    """Train a model of the library on each subset, with the seed that it has in the fit."""
    seeds = seeds_of(fitted.recipe.seed, fitted.recipe.n_models)
    for i, seed in enumerate(seeds):
        chosen = fitted.trained_on(i)
        model = clone(template)
        names = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
        model.set_params(**dict.fromkeys(names, seed))
        part = inputs.iloc[chosen] if hasattr(inputs, "iloc") else inputs[chosen]
        own = np.unique(fitted.pool.labels[chosen], return_inverse=True)[1]
        yield model.fit(part, own)


def test_every_name_is_tried_here():
    """No learner of tables is left out of this file."""
    assert sorted(TABLE_LEARNERS) == sorted(ALL)


def test_xgboost_votes_are_those_of_the_stored_boosters(problem):
    """Each stored UBJ file, loaded by XGBoost, predicts what the packed model votes."""
    table, labels, queries = problem
    fitted = quick_fit(Pool.of(table, labels), small_learner("xgboost"))
    schema = fitted.pool.schema
    types = ["c" if n else "q" for n in schema.feature_categories]

    def ask(booster, rows):
        data = xgboost.DMatrix(schema.features(rows), feature_types=types, enable_categorical=True)
        scores = booster.predict(data)
        return scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0.5).astype(int)

    boosters = []
    for one in fitted.models:
        boosters.append(xgboost.Booster())
        boosters[-1].load_model(bytearray(one.model))
    rows = schema.rows(pd.concat([table, queries]))
    votes = fitted.ensemble.votes(rows)
    assert np.array_equal(votes, library_votes(fitted, rows, boosters, ask))
    assert (votes.min(axis=1) < votes.max(axis=1)).any()  # a model cannot be taken for another


@pytest.mark.parametrize("name", TREES)
def test_tree_votes_are_those_of_scikit_learn(name, problem):
    """Classifiers of trees that scikit-learn trains on the same subsets predict what the packed models vote."""
    table, labels, queries = problem
    fitted = quick_fit(Pool.of(table, labels), small_learner(name))
    schema, template = fitted.pool.schema, TREES[name]
    if name == "hist-gradient-boosting":
        template.set_params(categorical_features=[n > 0 for n in schema.feature_categories])
    models = own_fits(fitted, template, schema.features(fitted.pool.rows))
    rows = schema.rows(pd.concat([table, queries]))
    expected = library_votes(fitted, schema.features(rows), models, lambda model, X: model.predict(X))
    assert np.array_equal(fitted.ensemble.votes(rows), expected)
    assert (expected.min(axis=1) < expected.max(axis=1)).any()


def preprocessed(train, table):
    """Return numbers standardised, flags of missing ones and indicators of categories, by scikit-learn's own parts."""
    hashing = HashingVectorizer(n_features=64)

    def quantities(part):
        plain = part[["age", "hours", "married"]].astype("Float64").to_numpy(float, na_value=np.nan)
        return np.hstack([plain, hashing.transform(part["note"].fillna("")).toarray()])

    scale = make_pipeline(StandardScaler(), SimpleImputer(strategy="constant", fill_value=0.0))
    flags = MissingIndicator(features="all").fit(quantities(train))
    names = [["clerk", "nurse", "smith"], ["low", "mid", "high"]]
    one_hot = OneHotEncoder(categories=names, handle_unknown="ignore", sparse_output=False)
    codes = ["job", "grade"]
    return np.hstack(
        [
            scale.fit(quantities(train)).transform(quantities(table)),
            flags.transform(quantities(table)),
            one_hot.fit(train[codes].astype(object)).transform(table[codes].astype(object)),
        ]
    )


@pytest.mark.parametrize("name", LINEAR)
def test_linear_votes_are_those_of_a_pipeline(name, problem):
    """A linear model by name votes as scikit-learn's behind its own scaler, imputer, indicator and encoder."""
    table, labels, queries = problem
    fitted = quick_fit(Pool.of(table, labels), small_learner(name))
    asked = pd.concat([table, queries])
    expected = []
    for i, seed in enumerate(seeds_of(fitted.recipe.seed, fitted.recipe.n_models)):
        chosen = fitted.trained_on(i)
        model = type(LINEAR[name])(**{**LINEAR[name].get_params(), "random_state": seed})
        train = table.iloc[chosen]
        model.fit(preprocessed(train, train), fitted.pool.labels[chosen])
        expected.append(model.predict(preprocessed(train, asked)))
    votes = fitted.ensemble.votes(fitted.pool.schema.rows(asked))
    assert np.array_equal(votes, np.column_stack(expected))


@both
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(C=0.3, max_iter=500),
        LinearSVC(C=0.1),
        RidgeClassifier(alpha=3.0),
        RandomForestClassifier(n_estimators=4, n_jobs=2, class_weight="balanced"),
        HistGradientBoostingClassifier(max_iter=4),
        GaussianNB(),
        KNeighborsClassifier(3),
        SVC(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 5]}, cv=2),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_own_estimators_see_numbers_as_they_are(estimator, n_classes):
    """On a table of numbers an estimator of the user's votes as it does outside."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4)) * [1, 1, 2, 4] + 5
    y = np.digitize(X[:, 0] + X[:, 1] / 2 + rng.normal(0, 0.5, 90), [7.5, 8.5][: n_classes - 1])
    fitted = quick_fit(Pool.of(X, y), learner_for(estimator))
    asked = rng.normal(size=(200, 4)) * [1, 1, 2, 4] + 5
    models = own_fits(fitted, estimator, X)
    expected = library_votes(fitted, asked, models, lambda model, rows: model.predict(rows))
    assert np.array_equal(fitted.ensemble.votes(fitted.pool.schema.rows(asked)), expected)


def by_names(classifier):
    return make_pipeline(
        make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "hours"]),
            (OneHotEncoder(handle_unknown="ignore"), ["job", "grade"]),
        ),
        classifier,
    )


@pytest.mark.parametrize(
    "estimator",
    [
        by_names(KNeighborsClassifier(3)),
        GridSearchCV(by_names(KNeighborsClassifier()), {"kneighborsclassifier__n_neighbors": [1, 5]}, cv=2),
        VotingClassifier([("one", by_names(GaussianNB())), ("two", by_names(KNeighborsClassifier()))]),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_pipelines_choose_columns_by_name(estimator, problem):
    """A pipeline, also within another estimator, gets a frame with the names and kinds of the training data."""
    table, labels, queries = problem
    fitted = quick_fit(Pool.of(table, labels), learner_for(estimator))
    models = own_fits(fitted, estimator, table)
    expected = library_votes(fitted, queries, models, lambda model, rows: model.predict(rows))
    assert np.array_equal(fitted.ensemble.votes(fitted.pool.schema.rows(queries)), expected)


@pytest.mark.parametrize("name", [*ALL, "estimator"])
def test_classes_that_a_subset_lacks(name):
    """Models vote in the label space of the whole pool, and never for a class that their subset does not have."""
    table = mixed_table(60)
    labels = labels_of(table, 2)
    labels[:2], labels[2] = "d", "c"  # c is in half of the subsets
    learner = learner_for(GaussianNB()) if name == "estimator" else small_learner(name)
    fitted = quick_fit(Pool.of(table, labels), learner, recipe(n_models=6))
    votes = fitted.ensemble.votes(fitted.pool.rows)
    assert sum(2 not in one.classes for one in fitted.models) == 3
    for i, one in enumerate(fitted.models):
        assert set(one.classes) == set(fitted.pool.labels[fitted.trained_on(i)])
        assert set(votes[:, i]) <= set(one.classes)
        own_first = votes[fitted.trained_on(i), i] == fitted.pool.labels[fitted.trained_on(i)]
        assert own_first.mean() > 0.5  # codes are not mixed up: a model is right about its own records


@both
@pytest.mark.parametrize("name", [*ALL, "estimator"])
def test_subsets_of_one_class(name, n_classes):
    """A subset with one class has no model and always votes for that class."""
    table = mixed_table(40)
    labels = np.array(["b"] * 40, dtype=object)
    labels[0] = "a"
    if n_classes == 3:
        labels[1] = "c"
    learner = learner_for(GaussianNB()) if name == "estimator" else small_learner(name)
    fitted = quick_fit(Pool.of(table, labels), learner, recipe(n_models=8))
    votes = fitted.ensemble.votes(fitted.pool.rows)
    alone = [i for i, one in enumerate(fitted.models) if one.model is None]
    assert alone
    assert all(len(fitted.models[i].classes) == 1 for i in alone)
    assert (votes[:, alone] == 1).all()


def test_votes_do_not_depend_on_the_batch_or_threads():
    """A row gets the same votes alone, among others, and from several threads."""
    for name in ("xgboost", "logistic", "random-forest"):
        fitted = quick_fit(learner=small_learner(name))
        rows = fitted.pool.rows
        votes = fitted.ensemble.votes(rows)
        assert np.array_equal(votes, fitted.ensemble.votes(rows, n_threads=2))
        alone = [fitted.ensemble.votes(rows.take([i]))[0] for i in range(20)]
        assert np.array_equal(votes[:20], alone)


def test_few_bins_take_many_categories_as_numbers():
    """Boosting with fewer bins than there are categories trains, instead of failing in scikit-learn."""
    table = pd.DataFrame({"city": [f"c{i % 30}" for i in range(120)], "x": np.arange(120.0)})
    learner = learner_for(HistGradientBoostingClassifier(max_bins=16, max_iter=3))
    fitted = quick_fit(Pool.of(table, np.arange(120) % 2), learner)
    assert fitted.ensemble.votes(fitted.pool.rows).shape == (120, 4)


@both
@pytest.mark.parametrize(
    "options",
    [
        {"objective": "multi:softprob"},
        {"num_parallel_tree": 2, "subsample": 0.5},
        {"base_score": 0.3},
        {"booster": "dart"},
        {"missing": -1.0},
        {"multi_strategy": "multi_output_tree"},
        {"n_jobs": 2, "random_state": 7, "enable_categorical": True},
    ],
    ids=str,
)
def test_own_xgboost_classifiers(options, n_classes):
    """Whatever options an XGBClassifier has, packed or not, its votes are its predictions."""
    pool = mixed_pool(90, n_classes)
    template = xgboost.XGBClassifier(n_estimators=4, max_depth=3, **options)
    learner = learner_for(template)
    fitted = quick_fit(pool, learner)
    prepared = learner.prepare(pool.schema, pool.rows)
    packed = learner.name == "xgboost"
    given = {name: value for name, value in options.items() if name != "objective"}
    types = ["c" if n else "q" for n in pool.schema.feature_categories] if packed else None
    fixed = {"feature_types": types, "enable_categorical": True, "n_jobs": 1}
    template = xgboost.XGBClassifier(**{"n_estimators": 4, "max_depth": 3, **given, **fixed})
    if not packed:
        template = make_pipeline(SimpleImputer(add_indicator=True, keep_empty_features=True), template)
    models = own_fits(fitted, template, prepared)
    expected = library_votes(fitted, prepared, models, lambda model, rows: model.predict(rows))
    assert np.array_equal(fitted.ensemble.votes(pool.rows), expected)
    assert packed is not bool({"booster", "missing", "multi_strategy"} & set(options))


def of_all_kinds(name):
    """Return a learner by name, an estimator of the user's, or a pipeline that has no idea of missing values."""
    if name == "estimator":
        return learner_for(GaussianNB())
    if name != "pipeline":
        return small_learner(name)
    chooser = make_column_transformer(
        (StandardScaler(), ["age", "hours"]), (OneHotEncoder(), ["job", "grade", "married"])
    )
    return learner_for(make_pipeline(chooser, LogisticRegression(max_iter=1000)))


@pytest.mark.parametrize("name", [*ALL, "estimator", "pipeline"])
@pytest.mark.parametrize("named", [True, False])
def test_what_training_never_had(name, named):
    """Every learner answers rows with unknown categories, and with missing values where the training data had none."""
    table = mixed_table(200).dropna().drop(columns=["note"] if name == "pipeline" else [])
    labels = labels_of(table)
    names = list(table) if named or name == "pipeline" else range(len(table.columns))
    pool = Pool.of(table.set_axis(names, axis=1), labels)
    fitted = quick_fit(pool, of_all_kinds(name))
    first = table.iloc[0].to_dict()
    rows = [first, dict.fromkeys(first), *({**first, column: None} for column in first)]
    rows += [{**first, "job": "pilot"}, {**first, "grade": "mid", "job": None}]
    asked = pool.schema.rows([list(row.values()) for row in rows])
    votes = fitted.ensemble.votes(asked)
    assert votes.shape == (len(rows), 4)
    assert np.array_equal(
        votes, np.concatenate([fitted.ensemble.votes(asked.take([i])) for i in range(len(rows))])
    )


def test_a_pipeline_that_fails_votes_for_the_usual_class():
    """Where a pipeline raises for a row its vote is the most frequent class of its subset, and others keep theirs."""
    table = mixed_table(200).dropna().drop(columns="note")
    fitted = quick_fit(Pool.of(table, labels_of(table)), of_all_kinds("pipeline"))
    schema = fitted.pool.schema
    good = fitted.ensemble.votes(schema.rows(table))
    mixed = table.assign(age=table["age"].where(np.arange(len(table)) % 2 == 0))
    votes = fitted.ensemble.votes(schema.rows(mixed))
    assert np.array_equal(votes[::2], good[::2])
    usual = [np.bincount(fitted.pool.labels[fitted.trained_on(i)]).argmax() for i in range(4)]
    assert np.array_equal(votes[1::2], np.broadcast_to(usual, votes[1::2].shape))
