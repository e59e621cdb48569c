"""Simulated deployments equal real sessions, and do not depend on how they are run."""

import math

import numpy as np
import pytest
from voting import random_votes

from pacpredict import Budget, Secret, Session, simulate
from pacpredict.exceptions import (
    InvalidBudget,
    InvalidInput,
    InvalidModelCount,
    InvalidProbability,
    InvalidSubsets,
    InvalidVotes,
)
from pacpredict.training.subsets import balanced

M, D, ROWS = 16, 4, 60


@pytest.fixture(scope="module")
def votes():
    return random_votes(np.random.default_rng(0), ROWS, M, D, dissent=0.15)


@pytest.fixture(scope="module")
def truth(votes):
    """Labels of which a third is not what most models say, also where all agree."""
    return (votes[:, 0].astype(int) + (np.arange(ROWS) % 3 == 0)) % D


@pytest.mark.parametrize(
    ("decode", "odds_limit"),
    [("argmax", None), ("map", None), ("argmax", 2.0), ("sample", None), ("sample", 0.2)],
)
def test_a_trial_is_a_session(votes, truth, decode, odds_limit):
    """Driven by the trial's own generator, a session gives the same labels, spend and belief, bit for bit."""
    membership, delta = balanced(M, 20, np.random.default_rng(1)), 0.01
    budget = Budget(2**-6, 150 * 2**-6, odds_limit=odds_limit, odds_delta=delta)
    run = simulate(
        *(votes, truth, 2**-6), n_trials=3, seed=7, n_queries=150, checkpoints=[100, 150],
        mechanism="channel" if decode == "sample" else "gaussian",
        odds_limit=odds_limit, delta=delta, membership=membership,
    )  # fmt: skip
    for trial, seed in enumerate(np.random.SeedSequence(7).spawn(3)):
        generator = np.random.Generator(np.random.SFC64(seed))
        secret = int(generator.integers(M))
        assert secret == run.secrets[trial]
        session = Session(D, budget, M, secret=Secret(secret, M), decode=decode, generator=generator)
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
        if odds_limit is not None:
            assert np.ptp(session.belief.log_probabilities) <= odds_limit
    assert (run.believed.sum() > 0) == (odds_limit is not None)


def test_kept_answers_are_the_ones_that_are_counted(votes, truth):
    """The labels that were given last to each row add up to the right ones that are counted, for every decoder."""
    run = simulate(votes, truth, 2**-6, n_trials=4, seed=7, keep_answers=True)
    assert set(run.answers) == set(run.correct)
    for decode, answers in run.answers.items():
        assert answers.shape == (4, ROWS)
        assert np.array_equal((answers == truth).sum(axis=1), run.correct[decode][:, -1])
    assert np.array_equal(run.log_belief, simulate(votes, truth, 2**-6, n_trials=4, seed=7).log_belief)
    assert simulate(votes, truth, 2**-6, n_trials=1, seed=7).answers is None


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
    """At every checkpoint the attack guesses each record by the belief's posterior."""
    membership = balanced(M, 300, np.random.default_rng(3))
    run = simulate(votes, truth, 2**-4, n_trials=5, seed=4, checkpoints=[20, 60], membership=membership)
    for trial in range(5):
        for stop in range(2):
            guess = run.belief(trial, stop).membership_posterior(membership) > 0.5 + 1e-12
            expected = np.mean(guess == membership[run.secrets[trial]])
            assert run.membership_accuracy[trial, stop] == pytest.approx(expected, abs=0.01)


def test_a_tie_is_a_guess_against_membership(votes, truth):
    """Beliefs are added up exactly, in units of 2^-52: where both sides weigh the same the record is said to be out."""
    membership = balanced(M, 300, np.random.default_rng(3))
    run = simulate(votes, truth, 2**-4, n_trials=5, seed=4, checkpoints=[1, 3, 60], membership=membership)
    n_ties = 0
    for trial, stop in np.ndindex(5, 3):
        units = [round(math.exp(p) * 2**52) for p in run.log_belief[trial, stop]]
        lean = [
            sum(u if member else -u for u, member in zip(units, record, strict=True))
            for record in membership.T
        ]
        n_ties += lean.count(0)
        guess = np.array(lean, object) > 0
        assert run.membership_accuracy[trial, stop] == np.mean(guess == membership[run.secrets[trial]])
    assert n_ties > 50


def test_labels_of_a_channel_are_as_accurate_as_the_secret_model(votes, truth):
    """At a large budget and at a tiny one the mean accuracy is that of a single model."""
    single = np.mean(votes == truth[:, None])
    for b in (2.0**-2, 2.0**-30):
        accuracy = simulate(votes, truth, b, n_trials=400, seed=8, mechanism="channel").accuracy("sample")
        assert abs(accuracy.mean() - single) < 4 * accuracy.std() / 20


def test_a_limit_keeps_all_odds(votes, truth):
    """Whatever the mechanism, no two subsets end farther apart than the limit in any trial; without one they do."""
    options = {"n_trials": 20, "seed": 10, "n_queries": 300}
    for mechanism, limit in (("channel", 0.3), ("gaussian", 3.0)):
        largest = {}
        for odds_limit in (None, limit):
            run = simulate(
                votes, truth, 2**-5, mechanism=mechanism, odds_limit=odds_limit, delta=0.01, **options
            )
            largest[odds_limit] = np.ptp(run.log_belief[:, -1], axis=1).max()
        assert largest[limit] <= limit < largest[None]


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
        ({"mechanism": "laplace"}, InvalidInput),
        ({"odds_limit": -1.0}, InvalidProbability),
        ({"odds_limit": 1.0, "delta": 0.0, "membership": np.ones((M, 5))}, InvalidInput),
    ],
)
def test_bad_input_is_named(votes, truth, change, error):
    """Each kind of bad input raises its own exception."""
    arguments = {"votes": votes, "labels": truth, "step_budget": 2**-8, "n_trials": 1, "seed": 0} | change
    with pytest.raises(error):
        simulate(**arguments)
