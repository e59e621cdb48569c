"""Priors against brute force over all models and all possible guesses."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pacpredict.core import priors
from pacpredict.core.priors import (
    full_set_prior,
    group_prior,
    membership_priors,
    model_prior,
    model_prior_from_votes,
    near_reconstruction_prior,
    reconstruction_prior,
    simulate_group_prior,
)
from pacpredict.exceptions import InvalidBelief, InvalidSubsets, InvalidVotes

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

memberships = st.integers(1, 7).flatmap(
    lambda m: st.integers(1, 6).flatmap(lambda n: hnp.arrays(np.bool_, (m, n)))
)
seeds = st.integers(0, 2**32 - 1)


def balanced(n_models, n_records, rng):
    """Put every record into a random half of the subsets, as section 4.2 does."""
    return rng.permuted(np.tile(np.arange(n_models)[:, None] % 2 == 0, n_records), axis=0)


def random_weights(m, seed):
    return np.random.default_rng(seed).dirichlet(np.ones(m))


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
    assert group_prior(membership, records, weights) == pytest.approx(best, rel=1e-15)


@settings(deadline=None)
@given(membership=memberships, seed=seeds)
def test_sets_and_records_match_brute_force(membership, seed):
    """The best record and the best whole set are found among all candidates."""
    weights = random_weights(len(membership), seed)
    m, n = membership.shape
    best_record = best_guess(lambda u, i: membership[i, u], range(n), weights)
    best_set = best_guess(lambda j, i: (membership[i] == membership[j]).all(), range(m), weights)
    assert reconstruction_prior(membership, weights) == pytest.approx(best_record, rel=1e-15)
    assert full_set_prior(membership, weights) == pytest.approx(best_set, rel=1e-15)


def within(membership, points, distance, guesses, weights):
    """Return the exact prior of the best of the guesses, by comparing all pairs."""
    near = np.linalg.norm(guesses[:, None, :] - points[None, :, :], axis=2) <= distance
    return max(
        math.fsum(w for w, row in zip(weights, membership, strict=True) if (row & ball).any())
        for ball in near
    )


@settings(deadline=None)
@given(membership=memberships, seed=seeds, distance=st.floats(0, 3))
def test_near_reconstruction_matches_brute_force(membership, seed, distance):
    """For given guesses the prior is exact; without guesses it is above that of every guess tried."""
    rng = np.random.default_rng(seed)
    weights = random_weights(len(membership), seed)
    points = rng.normal(size=(membership.shape[1], 2))
    midpoints = (points[:, None] + points[None]).reshape(-1, 2) / 2
    guesses = np.vstack([points, midpoints, rng.normal(size=(50, 2))])
    exact = within(membership, points, distance, guesses, weights)
    assert near_reconstruction_prior(membership, points, distance, guesses=guesses, weights=weights) == (
        pytest.approx(exact, rel=1e-14)
    )
    anywhere = near_reconstruction_prior(membership, points, distance, weights=weights)
    assert anywhere >= exact - 1e-14
    assert anywhere == pytest.approx(within(membership, points, 2 * distance, points, weights), rel=1e-14)


def test_near_reconstruction_of_two_records_by_their_midpoint():
    """The default covers the guess between two records, which no record as a guess would reveal."""
    membership = np.eye(2, dtype=bool)
    points = np.array([[0.0], [2.0]])
    assert near_reconstruction_prior(membership, points, 1, guesses=points) == 0.5
    assert near_reconstruction_prior(membership, points, 1, guesses=[[1.0]]) == 1
    assert near_reconstruction_prior(membership, points, 1) == 1


def test_near_reconstruction_counts_the_boundary():
    """A record at exactly the distance counts although distances are rounded."""
    points = np.array([[0.1, 0.2, 0.3]])
    guess = np.array([[0.4, 0.6, 0.9]])
    distance = math.nextafter(float(np.linalg.norm(points - guess)), 0)
    assert near_reconstruction_prior([[1], [0]], points, distance, guesses=guess) == 0.5


def test_near_reconstruction_far_from_everything():
    """A guess that no record is near never succeeds."""
    assert near_reconstruction_prior([[1], [1]], [[0.0]], 1, guesses=[[5.0]]) == 0


def test_equal_records_at_distance_zero():
    """Of two equal records either counts, so naming their content succeeds more often."""
    membership = np.eye(2, dtype=bool)
    assert reconstruction_prior(membership) == 0.5
    assert near_reconstruction_prior(membership, [[3.0], [3.0]], 0) == 1


def test_near_reconstruction_in_pieces(monkeypatch):
    """Splitting the records into small pieces changes nothing."""
    rng = np.random.default_rng(1)
    membership = balanced(16, 300, rng)
    points = rng.normal(size=(300, 2))
    whole = [near_reconstruction_prior(membership, points, t) for t in (0, 0.01, 0.05, 0.2)]
    monkeypatch.setattr(priors, "_BALLS", 7)
    monkeypatch.setattr(priors, "_NEIGHBOURS", 20)
    assert [near_reconstruction_prior(membership, points, t) for t in (0, 0.01, 0.05, 0.2)] == whole
    assert whole[0] == 0.5
    assert whole == sorted(whole)
    assert whole[-1] == 1


def test_hand_computed_values():
    """Five small subsets whose priors can be read off."""
    assert membership_priors(FIVE_MODELS).tolist() == [0.6, 0.8, 0.8, 0.6]
    assert group_prior(FIVE_MODELS, (0, 1)) == 0.4
    assert group_prior(FIVE_MODELS, (2,)) == 0.8
    assert reconstruction_prior(FIVE_MODELS) == 0.8
    assert full_set_prior(FIVE_MODELS) == 0.4
    assert full_set_prior(FIVE_MODELS, SKEWED) == pytest.approx(0.4, rel=1e-15)
    assert full_set_prior(FIVE_MODELS[[0, 1, 3, 4]]) == 0.25


def test_zero_one_arrays_are_membership_too():
    """Integers and floats of 0 and 1 mean the same as booleans."""
    for kind in (np.int64, np.uint8, np.float64):
        assert full_set_prior(FIVE_MODELS.astype(kind)) == full_set_prior(FIVE_MODELS)
    assert group_prior(FIVE_MODELS.astype(int).tolist(), [0, 1]) == 0.4


def test_group_prior_falls_from_a_half_to_the_floor():
    """Figure group_mia_prior: exactly 1/2 for one record, then down to about 1/m."""
    rng = np.random.default_rng(7)
    membership = balanced(128, 400, rng)
    curve = [simulate_group_prior(membership, k, rng, n_groups=200) for k in (1, 2, 3, 5, 8, 12, 30)]
    means = [point.mean for point in curve]
    assert curve[0] == (0.5, 0.0)
    assert means == sorted(means, reverse=True)
    assert 0.25 <= means[1] < 0.35
    assert means[-1] == pytest.approx(1 / 128)
    assert all(0 < point.sd < 0.05 for point in curve[1:4])


def test_simulated_group_prior_averages_the_exact_ones():
    """Over all pairs of a small pool the simulated mean approaches the exact mean."""
    exact = [group_prior(FIVE_MODELS, pair, SKEWED) for pair in itertools.combinations(range(4), 2)]
    got = simulate_group_prior(FIVE_MODELS, 2, np.random.default_rng(3), n_groups=4000, weights=SKEWED)
    assert got.mean == pytest.approx(np.mean(exact), abs=5 * got.sd / math.sqrt(4000))
    assert got.sd == pytest.approx(np.std(exact), rel=0.1)


def test_simulation_repeats_with_its_generator():
    """The same seed gives the same groups."""
    twice = [simulate_group_prior(FIVE_MODELS, 2, np.random.default_rng(5), n_groups=20) for _ in range(2)]
    assert twice[0] == twice[1]


def test_balanced_subsets_have_exact_priors():
    """With each record in half of the subsets membership and reconstruction are exactly 1/2 for any m."""
    for m in (2, 6, 100, 128):
        membership = balanced(m, 50, np.random.default_rng(m))
        assert (membership_priors(membership) == 0.5).all()
        assert reconstruction_prior(membership) == 0.5
        assert group_prior(membership, [3]) == 0.5
        assert full_set_prior(membership) == 1 / m


def test_model_prior_counts_equal_models():
    """The most common model decides; distinct models give 1/m."""
    assert model_prior(["a", "b", "a", "c"]) == 0.5
    assert model_prior([b"1", b"2", b"3", b"4"]) == 0.25
    assert model_prior(["a", "b", "a"], [0.25, 0.5, 0.25]) == 0.5
    assert model_prior(np.array([1, 2, 3])) == pytest.approx(1 / 3)


def test_model_prior_from_votes_overstates():
    """Fewer probes can only join models, so the prior can only grow."""
    votes = np.array([[0, 1, 2], [0, 1, 1], [0, 1, 2], [1, 1, 2]])
    assert model_prior_from_votes(votes) == 0.5
    assert model_prior_from_votes(votes[:, :2]) == 0.75
    assert model_prior_from_votes(votes[:, ::2]) == 0.5
    assert model_prior_from_votes(votes, [0.1, 0.6, 0.1, 0.2]) == pytest.approx(0.6)


def test_a_million_records():
    """A pool of a million records is handled in pieces."""
    row = np.random.default_rng(0).random(1_000_000) < 0.5
    membership = np.stack([row, ~row, row, ~row])
    assert (membership_priors(membership) == 0.5).all()
    assert np.allclose(membership_priors(membership, [0.4, 0.1, 0.4, 0.1]), 0.8, rtol=1e-15, atol=0)
    assert full_set_prior(membership) == 0.5
    assert simulate_group_prior(membership, 5, np.random.default_rng(0), n_groups=10).mean == 0.5
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
    """Groups are non-empty lists of existing record numbers."""
    with pytest.raises(InvalidSubsets, match="records"):
        group_prior(FIVE_MODELS, records)


@pytest.mark.parametrize(("size", "groups"), [(0, 10), (5, 10), (2, 1)])
def test_simulations_that_are_refused(size, groups):
    """Groups must fit into the pool, and a spread needs two of them."""
    with pytest.raises(InvalidSubsets):
        simulate_group_prior(FIVE_MODELS, size, np.random.default_rng(0), n_groups=groups)


@pytest.mark.parametrize(
    ("points", "distance", "guesses"),
    [
        (np.zeros((3, 2)), 1, None),
        (np.zeros(4), 1, None),
        (np.full((4, 2), np.nan), 1, None),
        (np.full((4, 2), "x"), 1, None),
        (np.zeros((4, 2)), -1, None),
        (np.zeros((4, 2)), math.nan, None),
        (np.zeros((4, 2)), math.inf, None),
        (np.zeros((4, 2)), 1, np.zeros((1, 3))),
        (np.zeros((4, 2)), 1, np.zeros((0, 2))),
    ],
)
def test_geometry_that_is_refused(points, distance, guesses):
    """Points, guesses and distance must fit together and be finite."""
    with pytest.raises(InvalidSubsets):
        near_reconstruction_prior(FIVE_MODELS, points, distance, guesses=guesses)


def test_weights_that_are_refused():
    """Weights are a distribution over the models."""
    for weights in ([0.5, 0.5], [0.2] * 4 + [0.3], [-0.2, 0.3, 0.3, 0.3, 0.3]):
        with pytest.raises(InvalidBelief, match="weights"):
            full_set_prior(FIVE_MODELS, weights)


def test_models_that_are_refused():
    """Identities are hashable and there is one at least; votes are a matrix of labels."""
    for identities in ([], [[1], [2]]):
        with pytest.raises(InvalidSubsets, match="identities"):
            model_prior(identities)
    for votes in ([0, 1], [[0.5, 1.0]], np.zeros((0, 3), dtype=int)):
        with pytest.raises(InvalidVotes):
            model_prior_from_votes(votes)
