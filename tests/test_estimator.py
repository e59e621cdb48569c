"""PrivateClassifier as a scikit-learn estimator: its checks, and what is told apart from other classifiers."""

import copy
import gc
import os
import pickle
import re
import subprocess
import sys
import warnings
from datetime import date
from pathlib import Path
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
from records import labels_of, mixed_table
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator
from whole_values import small_heads, texts
from xgboost import XGBClassifier

from pacpredict import PrivateClassifier
from pacpredict.core.bounds import success_bound
from pacpredict.curator import Curator
from pacpredict.exceptions import (
    BudgetExhausted,
    InvalidArtifact,
    InvalidBudget,
    InvalidInput,
    InvalidQuery,
    InvalidTable,
    LedgerConflict,
    PrivacyWarning,
    UntrustedArtifact,
)
from pacpredict.mechanism import entropy
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.mechanism.secret import Secret
from pacpredict.training.pool import Pool

SECRET_DIFFERS = (
    "it compares the answers of two fits; each fit draws a new secret and new noise, whatever random_state is"
)
EXPECTED_FAILURES = {
    "check_estimators_pickle": "a fitted classifier has a secret and spends a budget: a copy would be a second history",
    "check_fit_idempotent": SECRET_DIFFERS,
    "check_supervised_y_2d": SECRET_DIFFERS,
    "check_classifier_data_not_an_array": SECRET_DIFFERS,
    "check_sample_weight_equivalence_on_dense_data": "a record that occurs twice has subsets of its own",
    "check_array_api_input": "scikit-learn itself skips it unless SCIPY_ARRAY_API is set",
}
COMPARES_TWO_FITS = [name for name, reason in EXPECTED_FAILURES.items() if reason == SECRET_DIFFERS]


def small(estimator="logistic", **options):
    options = {
        "n_models": 8,
        "decode": "map",
        "random_state": 0,
        "n_jobs": 1,
        "odds_limit": None,
        **options,
    }
    return PrivateClassifier(estimator, **options)


def checks(**options):
    """Return scikit-learn's checks by name; one name can stand for several."""
    return [
        (check.func.__name__, estimator, check)
        for estimator, check in estimator_checks_generator(small(person_per_row=True, **options))
    ]


@pytest.fixture(scope="module")
def fitted():
    table = mixed_table()
    return small(step_budget=2.0**-8, total_budget=100.0).fit(table, labels_of(table))


CHECKS = checks()


@pytest.mark.parametrize(
    ("name", "estimator", "check"), CHECKS, ids=[f"{i}-{name}" for i, (name, _, _) in enumerate(CHECKS)]
)
def test_scikit_learns_checks(name, estimator, check):
    """Each of scikit-learn's checks passes, but for those that are listed above with their reasons."""
    if name == "check_estimators_pickle":
        with pytest.raises(TypeError, match="has a secret and does not pickle or copy: save"):
            check(estimator)
    elif name == "check_array_api_input":
        with pytest.raises(SkipTest, match="SCIPY_ARRAY_API"):
            check(estimator)
    elif name not in EXPECTED_FAILURES:
        check(estimator)


@pytest.mark.parametrize("wanted", COMPARES_TWO_FITS)
def test_checks_fail_because_of_secret_and_noise(wanted, monkeypatch):
    """A check that compares two fits fails sooner or later, and passes if both draw the same secret and noise."""
    ((estimator, check),) = [(e, c) for name, e, c in checks(decode="argmax") if name == wanted]
    for _ in range(50):  # it passes by luck now and then
        try:
            check(estimator)
        except AssertionError:
            break
    else:
        pytest.fail("this check does not fail: take it off the list")

    monkeypatch.setattr(entropy.os, "urandom", lambda size: np.random.default_rng(1).bytes(size))
    check(estimator)


def test_every_expected_failure_is_a_check():
    """The list names no check that scikit-learn does not have any more."""
    assert set(EXPECTED_FAILURES) <= {name for name, _, _ in CHECKS}


def test_parameters_of_the_estimator_within():
    """clone, get_params and set_params reach the estimator within, and leave what was fitted behind."""
    classifier = small(LogisticRegression(C=2.0))
    assert classifier.get_params()["estimator__C"] == 2.0
    X, y = np.arange(40.0)[:, None], np.arange(40) > 20
    again = clone(classifier.fit(X, y)).set_params(estimator__C=0.5, n_models=4)
    assert not hasattr(again, "curator_")
    assert (again.estimator.C, again.n_models, classifier.estimator.C) == (0.5, 4, 2.0)


