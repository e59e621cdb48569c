"""Leave-one-out votes are what their definition says, written here as it stands, in exact fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from pacpredict.exceptions import InvalidInput, InvalidSubsets, InvalidVotes
from pacpredict.training.subsets import Subsets
from pacpredict.votes.leave_one_out import LeaveOneOut, influence_threshold


def influence(votes, trained, classes):
    """Z^2 of one unit, as a fraction: the largest squared difference of shares, in variances of the difference."""
    m, best = len(votes), Fraction(-1)
    inside, outside = votes[trained], votes[~trained]
    if not len(inside) or not len(outside):
        return best
    for c in classes:
        share = Fraction(int((votes == c).sum()), m)
        variance = max(share * (1 - share), Fraction(m - 1, m * m))
        variance *= Fraction(1, len(inside)) + Fraction(1, len(outside))
        difference = Fraction(int((inside == c).sum()), len(inside)) - Fraction(
            int((outside == c).sum()), len(outside)
        )
        best = max(best, difference**2 / variance)
    return best


def naive(votes, membership, n_classes, threshold, rounds):
    """The definition, query by query and unit by unit."""
    answers = []
    for row in votes:
        alive = np.ones(len(row), np.bool_)
        for _ in range(rounds):
            if len(set(row[alive])) == 1:
                break
            scores = [float(influence(row[alive], unit[alive], range(n_classes))) for unit in membership.T]
            best = max(range(len(scores)), key=lambda u: (scores[u], -u))
            if scores[best] < 0 or scores[best] < threshold * threshold:
                break
            alive &= ~membership[:, best]
        counts = np.bincount(row[alive], minlength=n_classes)
        answers.append(np.where(alive, row, counts.argmax()))
    return np.array(answers, np.int16)


def random_votes(rng, membership, n_queries, n_classes):
    """Votes of which some follow one unit, some two units, and some nothing."""
    m, n = membership.shape
    votes = rng.integers(0, n_classes, (n_queries, m))
    for q in range(n_queries):
        share = rng.random()
        votes[q, rng.random(m) < share] = rng.integers(n_classes)
        for _ in range(q % 3):
            follows = membership[:, rng.integers(n)] & (rng.random(m) < rng.random() + 0.3)
            votes[q, follows] = rng.integers(n_classes)
    return votes.astype(np.int16)


CASES = {
    "seed": st.integers(0, 2**32),
    "m": st.integers(2, 150),
    "n": st.integers(1, 40),
    "n_classes": st.integers(1, 6),
    "rate": st.sampled_from([None, 0.5, 0.1, 0.8]),
    "threshold": st.floats(0, 8),
    "rounds": st.integers(1, 3),
}


@settings(max_examples=300, deadline=None)
@given(**CASES)
def test_definition(seed, m, n, n_classes, rate, threshold, rounds):
    """Votes equal the definition in exact fractions: any classes, models, units, rates, thresholds and rounds."""
    rng = np.random.default_rng(seed)
    membership = rng.random((m, n)) < rng.random(n) if rate is None else rng.random((m, n)) < rate
    if rate == 0.5:  # each unit in half of the models, as deployments have it
        membership = rng.permuted(np.broadcast_to(np.arange(m)[:, None] < m // 2, (m, n)), axis=0)
    votes = random_votes(rng, membership, 6, n_classes)
    subsets = Subsets.of(membership)
    rule = LeaveOneOut.of(subsets.packed, n, n_classes, threshold=threshold, rounds=rounds)
    assert np.array_equal(rule.apply(votes), naive(votes, membership, n_classes, threshold, rounds))


@pytest.mark.parametrize("n_models", [64, 128, 512, 1024])
def test_definition_at_real_sizes(n_models):
    """Votes equal the definition for as many models as deployments have, with more units than fit into a block."""
    rng = np.random.default_rng(n_models)
    subsets = Subsets.balanced(n_models, 2500, rng)
    membership = subsets.matrix()
    votes = random_votes(rng, membership, 6, 3)
    rule = LeaveOneOut.of(subsets.packed, 2500, 3, rounds=2)
    expected = naive(votes, membership, 3, influence_threshold(2500), 2)
    assert np.array_equal(rule.apply(votes), expected)
    assert not np.array_equal(expected, votes)


def test_a_unit_that_decides_alone():
    """Where votes follow one unit, all models answer as those without it."""
    subsets = Subsets.balanced(128, 1000, np.random.default_rng(1))
    trained = subsets.matrix()[:, 17]
    votes = np.where(trained, 3, 1).astype(np.int16)[None, :]
    assert (LeaveOneOut.of(subsets.packed, 1000, 5).apply(votes) == 1).all()


def test_chance_is_left_alone():
    """Votes that follow no unit are changed in at most about a third of queries, and unanimous ones never."""
    rng = np.random.default_rng(2)
    rule = LeaveOneOut.of(Subsets.balanced(128, 5000, rng).packed, 5000, 2)
    votes = (rng.random((400, 128)) < 0.4).astype(np.int16)
    changed = (rule.apply(votes) != votes).any(axis=1)
    assert changed.mean() < 1 - math.exp(-1 / 3) + 3 * math.sqrt(0.25 / 400)
    same = np.full((3, 128), 1, np.int16)
    assert np.array_equal(rule.apply(same), same)


def test_small_minorities_are_left_alone():
    """A minority too small for any unit to explain is left as it is, even if one unit's models are all of it."""
    rng = np.random.default_rng(3)
    subsets = Subsets.balanced(128, 1000, rng)
    n_needed = math.ceil(128 * influence_threshold(1000) ** 2 / (128 + influence_threshold(1000) ** 2))
    rule = LeaveOneOut.of(subsets.packed, 1000, 2)
    holders = np.flatnonzero(subsets.matrix()[:, 0])
    for n_dissenters, is_removed in ((n_needed - 1, False), (n_needed, True)):
        votes = np.zeros((1, 128), np.int16)
        votes[0, holders[:n_dissenters]] = 1
        assert (not rule.apply(votes).any()) == is_removed


