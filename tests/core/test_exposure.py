"""Odds by brute force over subsets, and the bounds on them: never too low, rarely looked up."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from voting import contested_votes, random_votes

from pacpredict import Belief, calibrate_votes
from pacpredict.core import exposure
from pacpredict.core.channel import UNITY
from pacpredict.core.exposure import MOVED, ROOM, Membership, largest_shift, reach_of_noise, room_for
from pacpredict.core.release import AGREED, BELIEVED, RELEASED, answer_votes
from pacpredict.exceptions import InvalidSubsets
from pacpredict.training.subsets import Subsets, balanced

M = 16


def exact_shifts(log_belief, membership, prior):
    """Log-odds of every unit less those of the prior, from exact sums over the subsets that have it."""
    p = [Fraction(float(x)) for x in np.exp(log_belief)]
    q = [Fraction(float(x)) for x in prior]
    shifts = []
    for unit in membership.T:
        odds = [sum(x for x, has in zip(w, unit, strict=True) if has) / sum(
            x for x, has in zip(w, unit, strict=True) if not has
        ) for w in (p, q)]  # fmt: skip
        ratio = odds[0] / odds[1]
        shifts.append(mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator))
    return shifts


def skewed(rng, m=M, concentration=1.0):
    return Belief.from_probabilities(rng.dirichlet(np.full(m, concentration)) * (1 - 1e-9) + 1e-9 / m)


def look(belief, units, n_updates=0):
    tables = np.empty((units.bits.members.shape[1], 256))
    return largest_shift(belief.log_probabilities, n_updates, units.bits, tables)


@pytest.mark.parametrize("m", [2, 8, 16, 18, 130])
def test_odds_by_brute_force(m):
    """For any number of models, and priors that are not uniform, shifts are those of exact sums over subsets."""
    rng = np.random.default_rng(m)
    membership = balanced(m, 40, rng)
    prior, belief = skewed(rng, m), skewed(rng, m, 0.3)
    units = Membership.of(membership, prior)
    exact = exact_shifts(belief.log_probabilities, membership, prior.probabilities())
    np.testing.assert_allclose(units.shifts(belief), [float(x) for x in exact], rtol=1e-9, atol=1e-9)
    largest = max(abs(x) for x in exact)
    assert largest <= look(belief, units) <= largest * (1 + 1e-7) + 1e-7


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), concentration=st.sampled_from([0.05, 1.0, 100.0, 1e6]))
def test_a_look_is_never_too_low(seed, concentration):
    """From a belief that has hardly moved to one that is nearly certain, the bound is not below the exact shift."""
    rng = np.random.default_rng(seed)
    membership, belief = balanced(M, 12, rng), skewed(rng, M, concentration)
    exact = exact_shifts(belief.log_probabilities, membership, np.full(M, 1 / M))
    assert max(abs(x) for x in exact) <= look(belief, Membership.of(membership, Belief.uniform(M)))


def test_updates_widen_the_bound():
    """A belief of many updates is less sure in its last digits, and the bound allows for that."""
    rng = np.random.default_rng(0)
    belief, units = skewed(rng), Membership.of(balanced(M, 30, rng), Belief.uniform(M))
    assert look(belief, units) < look(belief, units, 10**6) < look(belief, units) + 1e-6


def test_certainty_is_an_infinite_shift():
    """Once only models with a record are left, no limit holds any more."""
    membership = np.array([[True], [True], [False], [False]])
    log_belief = np.array([math.log(0.5), math.log(0.5), -1e9, -1e9])
    assert look(Belief(log_belief), Membership.of(membership, Belief.uniform(4))) == math.inf


def test_packed_bits_are_the_same_units():
    """Bits of a row per model, as artifacts keep them, make the same units, in blocks and with any rest."""
    for n in (1, 7, 8, 1000, 65_536 + 11):
        subsets = Subsets.balanced(10, n, np.random.default_rng(n))
        units = Membership.of_packed(subsets.packed, n, Belief.uniform(10))
        assert len(units) == n
        assert np.array_equal(
            units.bits.members, Membership.of(subsets.matrix(), Belief.uniform(10)).bits.members
        )
        assert np.array_equal(np.unpackbits(units.bits.members, axis=1, count=10).T, subsets.matrix())


def test_units_that_are_in_all_subsets_or_none_have_no_odds():
    """No answer tells anything about them: they are not watched."""
    membership = np.array([[True, False, True], [True, False, False]])
    units = Membership.of(membership, Belief.uniform(2))
    assert len(units) == 1
    assert units.bits.prior_odds.tolist() == [1.0]
    assert look(Belief.uniform(2), Membership.of(membership[:, :2], Belief.uniform(2))) < 1e-9


@pytest.mark.parametrize(
    "membership", [np.ones((M, 3)), np.ones((M + 1, 3), bool), np.ones(M, bool), np.ones((M, 2), np.uint8)]
)
def test_units_that_are_refused(membership):
    """Membership is a boolean matrix with a row for each model, or bits of that shape."""
    with pytest.raises(InvalidSubsets, match="membership"):
        Membership.of(membership, Belief.uniform(M))
    with pytest.raises(InvalidSubsets, match="packed"):
        Membership.of_packed(np.zeros((M, 2), np.uint8), 17, Belief.uniform(M))


# --- how far a step can move odds -----------------------------------------------------------------------------


@settings(deadline=None, max_examples=100)
@given(seed=st.integers(0, 2**32 - 1), n_classes=st.integers(2, 5))
def test_no_odds_move_beyond_the_range_of_likelihoods(seed, n_classes):
    """Whatever the likelihoods of an outcome, every unit's log-odds move by at most their range."""
    rng = np.random.default_rng(seed)
    membership, belief = balanced(M, 30, rng), skewed(rng)
    votes = contested_votes(rng, 1, M, n_classes, dissent=0.5)[0]
    gains = rng.normal(size=n_classes) * rng.choice([0.01, 1, 5])
    units = Membership.of(membership, Belief.uniform(M))
    moved = units.shifts(belief.updated(gains[votes])) - units.shifts(belief)
    assert np.abs(moved).max() <= np.ptp(gains[np.unique(votes)]) + 1e-9


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("delta", [0.3, 0.02])
def test_noise_reaches_farther_with_probability_delta_at_most(n_classes, delta):
    """Whoever the secret is, the range of log-likelihoods of a noisy release is within the reach, but for delta."""
    rng = np.random.default_rng(1)
    votes = contested_votes(rng, 1, M, n_classes, dissent=0.6)[0]
    noise = calibrate_votes(votes, n_classes, skewed(rng), 2.0**-6)
    k = np.unique(votes).size
    first = [int(np.flatnonzero(votes == c)[0]) for c in np.unique(votes)]
    axes = noise.coordinates[first]
    reaches = [reach_of_noise(axes, noise.variances, origin, delta) for origin in range(k)]
    for secret in first:
        draws = noise.coordinates[secret] + np.sqrt(noise.variances) * rng.standard_normal((20_000, k - 1))
        gains = np.array([noise.log_likelihood(noisy)[first] for noisy in draws])
        assert np.mean(np.ptp(gains, axis=1) > min(reaches)) <= delta


