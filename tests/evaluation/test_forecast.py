"""Forecasts: what they count, against counting by hand; and against what deployments then do."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, confusion_matrix
from voting import random_votes

from pacpredict import Budget, Curator, MemoryLedger, PrivateClassifier, evaluate
from pacpredict.core.decode import DECODERS, DECODERS_OF, check_decoder
from pacpredict.core.simulate import simulate
from pacpredict.evaluation.crossfit import Fold
from pacpredict.evaluation.forecast import forecast
from pacpredict.evaluation.score import Score
from pacpredict.exceptions import InvalidInput
from pacpredict.mechanism import entropy, secret
from pacpredict.training.recipe import Recipe

RNG = np.random.default_rng(0)
STEPS = (2.0**-4, 2.0**-20)


def fold(seed, n=80, m=8, n_classes=3):
    rng = np.random.default_rng(seed)
    votes = random_votes(rng, n, m, n_classes, dissent=0.2)
    truth = np.where(rng.random(n) < 0.7, votes[:, 0], rng.integers(n_classes, size=n)).astype(np.int64)
    return Fold(truth, votes, votes[:, 1])


FOLDS = [fold(1), fold(2)]
FOUND = forecast(FOLDS, 3, STEPS, n_trials=30, seed=5)


def test_scores_are_those_of_scikit_learn():
    """Accuracy, balanced accuracy and confusion of one unprotected model are what scikit-learn counts."""
    truth = np.concatenate([one.truth for one in FOLDS])
    answers = np.concatenate([one.unprotected for one in FOLDS])
    assert FOUND.unprotected.accuracy == pytest.approx(accuracy_score(truth, answers))
    assert FOUND.unprotected.balanced_accuracy == pytest.approx(balanced_accuracy_score(truth, answers))
    assert np.array_equal(FOUND.unprotected.confusion, confusion_matrix(truth, answers))
    each = [accuracy_score(truth, np.concatenate([one.votes[:, i] for one in FOLDS])) for i in range(8)]
    assert FOUND.half.accuracy == pytest.approx(np.mean(each))
    assert FOUND.majority == pytest.approx(np.bincount(truth).max() / len(truth))


def test_a_class_without_records_does_not_count():
    """Balanced accuracy is the mean over the classes that occur."""
    score = Score.of(np.array([0, 0, 2, 2]), np.array([[0, 1, 2, 2]]), 3)
    assert (score.accuracy, score.balanced_accuracy) == (0.75, 0.75)


def test_cases_are_simulated_deployments():
    """Each case is the mean over the trials of its decoder at its budget, and every decoder that there is has one."""
    assert [(case.decode, case.step_budget) for case in FOUND.cases] == [
        (d, b) for b in STEPS for d in DECODERS
    ]
    for case in FOUND.cases:
        runs = [
            simulate(
                one.votes,
                one.truth,
                case.step_budget,
                n_trials=30,
                seed=5 + i,
                mechanism=check_decoder(case.decode)[0],
            )
            for i, one in enumerate(FOLDS)
        ]
        right = sum(run.correct[case.decode].sum() for run in runs)
        assert case.accuracy == pytest.approx(right / (30 * 160))
        assert case.accuracy == case.score.accuracy
        assert case.score.confusion.sum() == pytest.approx(160)
    assert FOUND.case("map", 2.0**-20).step_budget == 2.0**-20


def test_where_models_differ():
    """The share on which models differ is counted, and accuracy among these apart from the others."""
    votes, truth = np.concatenate([one.votes for one in FOLDS]), np.concatenate([one.truth for one in FOLDS])
    differ = np.array([len(set(row)) > 1 for row in votes])
    assert FOUND.contested == pytest.approx(differ.mean())
    right = (votes == truth[:, None]).mean(axis=1)
    assert FOUND.half_where_contested == pytest.approx(right[differ].mean())
    for case in FOUND.cases:
        agreed = (votes[:, 0] == truth)[~differ].mean()
        assert case.accuracy == pytest.approx(
            FOUND.contested * case.where_contested + (1 - FOUND.contested) * agreed
        )


def test_the_deviation_is_that_of_one_deployment():
    """Over many draws of records, secrets and noise, the accuracy of one deployment varies as the forecast says."""
    big = fold(3, n=40_000)
    accuracies, said = [], []
    for i in range(150):
        chosen = np.random.default_rng(i).integers(0, 40_000, 60)
        part = Fold(big.truth[chosen], big.votes[chosen], big.unprotected[chosen])
        found = forecast([part], 3, [2.0**-4], n_trials=20, seed=i)
        runs = {
            name: simulate(
                part.votes, part.truth, 2.0**-4, n_trials=1, seed=10_000 + i, n_classes=3, mechanism=name
            )
            for name in DECODERS_OF
        }
        accuracies.append([runs[check_decoder(decode)[0]].accuracy(decode)[0, -1] for decode in DECODERS])
        said.append([case.sd for case in found.cases])
    ratio = np.std(accuracies, axis=0) / np.mean(said, axis=0)
    assert ratio == pytest.approx(1.0, abs=0.2)  # the deviation of 150 draws is known to 6 %


def noisy(n, seed, deviation=1.2):
    """Return records of three classes that are hard to tell apart, so that models disagree."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return X, np.digitize(X[:, 0] + 0.5 * X[:, 1] + rng.normal(0, deviation, n), [-0.8, 0.8])


