"""Priors against brute force over all models and all possible guesses."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from subsets_by_hand import memberships, random_weights, seeds

from pacpredict.core.attacks import QUESTIONS
from pacpredict.core.priors import (
    Records,
    attack_priors,
    full_set_prior,
    group_any_prior,
    group_exact_prior,
    group_priors,
    membership_priors,
    model_prior,
    reconstruction_prior,
    simulate_group_priors,
)
from pacpredict.exceptions import InvalidBelief, InvalidSubsets, InvalidVotes
from pacpredict.training.subsets import balanced

FIVE_MODELS = np.array(
    [
        [1, 1, 0, 0],
        [1, 0, 0, 1],
        [1, 1, 0, 0],
        [0, 1, 0, 1],
        [0, 1, 1, 0],
    ],
    dtype=bool,
)
SKEWED = np.array([0.1, 0.2, 0.3, 0.35, 0.05])


def best_guess(succeeds, guesses, weights):
    """Return the largest probability with which one guess succeeds, by trying all of them."""
    return max(math.fsum(w for i, w in enumerate(weights) if succeeds(guess, i)) for guess in guesses)


@settings(deadline=None)
@given(membership=memberships, seed=seeds)
def test_membership_matches_brute_force(membership, seed):
    """The prior of one record is the better of the two constant guesses."""
    weights = random_weights(len(membership), seed)
    got = membership_priors(membership, weights)
    for record in range(membership.shape[1]):
        best = best_guess(lambda guess, i, u=record: membership[i, u] == guess, (False, True), weights)
        assert got[record] == pytest.approx(best, rel=1e-14)


@settings(deadline=None)
@given(membership=memberships, seed=seeds)
def test_group_matches_brute_force(membership, seed):
    """The prior of a group is the best of all 2^k configurations."""
    rng = np.random.default_rng(seed)
    weights = random_weights(len(membership), seed)
    records = rng.integers(0, membership.shape[1], size=rng.integers(1, 4)).tolist()
    guesses = itertools.product((False, True), repeat=len(records))
    best = best_guess(lambda guess, i: tuple(membership[i, records]) == guess, guesses, weights)
    assert group_exact_prior(membership, records, weights) == pytest.approx(best, rel=1e-15)
    any_of = best_guess(lambda guess, i: membership[i, records].any() == guess, (False, True), weights)
    assert group_any_prior(membership, records, weights) == pytest.approx(any_of, rel=1e-15)


@settings(deadline=None)
@given(membership=memberships, seed=seeds)
def test_sets_and_records_match_brute_force(membership, seed):
    """The best record and the best whole set are found among all candidates."""
    weights = random_weights(len(membership), seed)
    m, n = membership.shape
    best_record = best_guess(lambda u, i: membership[i, u], range(n), weights)
    best_set = best_guess(lambda j, i: (membership[i] == membership[j]).all(), range(m), weights)
    assert reconstruction_prior(membership, weights=weights) == pytest.approx(best_record, rel=1e-15)
    assert full_set_prior(membership, weights) == pytest.approx(best_set, rel=1e-15)


def test_hand_computed_values():
    """Five small subsets whose priors can be read off."""
    assert membership_priors(FIVE_MODELS).tolist() == [0.6, 0.8, 0.8, 0.6]
    assert group_exact_prior(FIVE_MODELS, (0, 1)) == 0.4
    assert group_exact_prior(FIVE_MODELS, (2,)) == group_any_prior(FIVE_MODELS, (2,)) == 0.8
    assert group_any_prior(FIVE_MODELS, (0, 1)) == 1
    assert group_any_prior(FIVE_MODELS, (2, 3)) == 0.6
    assert reconstruction_prior(FIVE_MODELS) == 0.8
    assert full_set_prior(FIVE_MODELS) == 0.4
    assert full_set_prior(FIVE_MODELS, SKEWED) == pytest.approx(0.4, rel=1e-15)
    assert full_set_prior(FIVE_MODELS[[0, 1, 3, 4]]) == 0.25


def test_zero_one_arrays_are_membership_too():
    """Integers and floats of 0 and 1 mean the same as booleans."""
    for kind in (np.int64, np.uint8, np.float64):
        assert full_set_prior(FIVE_MODELS.astype(kind)) == full_set_prior(FIVE_MODELS)
    assert group_exact_prior(FIVE_MODELS.astype(int).tolist(), [0, 1]) == 0.4


def test_the_two_questions_about_a_group_go_opposite_ways():
    """Figure group_mia_prior: which of them falls from 1/2 to about 1/m; whether any of them rises to 1."""
    rng = np.random.default_rng(7)
    membership = balanced(128, 400, rng)
    curve = [simulate_group_priors(membership, k, rng, n_groups=200) for k in (1, 2, 3, 5, 8, 12, 30)]
    exact, any_of = ([point.exact.mean for point in curve], [point.any.mean for point in curve])
    assert curve[0].exact == curve[0].any == (0.5, 0.0)
    assert exact == sorted(exact, reverse=True)
    assert any_of == sorted(any_of)
    assert 0.25 <= exact[1] < 0.35
    assert exact[-1] == pytest.approx(1 / 128)
    np.testing.assert_allclose(any_of[:4], [1 / 2, 3 / 4, 7 / 8, 31 / 32], atol=0.01)
    assert any_of[-1] == 1
    assert all(0 < point.exact.sd < 0.05 for point in curve[1:4])


def test_simulated_group_priors_average_the_exact_ones():
    """Over all pairs of a small pool the simulated means approach the exact means."""
    rng = np.random.default_rng(3)
    got = simulate_group_priors(FIVE_MODELS, 2, rng, n_groups=4000, weights=SKEWED)
    for prior, spread in ((group_any_prior, got.any), (group_exact_prior, got.exact)):
        every = [prior(FIVE_MODELS, pair, SKEWED) for pair in itertools.combinations(range(4), 2)]
        assert spread.mean == pytest.approx(np.mean(every), abs=5 * spread.sd / math.sqrt(4000))
        assert spread.sd == pytest.approx(np.std(every), rel=0.1)


@pytest.mark.parametrize(("m", "n"), [(2, 12), (4, 12), (128, 14)])
def test_few_groups_are_all_counted(m, n):
    """The means over groups are then those over all groups, whichever the pool is."""
    for seed in range(4):
        membership = balanced(m, n, np.random.default_rng(seed))
        every = list(itertools.combinations(range(n), 3))
        found = group_priors(membership, 3)
        for name, prior in (("group-any", group_any_prior), ("group-exact", group_exact_prior)):
            assert found[name] == pytest.approx(
                np.mean([prior(membership, group) for group in every]), abs=1e-12
            )


@pytest.mark.parametrize(("n", "size"), [(30, 5), (60, 3), (70, 63)])
def test_a_mean_over_groups_is_never_too_low(monkeypatch, n, size):
    """Where groups are too many to count them all, what is reported lies above the mean, and near to it."""
    monkeypatch.setattr("pacpredict.core.priors.N_GROUPS", 5000)
    membership = balanced(16, n, np.random.default_rng(2))
    found = group_priors(membership, size)
    mean = simulate_group_priors(membership, size, np.random.default_rng(3), n_groups=4000)
    for name, spread in (("group-any", mean.any), ("group-exact", mean.exact)):
        assert spread.mean < found[name] + 1e-12 < min(spread.mean + 0.02, 1) + 1e-9


def test_simulation_repeats_with_its_generator():
    """The same seed gives the same groups."""
    twice = [simulate_group_priors(FIVE_MODELS, 2, np.random.default_rng(5), n_groups=20) for _ in range(2)]
    assert twice[0] == twice[1]


def test_balanced_subsets_have_exact_priors():
    """With each record in half of the subsets membership and reconstruction are exactly 1/2 for any m."""
    for m in (2, 6, 100, 128):
        membership = balanced(m, 50, np.random.default_rng(m))
        assert (membership_priors(membership) == 0.5).all()
        assert reconstruction_prior(membership) == 0.5
        assert group_exact_prior(membership, [3]) == group_any_prior(membership, [3]) == 0.5
        assert full_set_prior(membership) == 1 / m


def test_model_prior_overstates():
    """Models that vote alike count together; fewer probes can only join models, so the prior can only grow."""
    votes = np.array([[0, 1, 2], [0, 1, 1], [0, 1, 2], [1, 1, 2]])
    assert model_prior(votes) == 0.5
    assert model_prior(votes[:, :2]) == 0.75
    assert model_prior(votes[:, ::2]) == 0.5
    assert model_prior(votes, [0.1, 0.6, 0.1, 0.2]) == pytest.approx(0.6)
    assert model_prior(np.arange(4)[:, None]) == 0.25


@settings(deadline=None)
@given(membership=memberships, seed=seeds)
def test_contents_match_brute_force(membership, seed):
    """A content is named rightly whenever any unit that has a record of it is in the subset."""
    rng = np.random.default_rng(seed)
    m, n = membership.shape
    weights = random_weights(m, seed)
    units = np.concatenate([np.arange(n), rng.integers(0, n, 4)])
    contents = rng.integers(0, 4, len(units)) * 7 - 3  # any numbers will do
    best = best_guess(
        lambda content, i: membership[i, units[contents == content]].any(), set(contents.tolist()), weights
    )
    assert reconstruction_prior(membership, Records(units, contents), weights) == pytest.approx(
        best, rel=1e-15
    )


def test_the_same_content_in_two_units_is_named_more_often():
    """Drawn separately, one of two twins is in 3/4 of the subsets; as one unit in half."""
    membership = np.array([[0, 0, 1, 1], [0, 1, 0, 1]], dtype=bool).T
    assert reconstruction_prior(membership) == 0.5
    assert reconstruction_prior(membership, Records(np.arange(2), np.zeros(2, int))) == 0.75
    assert reconstruction_prior(membership[:, :1], Records(np.zeros(2, int), np.zeros(2, int))) == 0.5


def test_the_table_of_all_attacks():
    """Each attack has the prior that its own function counts."""
    rng = np.random.default_rng(5)
    membership = balanced(16, 40, rng)
    membership[3] = membership[5]  # an equal subset, and some units in more or fewer than half
    records = Records(np.arange(40), np.r_[np.arange(39), 0])
    votes = rng.integers(0, 2, (16, 3))
    table = attack_priors(membership, records, votes)
    assert table.keys() == QUESTIONS.keys()
    assert table["membership"] == membership_priors(membership).max() > 0.5
    assert table["reconstruction"] == reconstruction_prior(membership, records) > 0.5
    assert (table["full-set"], table["model"]) == (2 / 16, model_prior(votes))
    assert table["group-exact"] < 0.5 < 0.9 < table["group-any"] < 1
    assert attack_priors(membership, records, votes) == table
    pairs = attack_priors(membership, records, votes, group_size=2)
    assert pairs["group-exact"] > table["group-exact"]
    assert pairs["group-any"] < table["group-any"]


def test_a_million_records():
    """A pool of a million records is handled in pieces."""
    row = np.random.default_rng(0).random(1_000_000) < 0.5
    membership = np.stack([row, ~row, row, ~row])
    assert (membership_priors(membership) == 0.5).all()
    assert np.allclose(membership_priors(membership, [0.4, 0.1, 0.4, 0.1]), 0.8, rtol=1e-15, atol=0)
    assert full_set_prior(membership) == 0.5
    assert simulate_group_priors(membership, 5, np.random.default_rng(0), n_groups=10).exact.mean == 0.5
    assert reconstruction_prior(membership.astype(np.uint8)) == 0.5


def test_a_million_records_fit_into_memory():
    """The priors of 128 x 1,000,000 memberships, a gigabyte as floats, take less than 100 MB."""
    membership = np.broadcast_to(np.arange(128)[:, None] % 2 == 0, (128, 1_000_000))
    tracemalloc.start()
    membership_priors(membership)
    full_set_prior(membership)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6


@pytest.mark.parametrize(
    "membership",
    [
        [0, 1],
        [],
        [[]],
        np.zeros((2, 2, 2)),
        [[0, 2]],
        [[0.5, 1]],
        [[np.nan, 1]],
        [["yes", "no"]],
        [[0, 1], [1]],
    ],
)
def test_membership_that_is_refused(membership):
    """Anything but a matrix of 0 and 1 is an error of the package."""
    for prior in (membership_priors, full_set_prior, reconstruction_prior):
        with pytest.raises(InvalidSubsets):
            prior(membership)


@pytest.mark.parametrize("records", [[], [4], [-1], [0.5], [[0]], ["a"], 3])
def test_records_that_are_refused(records):
    """Groups are non-empty lists of numbers of units that exist."""
    for prior in (group_any_prior, group_exact_prior):
        with pytest.raises(InvalidSubsets, match="units"):
            prior(FIVE_MODELS, records)
    with pytest.raises(InvalidSubsets, match="units"):
        reconstruction_prior(FIVE_MODELS, Records(np.array([0, 4]), np.array([0, 1])))
    with pytest.raises(InvalidSubsets, match="4 records have units and 3 have contents"):
        reconstruction_prior(FIVE_MODELS, Records(np.arange(4), np.arange(3)))


@pytest.mark.parametrize(("size", "groups"), [(0, 10), (5, 10), (2, 1)])
def test_simulations_that_are_refused(size, groups):
    """Groups must fit into the pool, and a spread needs two of them."""
    with pytest.raises(InvalidSubsets):
        simulate_group_priors(FIVE_MODELS, size, np.random.default_rng(0), n_groups=groups)


def test_weights_that_are_refused():
    """Weights are a distribution over the models."""
    for weights in ([0.5, 0.5], [0.2] * 4 + [0.3], [-0.2, 0.3, 0.3, 0.3, 0.3]):
        with pytest.raises(InvalidBelief, match="weights"):
            full_set_prior(FIVE_MODELS, weights)


def test_votes_that_are_refused():
    """Votes are a matrix of labels that is not empty."""
    for votes in ([0, 1], [[0.5, 1.0]], np.zeros((0, 3), dtype=int)):
        with pytest.raises(InvalidVotes):
            model_prior(votes)
