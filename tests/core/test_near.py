"""Reconstruction of something close to a record, against brute force over all pairs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from subsets_by_hand import memberships, random_weights, seeds

from pacpredict.core import near
from pacpredict.core.near import near_reconstruction_prior
from pacpredict.core.priors import Records, reconstruction_prior
from pacpredict.exceptions import InvalidSubsets
from pacpredict.training.subsets import balanced


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


@settings(deadline=None)
@given(membership=memberships, seed=seeds)
def test_distance_zero_is_the_same_content(membership, seed):
    """Naming a record exactly and naming its content are one question, with one prior."""
    rng, n = np.random.default_rng(seed), membership.shape[1]
    contents, weights = rng.integers(0, 3, n), random_weights(len(membership), seed)
    exact = near_reconstruction_prior(membership, contents[:, None], 0, weights=weights)
    assert reconstruction_prior(membership, Records(np.arange(n), contents), weights) == exact


def test_near_reconstruction_in_pieces(monkeypatch):
    """Splitting the records into small pieces changes nothing."""
    rng = np.random.default_rng(1)
    membership = balanced(16, 300, rng)
    points = rng.normal(size=(300, 2))
    whole = [near_reconstruction_prior(membership, points, t) for t in (0, 0.01, 0.05, 0.2)]
    monkeypatch.setattr(near, "_BALLS", 7)
    monkeypatch.setattr(near, "_NEIGHBOURS", 20)
    assert [near_reconstruction_prior(membership, points, t) for t in (0, 0.01, 0.05, 0.2)] == whole
    assert whole[0] == 0.5
    assert whole == sorted(whole)
    assert whole[-1] == 1


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
        near_reconstruction_prior(np.ones((5, 4)), points, distance, guesses=guesses)
