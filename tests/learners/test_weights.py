"""Weights of records and of classes: what a model is trained with is what the library makes of the same weights."""

import json
from datetime import date

import numpy as np
import pytest
from records import TABLE_LEARNERS, quick_fit, recipe, small_learner
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from pacpredict.exceptions import InvalidInput, InvalidTable
from pacpredict.learners.estimators import params_from_json, params_to_json
from pacpredict.learners.registry import learner_for, learner_from, learner_of_config
from pacpredict.training.pool import Pool
from pacpredict.training.train import seeds_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = np.where(X[:, 0] + RNG.normal(0, 1.5, 200) > 0.8, "sick", "well")
WEIGHTS = np.where(Y == "sick", 6.0, 1.0)


def votes_for(label, votes, pool):
    return (votes == pool.classes.codes([label])[0]).mean()


@pytest.mark.parametrize("name", [*TABLE_LEARNERS, "estimator"])
def test_heavy_records_win_votes(name):
    """With every learner, records that count more pull the models' votes to their class."""
    learner = learner_for(GaussianNB()) if name == "estimator" else small_learner(name)
    if name in {"extra-trees", "decision-tree"}:  # leaves of one record do not weigh anything
        learner = learner_from(name, {"max_depth": 3})
    plain, weighted = (
        quick_fit(Pool.of(X, Y, weights=weights), learner, recipe(n_models=6)) for weights in (None, WEIGHTS)
    )
    share = [
        votes_for("sick", fitted.ensemble.votes(fitted.pool.rows), fitted.pool)
        for fitted in (plain, weighted)
    ]
    assert share[1] > share[0] + 0.04


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(C=0.5),
        DecisionTreeClassifier(max_depth=3),
        XGBClassifier(n_estimators=4, max_depth=2),
        GaussianNB(),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_model_is_what_the_library_makes_of_its_records_and_their_weights(estimator):
    """Each model votes as the estimator that is fitted on the subset with the weights of its records."""
    fitted = quick_fit(Pool.of(X, Y, weights=WEIGHTS), learner_for(estimator))
    name = "logisticregression__sample_weight" if hasattr(estimator, "steps") else "sample_weight"
    for i, seed in enumerate(seeds_of(fitted.recipe.seed, fitted.recipe.n_models)):
        chosen = fitted.trained_on(i)
        seeds = {key: seed for key in estimator.get_params() if key.endswith("random_state")}
        model = estimator.set_params(**seeds).fit(
            X[chosen], fitted.pool.labels[chosen], **{name: WEIGHTS[chosen]}
        )
        assert np.array_equal(fitted.ensemble.votes(fitted.pool.rows)[:, i], model.predict(X))


@pytest.mark.parametrize("name", TABLE_LEARNERS)
def test_class_weights_by_label_are_weights_of_records(name):
    """A weight by label does what the same weight on each record of the class does, in JSON and back."""
    if name in {"random-forest", "extra-trees"}:
        pytest.skip("forests multiply class weights into bootstrap counts in another order")
    plain = small_learner(name)
    by_label = learner_of_config(
        {**plain.config(), "params": params_to_json({**plain.params, "class_weight": {"sick": 6.0}})}
    )
    assert by_label.params["class_weight"] == {"sick": 6.0}
    assert learner_of_config(json.loads(json.dumps(by_label.config()))) == by_label
    first = quick_fit(Pool.of(X, Y), by_label)
    second = quick_fit(Pool.of(X, Y, weights=WEIGHTS), plain)
    assert np.array_equal(first.ensemble.votes(first.pool.rows), second.ensemble.votes(second.pool.rows))


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(class_weight={"c": 40.0}, max_iter=500),
        make_pipeline(StandardScaler(), LogisticRegression(class_weight={"c": 40.0})),
    ],
    ids=["stacked", "loop"],
)
def test_a_weight_is_of_its_label_also_where_a_subset_lacks_classes(estimator):
    """Codes shift in a subset without class b; the weight of c stays that of c."""
    labels = np.where(Y == "sick", "c", "a")
    labels[0] = "b"  # in half of the subsets
    fitted = quick_fit(Pool.of(X, labels), learner_for(estimator), recipe(n_models=6))
    votes = fitted.ensemble.votes(fitted.pool.rows)
    without = [i for i, one in enumerate(fitted.models) if 1 not in one.classes]
    assert len(without) == 3
    (name,) = (name for name in estimator.get_params() if name.endswith("class_weight"))
    by_code = clone(estimator).set_params(**{name: {1: 40.0}})
    for i in without:
        chosen = fitted.trained_on(i)
        model = by_code.fit(X[chosen], labels[chosen] == "c")
        assert np.array_equal(votes[:, i] == 2, model.predict(X))


@pytest.mark.parametrize(
    ("estimator", "params", "words"),
    [
        (
            "logistic",
            {"class_weight": {"sikc": 2.0}},
            "weighs 'sikc', which is none of the labels 'sick', 'well'",
        ),
        ("xgboost", {"class_weight": {"sick": -1.0}}, "the weight -1.0; a weight must be positive"),
        (GaussianNB(), {"class_weight": {}}, "an estimator has its own"),
        (make_pipeline(DecisionTreeClassifier(class_weight={2: 1.0})), None, "weighs 2, which is none of"),
    ],
    ids=str,
)
def test_weights_of_classes_that_are_refused(estimator, params, words):
    """A label that there is not, or a weight that is none, is refused before anything is trained."""
    with pytest.raises(InvalidInput, match=words):
        quick_fit(Pool.of(X, Y), learner_from(estimator, params))


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (WEIGHTS[:-1], r"one number for each of 200 records, got the shape \(199,\)"),
        (
            np.where(np.arange(200) == 7, 0.0, WEIGHTS),
            r"row 7 \(from 0\) is 0.0; a weight must be positive and finite",
        ),
        (np.where(np.arange(200) == 9, np.nan, WEIGHTS), r"row 9 \(from 0\) is nan"),
        (["heavy"] * 200, "must be numbers"),
        (np.zeros(200), "row 0 .* is 0.0"),
    ],
    ids=["length", "zero", "missing", "text", "zeros"],
)
def test_weights_of_records_that_are_refused(weights, words):
    """Weights are one positive number per record; another is named with its row."""
    with pytest.raises(InvalidTable, match=words):
        Pool.of(X, Y, weights=weights)


def test_learners_without_weights_say_so():
    """An estimator whose fit takes no weights is refused before anything is trained."""
    for estimator in (KNeighborsClassifier(), make_pipeline(StandardScaler(), KNeighborsClassifier())):
        with pytest.raises(InvalidInput, match="does not take weights"):
            quick_fit(Pool.of(X, Y, weights=WEIGHTS), learner_for(estimator))


def test_weights_are_part_of_the_records():
    """Other weights are other records to whoever verifies; no weights leave the hash what it was."""
    digests = {Pool.of(X, Y, weights=weights).digest() for weights in (None, WEIGHTS, 2 * WEIGHTS)}
    assert len(digests) == 3


def test_any_label_can_be_weighed():
    """Weights by labels of every kind that can be stored come back from JSON as they were."""
    params = {"C": 2.0, "class_weight": {1: 2.0, "a": 0.5, (1, "b"): 3.0, date(2020, 1, 2): 4.0}}
    assert params_from_json(json.loads(json.dumps(params_to_json(params)))) == params