def test_deployments_do_what_was_forecast():
    """On average over draws of the data, real deployments are as accurate as was forecast, to within one sd.

    Each draw is forecast from 300 records; then deployments are fitted on them and asked about as many new ones as were
    held out at a time. The mean of 16 differences has a deviation of a quarter of an sd: one sd is four of these, and
    the bias that training on fewer records brings must be small beside it.
    """
    differences = []
    for seed in range(16):
        X, y = noisy(360, seed)
        common = {"n_models": 16, "n_jobs": 1, "random_state": seed}
        found = evaluate(X[:300], y[:300], "ridge", step_budgets=STEPS, trials=20, **common).forecast
        ensemble = PrivateClassifier("ridge", **common).fit(X[:300], y[:300]).curator_.ensemble
        for case in found.cases:
            how = Recipe(seed, Budget(case.step_budget, 60 * case.step_budget), 16, decode=case.decode)
            answers = Curator(ensemble, how, MemoryLedger()).ask(X[300:]).labels  # its secret is the system's
            differences.append((float((answers == y[300:]).mean()) - case.accuracy) / case.sd)
    by_case = np.reshape(differences, (16, -1))
    assert np.abs(by_case.mean(axis=0)).max() < 1.0
    assert (
        np.sqrt(np.square(by_case).mean(axis=0)).max() < 2.0
    )  # about 1.1 is expected, with a deviation of 0.2


def test_the_forecast_of_the_api():
    """The object has the figures that it prints as JSON, for any estimator, and repeats itself."""
    X, y = noisy(120, 1)
    options = {"n_models": 4, "trials": 5, "folds": 3, "n_jobs": 1, "step_budgets": STEPS}
    first, second = (
        evaluate(X, y, "decision-tree", params={"max_depth": 2}, **options).to_json() for _ in range(2)
    )
    assert first == second
    assert set(first) >= {"unprotected", "half", "contested", "cases"}
    assert all(set(case) == {"decode", "step_budget", "accuracy", "sd"} for case in first["cases"])
    assert len(first["cases"]) == len(DECODERS) * 2
    assert first["details"]["labels"] == ["0", "1", "2"]
    assert (first["records"], first["models"], first["folds"], first["trials"]) == (120, 4, 3, 5)
    weighted = evaluate(X, y, "decision-tree", params={"class_weight": {0: 50.0}}, **options).to_json()
    confusions = [np.array(one["details"]["half"]["confusion"]) for one in (first, weighted)]
    assert confusions[1][:, 0].sum() > confusions[0][:, 0].sum()


def test_nothing_is_drawn_or_kept(monkeypatch):
    """Evaluating draws no secret, and takes no noise from the operating system."""

    def refuse(*_):
        pytest.fail("a secret was drawn")

    monkeypatch.setattr(entropy.SystemEntropy, "__init__", refuse)
    monkeypatch.setattr(secret.Secret, "draw", refuse)
    evaluate(*noisy(60, 2), "decision-tree", n_models=4, trials=2, folds=2, n_jobs=1, step_budgets=[2.0**-8])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"trials": 0}, "trials must be at least 1"),
        ({"folds": 1}, "from 2 to 60 folds"),
        ({"n_models": 5}, "even"),
        ({"step_budgets": [-1.0]}, "budget"),
    ],
    ids=str,
)
def test_what_cannot_be_evaluated(options, words):
    """What makes no sense is said before anything is trained."""
    with pytest.raises(InvalidInput, match=words):
        evaluate(*noisy(60, 2), "decision-tree", **{"n_models": 4, "n_jobs": 1, **options})


def test_less_budget_is_more_noise():
    """A smaller budget never makes argmax better."""
    X, y = noisy(200, 4, deviation=0.5)
    steps = (4.0, 2.0**-6, 2.0**-30)
    found = evaluate(X, y, "decision-tree", n_models=16, trials=60, n_jobs=1, step_budgets=steps).forecast
    by_budget = [found.case("argmax", step).accuracy for step in steps]
    assert by_budget == sorted(by_budget, reverse=True)
    assert by_budget[0] > by_budget[-1] + 0.03
    assert by_budget[0] == pytest.approx(
        found.half.accuracy, abs=0.02
    )  # with hardly any noise it is one of the models
