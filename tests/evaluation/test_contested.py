"""How often models will differ: measured on records outside each subset, carried on to all models."""

import numpy as np
import pytest
from records import mixed_pool, quick_fit, recipe, small_learner
from scipy.stats import hypergeom

from pacpredict.evaluation.contested import (
    HIGH,
    Contested,
    _unanimous,
    contested_outside,
    measure_contested,
)
from pacpredict.training.subsets import balanced


def voting(n, m, exponent, seed=0):
    """Return votes whose rates of dissent have a density like p^(exponent - 1), and random halves."""
    rng = np.random.default_rng(seed)
    dissent = rng.beta(exponent, 3.0, size=n)
    votes = (rng.random((n, m)) < dissent[:, None]).astype(np.int16)
    return votes, balanced(m, n, rng)


@pytest.mark.parametrize("exponent", [0.1, 0.3, 1.0])
def test_the_share_for_all_models_is_foretold(exponent):
    """Half of the models of a record foretell, to a percent, on how many queries all of them would differ."""
    votes, membership = voting(20_000, 128, exponent)
    found = contested_outside(votes, membership)
    real = (votes.min(axis=1) < votes.max(axis=1)).mean()  # here membership does not matter to votes
    assert found.share == pytest.approx(real, abs=0.01)
    assert found.measured < real - 0.003
    assert found.records == 20_000


def test_only_models_that_have_not_seen_a_record_count():
    """Models that know a record by heart say nothing about how they differ on new ones."""
    rng = np.random.default_rng(1)
    membership = balanced(16, 500, rng)
    truth = rng.integers(2, size=500)
    guess = rng.integers(2, size=(500, 16))
    learned = np.where(membership.T, truth[:, None], guess).astype(np.int16)
    assert (
        contested_outside(learned, membership).measured
        == contested_outside(guess, membership).measured
        > 0.98
    )
    outside = [set(learned[i, ~membership[:, i]]) for i in range(500)]
    assert contested_outside(learned, membership).measured == pytest.approx(
        np.mean([len(one) > 1 for one in outside])
    )


def test_the_chance_to_agree_is_hypergeometric():
    """Drawing models without replacement, all of one class, has the probability that SciPy computes."""
    counts, of, drawn = np.array([[60, 3], [4, 61]]), np.array([64, 64]), np.array([32, 32])
    expected = np.mean([sum(hypergeom(64, n, 32).pmf(32) for n in column) for column in counts.T])
    assert _unanimous(counts, of, drawn) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("votes", "share"),
    [(np.zeros((30, 8), np.int16), 0.0), (np.tile(np.arange(8, dtype=np.int16), (30, 1)), 1.0)],
)
def test_ends_of_the_scale(votes, share):
    """Models that always agree, or never, will go on so."""
    found = contested_outside(votes, balanced(8, 30, np.random.default_rng(0)))
    assert (found.share, found.measured) == (share, share)


def test_two_models_tell_nothing():
    """With one model outside each subset there is nobody to differ from."""
    assert contested_outside(np.zeros((30, 2), np.int16), balanced(2, 30, np.random.default_rng(0))) is None


def test_it_warns_when_the_share_is_high():
    """From a quarter on, a sentence says what it means."""
    assert Contested(HIGH - 0.01, 0.2, 100).warning("argmax") is None
    often = Contested(0.88, 0.8, 100)
    assert "models disagree on 88.0% of queries" in often.warning("map")
    assert "noise decides what argmax answers" in often.warning("argmax")
    assert "argmax" not in often.warning("map") + often.warning("sample")


def test_a_fit_is_measured_on_its_pool():
    """The votes and subsets of a fit give the share, the same each time; a record is where its person is."""
    pool = mixed_pool(120, persons=np.random.default_rng(0).integers(0, 60, 120))
    fitted = quick_fit(pool, small_learner("decision-tree"), recipe(n_models=16))
    args = fitted.pool, fitted.learner, fitted.ensemble.voter, fitted.ensemble.space.subsets, 7
    found = measure_contested(*args)
    assert found == measure_contested(*args)
    membership = np.array([np.isin(np.arange(120), fitted.trained_on(i)) for i in range(16)])
    assert found == contested_outside(fitted.ensemble.votes(fitted.pool.rows), membership)
    assert 0.3 < found.measured <= found.share <= 1
