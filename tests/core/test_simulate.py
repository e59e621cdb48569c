"""Simulated deployments equal real sessions, and do not depend on how they are run."""

import math

import numpy as np
import pytest

from pacpredict import Budget, Secret, Session, simulate
from pacpredict.ensemble.subsets import balanced
from pacpredict.exceptions import InvalidBudget, InvalidInput, InvalidModelCount, InvalidSubsets, InvalidVotes
from voting import random_votes

M, D, ROWS = 16, 4, 60


@pytest.fixture(scope="module")
def votes():
    return random_votes(np.random.default_rng(0), ROWS, M, D, dissent=0.15)


@pytest.fixture(scope="module")
def truth(votes):
    return votes[:, 0].astype(int)


@pytest.mark.parametrize("decode", ["argmax", "map"])
def test_a_trial_is_a_session(votes, truth, decode):
    """Driven by the trial's own generator, a session gives the same labels, spend and belief, bit for bit."""
    run = simulate(votes, truth, 2**-6, n_trials=3, seed=7, n_queries=150, checkpoints=[100, 150])
    for trial, seed in enumerate(np.random.SeedSequence(7).spawn(3)):
        generator = np.random.Generator(np.random.SFC64(seed))
        secret = int(generator.integers(M))
        assert secret == run.secrets[trial]
        session = Session(
            D, Budget(2**-6, 100), M, secret=Secret(secret, M), decode=decode, generator=generator
        )
        order, right = np.arange(ROWS), 0
        for t in range(150):
            if t % ROWS == 0:
                generator.shuffle(order)
            q = order[t % ROWS]
            right += session.answer(votes[q]).label == truth[q]
            if t + 1 == 100:
                assert right == run.correct[decode][trial, 0]
        assert right == run.correct[decode][trial, 1]
        assert session.guarantee().spent_nats == run.spent_nats()[trial, 1]
        assert np.array_equal(session.belief.log_probabilities, run.log_belief[trial, 1])


def test_results_do_not_depend_on_the_number_of_threads(votes, truth):
    """One thread or four: the same trials, bit for bit; and more trials extend fewer."""
    one = simulate(votes, truth, 2**-10, n_trials=8, seed=1, n_jobs=1)
    four = simulate(votes, truth, 2**-10, n_trials=12, seed=1, n_jobs=4)
    assert np.array_equal(one.log_belief, four.log_belief[:8])
    assert np.array_equal(one.correct["argmax"], four.correct["argmax"][:8])


def test_without_noise_the_secret_model_answers(votes, truth):
    """At infinite budget the accuracy is the secret model's own, and only its twins remain believable."""
    run = simulate(votes, truth, math.inf, n_trials=20, seed=2)
    for trial, secret in enumerate(run.secrets):
        assert run.accuracy()[trial, 0] == run.accuracy("map")[trial, 0] == np.mean(votes[:, secret] == truth)
        twins = (votes == votes[:, [secret]]).all(axis=0)
        np.testing.assert_allclose(run.belief(trial).probabilities(), twins / twins.sum())


def test_membership_accuracy_is_that_of_the_optimal_rule(votes, truth):
    """At every checkpoint the attack guesses each record by the belief's exposure."""
    membership = balanced(M, 300, np.random.default_rng(3))
    run = simulate(votes, truth, 2**-4, n_trials=5, seed=4, checkpoints=[20, 60], membership=membership)
    for trial in range(5):
        for stop in range(2):
            guess = run.belief(trial, stop).exposure(membership) > 0.5 + 1e-12
            expected = np.mean(guess == membership[run.secrets[trial]])
            assert run.membership_accuracy[trial, stop] == pytest.approx(expected, abs=0.01)


def test_spend_counts_contested_queries_or_all(votes, truth):
    """Adaptive charging pays for contested queries, flat charging for every one."""
    run = simulate(votes, truth, 2**-8, n_trials=2, seed=5)
    contested = (votes != votes[:, :1]).any(axis=1).sum()
    np.testing.assert_array_equal(run.spent_nats(), contested * 2**-8)
    np.testing.assert_array_equal(run.spent_nats("flat"), ROWS * 2**-8)


def test_progress_is_reported_trial_by_trial(votes, truth):
    """A progress bar hears of every finished trial."""
    heard = []
    simulate(votes, truth, 2**-8, n_trials=4, seed=5, progress=heard.append)
    assert heard == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"step_budget": 0.0}, InvalidBudget),
        ({"step_budget": math.nan}, InvalidBudget),
        ({"step_budget": -1.0}, InvalidBudget),
        ({"n_trials": 0}, InvalidInput),
        ({"checkpoints": [0]}, InvalidInput),
        ({"checkpoints": [ROWS + 1]}, InvalidInput),
        ({"labels": np.zeros(ROWS - 1, int)}, InvalidVotes),
        ({"labels": np.zeros(ROWS)}, InvalidVotes),
        ({"votes": np.zeros((ROWS, 3), int)}, InvalidModelCount),
        ({"votes": np.zeros((0, M), int)}, InvalidVotes),
        ({"n_classes": 2}, InvalidVotes),
        ({"membership": np.zeros((M + 1, 5))}, InvalidSubsets),
    ],
)
def test_bad_input_is_named(votes, truth, change, error):
    """Each kind of bad input raises its own exception."""
    arguments = {"votes": votes, "labels": truth, "step_budget": 2**-8, "n_trials": 1, "seed": 0} | change
    with pytest.raises(error):
        simulate(**arguments)
