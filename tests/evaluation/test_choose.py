"""Choosing learners and settings by what a deployment would be worth."""

import numpy as np
import pytest
from records import recipe
from sklearn.naive_bayes import GaussianNB

from pacpredict import PrivateClassifier
from pacpredict.evaluation import choose as module
from pacpredict.evaluation.choose import choose
from pacpredict.exceptions import InvalidInput
from pacpredict.learners.registry import learner_for, learner_from, learner_named, learner_names
from pacpredict.training.pool import Pool


def noisy_pool(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    return Pool.of(X, (X[:, 0] + rng.normal(0, 0.7, n) > 0).astype(int))


def test_private_accuracy_prefers_models_that_agree():
    """Of a tree that learns its records by heart and one with large leaves, the latter answers better privately."""
    deep, flat = (learner_from("decision-tree", {"min_samples_leaf": n}) for n in (1, 60))
    how = recipe(n_models=16, step=2.0**-30)
    choice = choose(noisy_pool(), [deep, flat], how, "private", n_jobs=1)
    assert choice.learner is flat
    assert choice.accuracy > 0.65


def test_a_model_alone_may_be_chosen_otherwise(monkeypatch):
    """What is best for one model need not be for a deployment: the goal decides."""
    monkeypatch.setattr(
        module, "votes_outside", lambda pool, held_out, learner, how, **_: VOTES[learner][held_out]
    )
    rng = np.random.default_rng(0)
    pool = noisy_pool(200)
    right = pool.labels[:, None]
    # One is right in 80 % of cases, each time another model; the other in 75 %, all models on the same records.
    varied = np.where(rng.random((200, 8)) < 0.2, 1 - right, right).astype(np.int16)
    agreed = np.where((np.arange(200) % 4 == 0)[:, None], 1 - right, right).repeat(8, axis=1).astype(np.int16)
    VOTES = {"varied": varied, "agreed": agreed}
    how = recipe(n_models=8, step=2.0**-30)
    assert choose(pool, ["varied", "agreed"], how, "accuracy").learner == "varied"
    assert choose(pool, ["varied", "agreed"], how, "private").learner == "agreed"


def test_halving_tries_all_with_few_models_and_the_best_with_more(monkeypatch):
    """Every candidate enters, a quarter of them goes on, and models are counted."""
    tried, steps = [], []

    def score(self, learner, how):
        tried.append((learner, how.n_models))
        return -abs(learner - 6)

    monkeypatch.setattr(module._Trial, "score", score)
    choice = choose(
        noisy_pool(100),
        list(range(16)),
        recipe(n_models=128),
        "private",
        progress=lambda *step: steps.append(step),
    )
    assert tried[:16] == [(i, 16) for i in range(16)]
    assert [one for one, models in tried[16:] if models == 64] == [6, 5, 7, 4]
    assert choice.learner == 6
    assert steps[0] == (0, 16 * 16 + 4 * 64)
    assert steps[-1] == (16 * 16 + 4 * 64,) * 2


def test_no_more_models_than_there_will_be(monkeypatch):
    """A small deployment is tried as it will be."""
    tried = []
    monkeypatch.setattr(module._Trial, "score", lambda _, learner, how: tried.append(how.n_models) or 0.0)
    choose(noisy_pool(100), [1, 2], recipe(n_models=4), "accuracy")
    assert set(tried) == {4}


OF_TABLES = [name for name in learner_names() if name not in ("heads", "wide-resnet", "bert-small")]


@pytest.mark.parametrize("name", OF_TABLES)
def test_every_learner_has_settings_to_choose_among(name):
    """Without a search a learner stands for itself; with one, others of its kind with other settings do, too."""
    learner = learner_named(name)
    assert learner.candidates("none", 1) == [learner]
    few, every = learner.candidates("halving", 1), learner.candidates("full", 1)
    assert few[0] == every[0] == learner
    assert len(few) <= 16
    assert len(every) >= len(few)
    assert (len(few) > 1) is (name != "perceptron")
    assert {type(one) for one in every} == {type(learner)}
    assert few == learner.candidates("halving", 1)
    if name == "xgboost":
        assert len(every) == 1459
        assert few != learner.candidates("halving", 2)


def test_any_estimator_stands_for_itself():
    """A user's own estimator has the settings that it has."""
    learner = learner_for(GaussianNB())
    assert learner.candidates("full", 1) == [learner]


def test_an_unknown_goal():
    """What to choose by is one of two things."""
    with pytest.raises(InvalidInput, match="one of accuracy, private, got 'speed'"):
        choose(noisy_pool(50), [learner_named("ridge")], recipe(), "speed")


def test_a_classifier_is_tuned_for_private_answers():
    """The estimator chooses among settings of a learner by name, and fits all models with the chosen one."""
    pool = noisy_pool()
    X, y = pool.rows.numbers, pool.labels
    options = {"tune": "halving", "tune_for": "private", "n_models": 4, "n_jobs": 1, "random_state": 0}
    classifier = PrivateClassifier("decision-tree", **options).fit(X, y)
    chosen = classifier._fit.learner.params["min_samples_leaf"]
    assert chosen >= 20  # leaves of one record make models that disagree
    assert all(one.notes["min_samples_leaf"] == chosen for one in classifier._fit.models)
    with pytest.raises(InvalidInput, match="--tune-for private"):
        PrivateClassifier("decision-tree", tune="halving").fit(X, y)