def test_of_equals_the_first():
    """Of units with the same influence the first is removed, and of classes with the same votes the first wins."""
    membership = np.zeros((8, 3), np.bool_)
    membership[:4, 0] = membership[:4, 1] = membership[4:, 2] = True
    votes = np.array([[2, 2, 2, 2, 1, 0, 1, 0]], np.int16)
    rule = LeaveOneOut.of(Subsets.of(membership).packed, 3, 3, threshold=1.0)
    assert rule.apply(votes).tolist() == [[0, 0, 0, 0, 1, 0, 1, 0]]
    turned = LeaveOneOut.of(Subsets.of(membership[:, ::-1]).packed, 3, 3, threshold=1.0)
    assert turned.apply(votes).tolist() == [[2, 2, 2, 2, 2, 2, 2, 2]]


def test_batches_do_not_matter():
    """The votes on a query are the same whatever is asked with it, in whatever order."""
    rng = np.random.default_rng(4)
    subsets = Subsets.balanced(64, 300, rng)
    votes = random_votes(rng, subsets.matrix(), 60, 4)
    rule = LeaveOneOut.of(subsets.packed, 300, 4, rounds=2)
    together, order = rule.apply(votes), rng.permutation(60)
    assert np.array_equal(rule.apply(votes[order]), together[order])
    assert all(np.array_equal(rule.apply(votes[q : q + 1])[0], together[q]) for q in range(60))
    assert rule.apply(votes[:0]).shape == (0, 64)


@pytest.mark.parametrize("n_units", [1, 1300, 12_000, 10**6, 10**9])
def test_threshold(n_units):
    """The threshold is the quantile that a third of one unit passes on either side by chance."""
    assert 2 * n_units * norm.sf(influence_threshold(n_units)) == pytest.approx(1 / 3, rel=1e-9)


def test_refusals():
    """Bits, votes and settings that do not fit are refused."""
    packed = Subsets.balanced(8, 20, np.random.default_rng(5)).packed
    for wrong in (packed[:, :2], packed.astype(np.int16), packed[0]):
        with pytest.raises(InvalidSubsets):
            LeaveOneOut.of(wrong, 20, 2)
    for settings_ in ({"threshold": -1.0}, {"threshold": math.nan}, {"rounds": 0}):
        with pytest.raises(InvalidInput):
            LeaveOneOut.of(packed, 20, 2, **settings_)
    with pytest.raises(InvalidInput):
        influence_threshold(0)
    rule = LeaveOneOut.of(packed, 20, 2)
    for wrong in (
        np.zeros((1, 7), np.int16),
        np.zeros((1, 8)),
        np.full((1, 8), 2, np.int16),
        np.zeros(8, np.int16),
    ):
        with pytest.raises(InvalidVotes):
            rule.apply(wrong)