def test_two_classes_reach_exactly_as_far_as_they_lie_apart():
    """With two classes nothing is lost: d²/2 + z d at the distance d of the two outputs."""
    noise = calibrate_votes([0, 0, 0, 1], 2, Belief.uniform(4), 0.01)
    d = abs(noise.coordinates[0, 0] - noise.coordinates[3, 0]) / math.sqrt(noise.variances[0])
    z = math.sqrt(2 * math.log(1 / 1e-9))
    reach = reach_of_noise(noise.coordinates[[0, 3]], noise.variances, 0, 1e-9)
    assert reach == pytest.approx(d * d / 2 + z * d, rel=1e-9)


# --- when units are looked at ---------------------------------------------------------------------------------


def room(reach, patience, track, belief, units, epsilon=1.0):
    tables = np.empty((units.bits.members.shape[1], 256))
    return room_for(reach, patience, epsilon, belief.log_probabilities, 0, track, units.bits, tables)


def test_units_are_looked_at_only_in_doubt():
    """Not while a step fits, not again before something has moved, and not while enough is left for the patient."""
    rng = np.random.default_rng(2)
    belief, units = skewed(rng, M, 50.0), Membership.of(balanced(M, 30, rng), Belief.uniform(M))
    exact = 1.0 - look(belief, units)
    for reach, patience, before, after in [
        (0.3, 1.0, (1.0, 0.6), (1.0, 0.6)),  # it fits
        (0.5, 1.0, (1.0, 0.6), (exact, 0.0)),  # it does not
        (0.5, 0.5, (1.0, 0.6), (exact, 0.0)),  # less than half is left
        (0.8, 0.5, (1.0, 0.4), (1.0, 0.4)),  # more than half is left, and less will do
        (5.0, 1.0, (0.5, 0.0), (0.5, 0.0)),  # nothing has moved
        (5.0, 1.0, (-0.1, 0.2), (exact, 0.0)),  # beyond the limit, by a rare event
    ]:
        track = np.array(before)
        left = room(reach, patience, track, belief, units)
        assert tuple(track) == after
        assert left == pytest.approx(after[ROOM] - after[MOVED], rel=1e-9)


