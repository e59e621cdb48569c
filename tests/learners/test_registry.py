"""Learners by name, by estimator and from an artifact's configuration."""

import json
import pickle
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from pacpredict.exceptions import BudgetExhausted, InvalidInput, MissingExtra
from pacpredict.learners import linear, registry, trees
from pacpredict.learners.heads.learner import Heads
from pacpredict.learners.learner import Learner
from pacpredict.learners.registry import (
    learner_for,
    learner_named,
    learner_names,
    learner_of_config,
)
from pacpredict.learners.torch.learner import BertLearner, WideResNetLearner

# What an artifact always says about these.
NEEDED = {
    "heads": {"features": "tfidf"},
    "wide-resnet": {"device": "cpu"},
    "bert-small": {"device": "cpu"},
}


def test_every_name_is_known_where_it_is_registered():
    """The table of names, which is read without importing any library, has the names that the learners have."""
    assert sorted(learner_names()) == sorted(
        ["xgboost", *linear.KINDS, *trees.KINDS, Heads.name, WideResNetLearner.name, BertLearner.name]
    )


def test_names_are_listed_without_libraries():
    """The terminal lists learners, and an artifact's models vote, without importing libraries that train."""
    code = (
        "import sys; from pacpredict.learners import registry as r; assert r.learner_names();"
        "assert 'numpy' not in sys.modules;"
        f"given = {NEEDED};"
        "[r.learner_of_config({'name': name, 'params': given.get(name, {})}) for name in r.learner_names()];"
        "assert not {'sklearn', 'xgboost', 'torch', 'onnxruntime'} & set(sys.modules), set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", learner_names())
def test_a_configuration_builds_the_same_learner(name):
    """A learner is described in JSON from which the same one is built again."""
    learner = learner_named(name, NEEDED.get(name))
    again = learner_of_config(json.loads(json.dumps(learner.config())))
    assert again == learner or name == "heads"  # which look for their extractor in the artifact
    assert type(again) is type(learner)
    assert again.config() == learner.config()
    assert not learner.needs_trust


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (XGBClassifier(max_depth=2), "xgboost"),
        (RandomForestClassifier(n_estimators=3), "random-forest"),
        (DecisionTreeClassifier(), "decision-tree"),
        (LogisticRegression(C=2.0), "logistic"),
        (GaussianNB(), "estimator"),
        (DecisionTreeClassifier(class_weight={0: 2.0, 1: 1.0}), "decision-tree"),
        (DecisionTreeClassifier(monotonic_cst=[1, 0]), "estimator"),
        (type("Special", (RandomForestClassifier,), {})(), "estimator"),
    ],
    ids=str,
)
def test_estimators_get_the_fastest_learner_that_is_right(estimator, name):
    """A known estimator is packed or stacked; subclasses and options that are not plain are asked as they are."""
    learner = learner_for(estimator)
    assert learner.name == name
    assert learner.needs_trust is (name == "estimator")


def test_options_of_an_estimator_are_kept():
    """What differs from the defaults reaches the learner, and nothing else does."""
    assert learner_for(LogisticRegression(C=2.0, tol=1e-3)).config()["params"] == {"C": 2.0, "tol": 1e-3}
    assert learner_for(XGBClassifier(max_depth=2)).config()["params"] == {"max_depth": 2}
    assert not learner_for(LogisticRegression()).standardise
    assert learner_named("logistic").standardise


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: learner_named("forest"), "no learner 'forest'; choose among xgboost, heads, logistic"),
        (
            lambda: learner_named("logistic", tune="halving"),
            "logistic has no settings that could be searched",
        ),
        (lambda: learner_named("xgboost", tune="yes"), "tune must be one of none, halving, full"),
        (lambda: learner_for(StandardScaler()), "has no predict"),
        (lambda: learner_for(LogisticRegression), "a class of them: call it"),
        (lambda: learner_for(3), "3 is not an estimator"),
        (lambda: learner_for(LinearRegression()), "LinearRegression.* does not predict classes"),
    ],
)
def test_what_cannot_learn_is_refused(call, words):
    """Before anything is trained, an unknown name or an object that is no classifier is refused in words."""
    with pytest.raises(InvalidInput, match=words):
        call()


def test_a_missing_package_is_named_first(monkeypatch):
    """Without XGBoost its learner says what to install, and so do estimators without skops when they are stored."""
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(MissingExtra, match=r"pip install 'pacpredict\[xgboost\]'"):
        learner_named("xgboost")
    monkeypatch.setitem(sys.modules, "skops.io", None)
    monkeypatch.setitem(sys.modules, "skops", None)
    with pytest.raises(MissingExtra, match=r"pip install 'pacpredict\[skops\]'"):
        learner_for(GaussianNB()).dump(GaussianNB())


def test_an_artifact_of_xgboost_needs_no_xgboost(monkeypatch):
    """Stored models vote without the library: only training needs it."""
    monkeypatch.setitem(sys.modules, "xgboost", None)
    assert learner_of_config({"name": "xgboost", "params": {}}).name == "xgboost"


@pytest.mark.parametrize(
    "error",
    [MissingExtra("skops", "this"), BudgetExhausted("no more", needed_nats=2.0, left_nats=1.0)],
    ids=repr,
)
def test_errors_come_out_of_another_process(error):
    """Exceptions with arguments survive the way from a worker process to its parent."""
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (type(error), str(error))
    assert getattr(again, "left_nats", None) == getattr(error, "left_nats", None)


def test_further_learners_register_themselves(monkeypatch):
    """A new kind of learner becomes known by a name, and recognises its estimators."""

    @dataclass(frozen=True)
    class Constant(Learner):
        name = "constant"
        answer: int = 0

        @classmethod
        def from_config(cls, config):
            return cls(config.get("params", {}).get("answer", 0))

        @classmethod
        def of(cls, estimator):
            return cls(7) if isinstance(estimator, GaussianNB) else None

    Constant.__abstractmethods__ = frozenset()  # how it trains does not matter here
    monkeypatch.setattr(registry, "_HOMES", dict(registry._HOMES))
    registry.register("constant", Constant)
    assert learner_named("constant", {"answer": 3}) == Constant(3)
    assert learner_for(GaussianNB()) == Constant(7)
    assert np.array_equal(learner_names()[-1:], ["constant"])