def test_groups_are_units():
    """All records of a group are protected together; the posterior is per group, also after saving and loading."""
    table, groups = mixed_table(), np.random.default_rng(0).integers(0, 30, 120)
    classifier = small(step_budget=2.0**-6, total_budget=1.0).fit(table, labels_of(table), groups=groups)
    assert len(set(classifier.units_)) == len(set(groups))
    assert all(len(set(classifier.units_[groups == group])) == 1 for group in set(groups))
    assert (classifier.membership_posterior() == 0.5).all()
    classifier.predict(table[:30])
    assert classifier.membership_posterior().shape == (len(set(groups)),)
    assert classifier.membership_posterior()[classifier.units_].shape == (120,)
    assert classifier.membership_posterior().min() < 0.5 < classifier.membership_posterior().max()


def test_records_of_weight_0_have_no_unit():
    """A record that is left out belongs to nobody, and the others to whom they belonged."""
    table, groups, weights = mixed_table(60), list(np.arange(60) // 2), np.r_[np.zeros(11), np.ones(49)]
    classifier = small().fit(table, labels_of(table), weights, groups)
    assert classifier.units_.tolist() == [0, *(1 + np.arange(48) // 2)]


def test_units_outlive_the_process(tmp_path):
    """A loaded classifier knows its units and what was told about them."""
    table, groups = mixed_table(60), np.arange(60) // 2
    classifier = small(step_budget=2.0**-6, total_budget=1.0).fit(table, labels_of(table), groups=groups)
    classifier.predict(table[:30])
    told, units = classifier.membership_posterior(), classifier.units_
    classifier.save(tmp_path / "a.pac")
    loaded = PrivateClassifier.load(tmp_path / "a.pac")
    assert np.array_equal(loaded.membership_posterior(), told)
    assert np.array_equal(loaded.units_, units)
    assert loaded.person_per_row is False
    small(person_per_row=True).fit(table, labels_of(table)).save(tmp_path / "b.pac")
    assert PrivateClassifier.load(tmp_path / "b.pac").person_per_row is True


def test_an_identifier_among_the_features_is_pointed_out():
    """A column that looks like one is warned about, once, with what to do."""
    table = mixed_table().assign(patient_id=[f"P{i:03d}" for i in range(120)])
    with pytest.warns(
        PrivacyWarning, match=r"'patient_id' looks like an identifier.*groups= in Python"
    ) as caught:
        small().fit(table, labels_of(table))
    assert len(caught) == 1
    assert Path(caught[0].filename) == Path(__file__)


def test_an_identifier_beside_texts_is_pointed_out():
    """Of a frame from which only the texts are learned, a column of persons is warned about unless groups are given."""
    reviews, labels = texts(60)
    table = pd.DataFrame({"patient": [f"P{i // 3:03d}" for i in range(60)], "text": reviews})
    heads = PrivateClassifier(small_heads("tfidf"), n_models=4)
    said = r"'patient' looks like an identifier \(20 different values in 60 records\).*groups= in Python"
    with pytest.warns(PrivacyWarning, match=said):
        heads.fit(table, labels)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        heads.fit(table, labels, groups=table["patient"])
        heads.fit(table[["text"]], labels)
        heads.fit(table["text"].rename("note").to_frame(), labels)
    assert not [warning for warning in caught if "identifier" in str(warning.message)]


def test_in_a_pipeline_and_a_search():
    """It is a member of pipelines, and searches and cross-validation work on it."""
    X, y = np.random.default_rng(0).normal(size=(80, 3)), np.arange(80) % 2
    X[:, 0] += 3 * y
    private = small(LogisticRegression(), n_models=4)
    pipeline = make_pipeline(StandardScaler(), private).fit(X, y)
    assert pipeline.score(X, y) > 0.8
    search = GridSearchCV(private, {"estimator__C": [1e-4, 1.0], "n_models": [4]}, cv=2).fit(X, y)
    assert search.best_params_["estimator__C"] in {1e-4, 1.0}
    assert search.predict(X[:3]).shape == (3,)
    assert cross_val_score(private, X, y, cv=2).mean() > 0.8


def test_deployments_of_the_same_records_are_counted():
    """Fits on records that overlap are deployments beside each other, and their number is said as it doubles."""
    rng = np.random.default_rng(77)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    first = small("decision-tree").fit(X[:40], y[:40])
    assert first.n_deployments_ == 1
    with pytest.warns(
        PrivacyWarning, match=r"deployment 2 in this process .* with probability 0.75, and budgets add up"
    ):
        second = small("ridge").fit(X[20:], y[20:])
    assert second.n_deployments_ == 2
    assert small("decision-tree").fit(rng.normal(size=(40, 3)), y[:40]).n_deployments_ == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert small("decision-tree").fit(X[:30], y[:30]).n_deployments_ == 3  # not said: 3 is no doubling
    with pytest.warns(PrivacyWarning, match="use pacpredict.evaluate, which draws no secret"):
        GridSearchCV(small("decision-tree", n_models=4), {"rate": [0.5]}, cv=3).fit(X, y)


def test_a_score_says_that_it_costs(fitted):
    """score() spends as predict does, and says so; asked again it costs nothing."""
    table = mixed_table(40, seed=99)
    labels = labels_of(table)
    with pytest.warns(PrivacyWarning, match=r"score\(\) asked the deployment, and answers .* were charged"):
        first = fitted.score(table, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fitted.score(table, labels) == first


def test_a_repeated_query_is_free(fitted):
    """Whatever was asked before gets the same answer at no charge, in any order, form or company."""
    queries = mixed_table(50, seed=3)
    first = fitted.predict(queries)
    before = fitted.guarantee()
    assert before.contested > 0
    assert np.array_equal(fitted.predict(queries[::-1]), first[::-1])
    assert np.array_equal(fitted.predict(queries[queries.columns[::-1]]), first)
    assert np.array_equal(fitted.predict(queries.astype({"age": float, "job": object})), first)
    assert np.array_equal(fitted.predict(pd.concat([queries[:5]] * 2)), np.tile(first[:5], 2))
    assert fitted.guarantee() == before


def test_the_guarantee_is_that_of_what_was_promised(fitted):
    """The promise is the bound for the total budget; what was spent is counted in steps."""
    guarantee = fitted.guarantee()
    assert guarantee.success == success_bound(100.0)
    assert guarantee.prior == 0.5
    assert guarantee.spent_nats == guarantee.contested * 2.0**-8
    assert fitted.guarantee(1 / 8).success == success_bound(100.0, 1 / 8)
    table = mixed_table(40)
    quarter = small("decision-tree", rate=0.25).fit(table, labels_of(table))
    assert quarter.guarantee().prior == 0.75


def test_a_spent_budget_refuses_the_whole_and_charges_nothing():
    """What does not fit into the budget is refused as a whole; nothing is charged, and what fits is answered."""
    table = mixed_table()
    labels = np.random.default_rng(0).choice(["a", "b"], len(table))  # noise, so that models disagree
    classifier = small("decision-tree", step_budget=0.25, total_budget=0.75).fit(table, labels)
    votes = classifier.curator_.ensemble.votes(classifier.curator_.ensemble.schema.rows(table))
    contested = np.flatnonzero(votes.min(axis=1) < votes.max(axis=1))
    with pytest.raises(BudgetExhausted, match="Nothing was drawn or charged") as caught:
        classifier.predict(table.iloc[contested[:4]])
    assert (caught.value.needed_nats, caught.value.left_nats) == (1.0, 0.75)
    assert classifier.guarantee().queries == 0
    three = classifier.predict(table.iloc[contested[:3]])
    assert classifier.guarantee().spent_nats == 0.75
    with pytest.raises(BudgetExhausted, match="has halted"):
        classifier.predict(table.iloc[contested[3:4]])
    assert np.array_equal(classifier.predict(table.iloc[contested[:3]]), three)  # these are paid for


@pytest.mark.parametrize(
    "labels",
    [
        ["no", "yes"],
        [3, 7],
        [False, True],
        [1.0, 2.0],
        [("a", 1), ("b", 2)],
        [date(2020, 1, 1), date(2021, 1, 1)],
        ["a", 7],
        [b"x", b"y"],
        np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
        pd.Categorical(["u", "v"]),
        [2**80, 2**81],
    ],
    ids=lambda labels: type(labels[0]).__name__,
)
def test_labels_of_any_type(labels, tmp_path):
    """Labels come back as they were given, whatever they are, also from an artifact."""
    X = np.repeat([0.0, 10.0], 20)[:, None] + np.random.default_rng(0).normal(size=(40, 1))
    y = [labels[i // 20] for i in range(40)] if isinstance(labels, list) else labels[np.repeat([0, 1], 20)]
    classifier = small("decision-tree").fit(X, y)
    expected = [labels[0], labels[1]]
    answers = list(classifier.predict([[0.0], [10.0]]))
    assert [np.datetime64(a) if isinstance(labels, np.ndarray) else a for a in answers] == expected
    classifier.save(tmp_path / "a.pac")
    assert list(PrivateClassifier.load(tmp_path / "a.pac").predict([[0.0], [10.0]])) == answers


def test_lists_arrays_and_frames_are_the_same():
    """Rows with numbers and text mean the same in a list, an array and a frame."""
    rows = [[float(i), "even" if i % 2 == 0 else "odd", i < 9] for i in range(40)]
    y = [i % 2 for i in range(40)]
    models = {}
    for name, X in (("list", rows), ("array", np.array(rows, object)), ("frame", pd.DataFrame(rows))):
        classifier = small("logistic").fit(X, y)
        assert [column.kind for column in classifier.curator_.ensemble.schema.columns] == [
            *("number", "category", "boolean")
        ]
        models[name] = classifier.curator_.ensemble.voter.arrays()["weights"].tobytes()
    assert len(set(models.values())) == 1


def test_save_and_load(tmp_path):
    """A deployment goes on from its artifact: same answers, same spending, no second copy."""
    table = mixed_table()
    how = {"step_budget": 2.0**-8, "total_budget": 10.0, "noise": "fair", "min_category": 4}
    classifier = small(**how).fit(table, labels_of(table))
    queries = mixed_table(40, seed=3)
    first, before = classifier.predict(queries), classifier.guarantee()
    classifier.save(tmp_path / "a.pac")
    assert classifier.guarantee() == before
    assert np.array_equal(classifier.predict(queries), first)
    with pytest.raises(InvalidArtifact, match=r"lives in .*a.pac: a copy would be a second history"):
        classifier.save(tmp_path / "b.pac")
    assert not (tmp_path / "b.pac").exists()

    loaded = PrivateClassifier.load(tmp_path / "a.pac")
    assert loaded.guarantee() == before
    assert np.array_equal(loaded.predict(queries), first)
    assert loaded.guarantee() == before
    assert list(loaded.classes_) == list(classifier.classes_)
    assert list(loaded.feature_names_in_) == list(table.columns)
    assert {**loaded.get_params(), "n_jobs": 1} == classifier.get_params()
    with pytest.raises(InvalidArtifact, match="a second history"):
        loaded.save(tmp_path / "c.pac")

    more = mixed_table(60, seed=4)
    answers = loaded.predict(more)  # what one spends, the other knows
    assert np.array_equal(classifier.predict(more), answers)
    assert classifier.guarantee() == loaded.guarantee() != before


@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        ("logistic", {}),
        ("logistic", {"params": {"C": 0.5, "class_weight": {"a": 2.0}}}),
        ("xgboost", {"params": {"n_estimators": 3}}),
        (LogisticRegression(C=0.5, class_weight={"a": 2.0}), {}),
        (XGBClassifier(n_estimators=3, max_depth=2), {"tune": "none"}),
        ("decision-tree", {"params": {"max_depth": 2}}),
        (RandomForestClassifier(n_estimators=3), {}),
        (make_pipeline(SimpleImputer(), DecisionTreeClassifier(max_depth=2, class_weight={"a": 2.0})), {}),
    ],
    ids=lambda value: str(value)[:60],
)
def test_loading_restores_the_learner(estimator, options, tmp_path):
    """What a classifier was made with is there again when it is loaded: a clone of it would train the same models."""
    table = mixed_table(40)[["age", "hours"]]
    classifier = small(estimator, total_budget=1.0, **options).fit(table, labels_of(mixed_table(40)))
    classifier.save(tmp_path / "a.pac")
    loaded = PrivateClassifier.load(tmp_path / "a.pac", trust=True)
    made_with = {**classifier.get_params(), "step_budget": classifier.curator_.recipe.budget.step}
    assert repr({**loaded.get_params(), "n_jobs": 1}) == repr(made_with)
    again = clone(loaded).set_params(n_jobs=1).fit(table, labels_of(mixed_table(40)))
    votes = [
        each.curator_.ensemble.votes(each.curator_.ensemble.schema.rows(table))
        for each in (again, classifier)
    ]
    assert np.array_equal(*votes)


def test_records_that_do_not_count_are_left_out():
    """A record of weight 0 is in no pool; the others train with the weights that they have."""
    table = mixed_table(60)
    labels, weights = list(labels_of(table)), np.where(np.arange(60) < 20, 0.0, np.arange(60))
    classifier = small("decision-tree").fit(table, labels, sample_weight=weights)
    assert len(classifier._fit.pool) == 40
    assert np.array_equal(classifier._fit.pool.weights, weights[20:])
    assert np.array_equal(classifier._fit.pool.labels, Pool.of(table[20:], labels[20:]).labels)


def test_an_artifact_that_went_back_is_not_loaded(tmp_path):
    """After a single prediction, a ledger that was copied before it and put back is refused: rows are not redrawn."""
    table = mixed_table()
    small(step_budget=2.0**-8, total_budget=10.0).fit(table, labels_of(table)).save(tmp_path / "a.pac")
    ledger = tmp_path / "a.pac" / "ledger.sqlite"
    before = ledger.read_bytes()
    PrivateClassifier.load(tmp_path / "a.pac").predict(mixed_table(40, seed=3))
    gc.collect()  # nobody closes a classifier
    ledger.write_bytes(before)
    with pytest.raises(LedgerConflict, match="older copy"):
        PrivateClassifier.load(tmp_path / "a.pac")


def test_save_refuses_a_place_that_is_taken(fitted, tmp_path):
    """Nothing is overwritten, and the classifier in memory goes on."""
    (tmp_path / "a.pac").mkdir()
    with pytest.raises(InvalidArtifact, match="exists already"):
        fitted.save(tmp_path / "a.pac")
    assert fitted.path_ is None
    assert len(fitted.predict(mixed_table(3))) == 3


def test_other_estimators_need_trust(tmp_path):
    """What skops stored is loaded only with trust."""
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    small(GaussianNB()).fit(X, y).save(tmp_path / "a.pac")
    with pytest.raises(UntrustedArtifact, match="trust=True"):
        PrivateClassifier.load(tmp_path / "a.pac")
    assert PrivateClassifier.load(tmp_path / "a.pac", trust=True).predict(X).shape == (40,)


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_fitted_classifier_has_no_copies(duplicate, fitted):
    """Pickling and copying what is fitted is refused; what is not fitted may be copied."""
    with pytest.raises(TypeError, match="has a secret and does not pickle or copy"):
        duplicate(fitted)
    duplicate(small())


def test_it_prints_no_secret(fitted):
    """What a curator and its parts print is the same for every secret."""
    ensemble, recipe = fitted.curator_.ensemble, fitted.curator_.recipe
    printed = set()
    for index in range(8):
        curator = Curator(ensemble, recipe, MemoryLedger(), secret=Secret(index, 8), deployment="d")
        parts = (curator, vars(curator), vars(curator.session), curator.guarantee(), curator.privacy())
        printed.add(re.sub("0x[0-9a-f]+", "", repr(parts)))
    assert len(printed) == 1
    assert "Secret(hidden)" in printed.pop()


class Untrainable(GaussianNB):
    def fit(self, *_):
        pytest.fail("training has begun")


X20 = np.arange(40.0).reshape(20, 2)


@pytest.mark.parametrize(
    ("X", "y", "options", "error", "words"),
    [
        (X20, np.zeros(20), {}, InvalidTable, "1 class"),
        (X20[:9], np.arange(9) % 2, {}, InvalidTable, "too few records"),
        (pd.DataFrame(X20, columns=["a", "a"]), np.arange(20) % 2, {}, InvalidTable, "must be unique"),
        (np.where(X20 == 6, np.inf, X20), np.arange(20) % 2, {}, ValueError, "infinity"),
        (X20, [None, *["a", "b"] * 9, "a"], {}, InvalidTable, "1 missing values"),
        (X20, np.arange(20) % 2, {"n_models": 7}, InvalidInput, "even"),
        (X20, np.arange(20) % 2, {"tune": "halving"}, InvalidInput, "no settings that could be searched"),
        (X20, np.arange(20) % 2, {"estimator": "forest"}, InvalidInput, "no learner 'forest'"),
        (X20, np.arange(20) % 2, {"rate": 0.01}, InvalidInput, "at least one and not all"),
        (X20, np.arange(20) % 2, {"step_budget": -1.0}, InvalidBudget, "step_budget"),
        (X20, np.arange(20) % 2, {"random_state": -1}, InvalidInput, "at least 0"),
        (X20, np.arange(20) % 2, {"min_category": 0}, InvalidInput, "min_category must be"),
        (X20, np.arange(20) / 7, {}, ValueError, "Unknown label type: continuous"),
        (X20, np.arange(19) % 2, {}, InvalidTable, "20 records and 19 labels"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, str | dict) else "",
)
def test_errors_before_training(X, y, options, error, words):
    """What cannot be learned, or not like this, is said before anything is trained."""
    with pytest.raises(error, match=words):
        small(**{"estimator": Untrainable(), **options}).fit(X, y)


def queries(**changes):
    return mixed_table(20, seed=5).assign(**changes)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (queries().drop(columns="job"), "job|feature names"),
        (queries(more=1), "more|feature names"),
        (queries(job=[["smuggler"]] * 20), "expected a category, got a value of type list"),
        (queries(age="old"), "expected a number, got 'old'"),
        (queries(hours=np.inf), "expected a finite number"),
        (queries(note=3), "expected a text"),
        (queries(married="perhaps"), "expected true, false"),
        (queries()[:0], "no rows|0 sample"),
        ("age", "Expected 2D array"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_errors_before_charging(X, words, fitted):
    """A query that does not fit is refused with the column, the row and the value; nothing is charged."""
    before = fitted.guarantee()
    with pytest.raises(ValueError, match=words):
        fitted.predict(X)
    assert fitted.guarantee() == before


def test_the_number_of_columns_is_checked():
    """Rows without names must have as many values as those of the training data."""
    classifier = small("decision-tree").fit(X20, np.arange(20) % 2)
    with pytest.raises(ValueError, match="X has 3 features, but PrivateClassifier is expecting 2"):
        classifier.predict([[1, 2, 3]])
    assert classifier.guarantee().queries == 0


def test_errors_name_row_and_column(fitted):
    """Of many rows, the one that is wrong is named."""
    table = queries()
    table["age"] = table["age"].astype(object)
    table.loc[13, "age"] = "old"
    with pytest.raises(InvalidQuery, match=r"column 'age', row 13 \(from 0\)"):
        fitted.predict(table)


def test_what_training_never_had_is_answered(fitted):
    """New categories are answered, each as a query of its own; so are missing values, known to training or not."""
    before = fitted.guarantee().queries
    for job in ("smuggler", "pirate", "smuggler"):
        assert set(fitted.predict(queries(job=job, age=np.nan))) <= set(fitted.classes_)
    assert fitted.guarantee().queries == before + 40


def test_rare_categories_are_not_listed():
    """A category that fewer than `min_category` units have is "other", and the minimum is remembered."""
    table = mixed_table().assign(job=["smuggler"] * 3 + ["clerk"] * 117)
    listed = [
        small(min_category=least).fit(table, labels_of(table)).curator_.ensemble.schema.columns[2].categories
        for least in (3, 4)
    ]
    assert listed == [("clerk", "smuggler"), ("clerk",)]


FORK = """
import os
import numpy as np
from pacpredict import PacPredictError, PrivateClassifier

X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
classifier = PrivateClassifier("decision-tree", n_models=4, n_jobs=1).fit(X, y)
first = classifier.predict(X[:20])
child = os.fork()
if child == 0:
    assert (classifier.predict(X[:20]) == first).all()
    try:
        classifier.predict(X)
    except PacPredictError as refusal:
        print(type(refusal).__name__, "save the deployment" in str(refusal), flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
classifier.predict(X)
print(classifier.guarantee().queries, flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_forked_process_gets_no_new_answers():
    """A child repeats what was answered before the fork and is refused the rest; the parent goes on."""
    run = subprocess.run([sys.executable, "-c", FORK], check=True, capture_output=True, text=True)
    assert run.stdout.splitlines() == ["LedgerConflict True", "40"]


def test_a_new_fit_is_a_new_deployment():
    """Fitting again draws a new secret and begins to count anew."""
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    classifier = small("decision-tree", n_models=32, step_budget=2.0**-8, total_budget=10.0)
    secrets = set()
    for _ in range(5):
        classifier.fit(X, y).predict(X)
        assert classifier.guarantee().queries == 40
        secrets.add(classifier.curator_.session._secret.reveal())
    assert len(secrets) > 1  # all the same by chance: once in a million runs