# --- histories under a limit ----------------------------------------------------------------------------------


def answer_stream(votes, membership, finite, epsilon, delta, b, seed, secret=3):
    """Answer one query after the other; returns how, and the exact largest shift after each."""
    rng = np.random.default_rng(seed)
    m, n_classes = votes.shape[1], int(votes.max()) + 1
    units = Membership.of(membership, Belief.uniform(m))
    log_belief, track = np.full(m, -math.log(m)), np.array([epsilon, 0.0])
    how, largest, beliefs = [], [], []
    for t, row in enumerate(votes):
        k = np.unique(row).size
        done, _, _ = answer_votes(
            *(row[None, :], n_classes, secret, b, finite, epsilon, delta, False, t, 10**9),
            *(rng.standard_normal(k), rng.integers(UNITY, size=1), log_belief, track),
            *(units.bits.members, units.bits.prior_odds, np.empty(k)),
        )
        how.append(int(done[0]))
        beliefs.append(log_belief.copy())
        largest.append(max(abs(x) for x in exact_shifts(log_belief, membership, np.full(m, 1 / m))))
    return how, largest, beliefs


@pytest.mark.parametrize("epsilon", [0.05, 0.4])
def test_no_label_of_a_channel_takes_odds_past_the_limit(epsilon):
    """Asked the most telling question again and again, everybody's exact odds stay within epsilon, at every step."""
    rng = np.random.default_rng(6)
    membership = balanced(M, 10, rng)
    votes = np.repeat(membership[:, :1].T.astype(np.int16), 150, axis=0)
    how, largest, _ = answer_stream(votes, membership, True, epsilon, 0.0, 2.0**-7, seed=7)
    assert max(largest) <= epsilon
    assert max(largest) > 0.9 * epsilon, "a limit that is never approached tests nothing"
    assert RELEASED in how
    _, without, _ = answer_stream(votes, membership, True, math.inf, 0.0, 2.0**-7, seed=7)
    assert max(without) > epsilon


def test_noise_stops_before_the_limit():
    """Gaussian releases end when the next could pass the limit; then the belief answers and does not move."""
    rng = np.random.default_rng(8)
    membership = balanced(M, 10, rng)
    votes = np.repeat(membership[:, :1].T.astype(np.int16), 60, axis=0)
    how, largest, beliefs = answer_stream(votes, membership, False, 0.8, 1e-4, 2.0**-8, seed=9)
    assert max(largest) <= 0.8
    first = how.index(BELIEVED)
    assert first > 0
    assert how[:first] == [RELEASED] * first
    assert how[first:] == [BELIEVED] * (len(how) - first)
    assert all(np.array_equal(belief, beliefs[first - 1]) for belief in beliefs[first:])


def test_ordinary_queries_do_not_notice_the_limit():
    """The same labels and beliefs with a limit and without, bit for bit, while nobody comes near it."""
    rng = np.random.default_rng(10)
    membership = balanced(M, 50, rng)
    votes = random_votes(rng, 40, M, 3, dissent=0.05)
    for finite in (True, False):
        limited = answer_stream(votes, membership, finite, 1.0, 1e-9, 2.0**-26, seed=11)
        free = answer_stream(votes, membership, finite, math.inf, 1e-9, 2.0**-26, seed=11)
        assert limited[0] == free[0]
        assert set(limited[0]) == {AGREED, RELEASED}
        assert all(map(np.array_equal, limited[2], free[2]))


def test_constants_have_their_reasons():
    """Rounding of an update: half a unit in the last place of a logarithm up to 64, and as much for its gain."""
    assert 2 * np.spacing(63.0) <= exposure.ROUNDING_OF_UPDATE
