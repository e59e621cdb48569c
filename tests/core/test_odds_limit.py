"""The limit on the odds of every subset, against exact likelihoods of whole histories."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from voting import contested_votes, random_votes

from pacpredict import Belief, calibrate_votes
from pacpredict.core import odds_limit
from pacpredict.core.channel import UNITY, couple
from pacpredict.core.kernel import rounding_of_masses
from pacpredict.core.odds_limit import fill_rooms, reach_of_noise, spread_of
from pacpredict.core.plan import propose_odds_limit
from pacpredict.core.release import AGREED, BELIEVED, RELEASED, answer_votes
from pacpredict.core.tally import Query, tally_votes
from pacpredict.exceptions import InvalidBudget
from pacpredict.training.subsets import balanced

M = 16


def skewed(rng, m=M, concentration=1.0):
    return Belief.from_probabilities(rng.dirichlet(np.full(m, concentration)) * (1 - 1e-9) + 1e-9 / m)


def rooms_of(votes, belief, prior, epsilon, n_updates=0):
    tally = tally_votes(votes[None, :], int(votes.max()) + 1)
    dissenters = tally.dissenters[: tally.slots.size]
    query = Query(int(tally.n_voted[0]), tally.classes, int(tally.bulk[0]), dissenters, tally.slots)
    room, *scratch = np.empty((3, query.n_voted))
    least = fill_rooms(
        belief.log_probabilities, prior.log_probabilities, query, n_updates, epsilon, *scratch, room
    )
    return room, least


# --- what a history has moved, and what is left ---------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), concentration=st.sampled_from([0.05, 1.0, 100.0, 1e6]))
def test_a_spread_is_never_too_low(seed, concentration):
    """Whatever belief and prior, the spread is at least the exact difference of log-likelihoods, and hardly more."""
    rng = np.random.default_rng(seed)
    prior, belief = skewed(rng), skewed(rng, M, concentration)
    with mpmath.workdps(50):
        exact = [
            mpmath.mpf(float(p)) - mpmath.mpf(float(q))
            for p, q in zip(belief.log_probabilities, prior.log_probabilities, strict=True)
        ]
        spread = spread_of(belief.log_probabilities, prior.log_probabilities, 1000)
        assert max(exact) - min(exact) <= spread <= max(exact) - min(exact) + 1e-9


def test_updates_widen_the_bound():
    """A belief of many updates is less sure in its last digits, and the bound allows for that."""
    rng = np.random.default_rng(0)
    belief, prior = skewed(rng).log_probabilities, Belief.uniform(M).log_probabilities
    assert spread_of(belief, prior, 0) < spread_of(belief, prior, 10**6) < spread_of(belief, prior, 0) + 1e-6


def test_subsets_that_the_prior_rules_out_do_not_count():
    """A prior that excludes a subset leaves nothing to learn about it, however its belief came to be rounded."""
    prior = Belief.from_probabilities([0.0, 0.5, 0.25, 0.25])
    belief = Belief.from_probabilities([0.0, 0.5, 0.3, 0.2])
    expected = math.log(0.3 / 0.25) - math.log(0.2 / 0.25)
    assert spread_of(belief.log_probabilities, prior.log_probabilities, 0) == pytest.approx(
        expected, rel=1e-9
    )
    room, least = rooms_of(np.array([0, 1, 1, 2]), belief, prior, 1.0)
    assert room[0] == math.inf, "no history can make the excluded subset likely"
    assert np.isfinite(least)


@settings(deadline=None, max_examples=100)
@given(seed=st.integers(0, 2**32 - 1), n_classes=st.integers(2, 5))
def test_rooms_are_exactly_what_the_spread_leaves(seed, n_classes):
    """A class that rises by its room takes the spread between classes to epsilon, and by more beyond it."""
    rng = np.random.default_rng(seed)
    votes = contested_votes(rng, 1, M, n_classes, dissent=0.5)[0]
    belief, prior = skewed(rng, M, 30.0), skewed(rng, M, 30.0)
    epsilon = 3.0
    room, least = rooms_of(votes, belief, prior, epsilon)
    shift = belief.log_probabilities - prior.log_probabilities
    for slot, label in enumerate(np.unique(votes)):
        mine = votes == label
        expected = epsilon - (shift[mine].max() - shift[~mine].min())
        assert expected - 1e-12 <= room[slot] + 1e-12 <= expected + 1e-11
    assert least == room.min()


@pytest.mark.parametrize(
    ("total", "limit"),
    [(1e6 * 2.0**-32, 0.25), (0.1109, 5.6), (2.0**-32, 0.00025), (1e-9, 0.00053), (39.0, 100.0)],
)
def test_the_limit_that_goes_with_a_total(total, limit):
    """Twelve times the root of twice the total, in two digits and never rounded up."""
    assert propose_odds_limit(total) == limit
    assert propose_odds_limit(total) <= 12 * math.sqrt(2 * total)


@pytest.mark.parametrize("total", [0, -1, math.inf, math.nan])
def test_totals_without_a_limit(total):
    """What is no budget has no limit that goes with it."""
    with pytest.raises(InvalidBudget):
        propose_odds_limit(total)


# --- how far a step can move odds -----------------------------------------------------------------------------


@settings(deadline=None, max_examples=100)
@given(seed=st.integers(0, 2**32 - 1), n_classes=st.integers(2, 6))
def test_a_channel_lifts_every_class_within_its_room(seed, n_classes):
    """In exact rationals, a label multiplies the likelihood of its voters by at most e^room, and reveals at most b."""
    rng = np.random.default_rng(seed)
    mass = rng.dirichlet(np.full(n_classes, 0.5)) + 1e-12
    mass /= mass.sum()
    room = rng.exponential(size=n_classes) * rng.choice([1e-6, 1e-2, 1.0])
    weights = np.empty(n_classes, np.int64)
    coupled = couple(mass, 2.0**-6, room, rounding_of_masses(M), weights, np.empty(n_classes))
    for c in range(n_classes):
        lift = 1 + Fraction(coupled, int(weights[c]))
        with mpmath.workdps(50):
            assert mpmath.log(mpmath.mpf(lift.numerator) / lift.denominator) <= mpmath.mpf(float(room[c]))
    tight = min(math.log1p(coupled / weights[c]) / room[c] for c in range(n_classes))
    free = couple(
        mass, 2.0**-6, np.full(n_classes, np.inf), rounding_of_masses(M), weights, np.empty(n_classes)
    )
    assert coupled == free or max(
        math.log1p(coupled / max(mass[c] * (UNITY - coupled), 1)) / room[c] for c in range(n_classes)
    ) == pytest.approx(1, abs=1e-4), (tight, "the room is used")


@pytest.mark.parametrize("room", [0.0, -0.1])
def test_no_room_is_no_coupling(room):
    """One class without room is enough: the label is then drawn from the belief alone."""
    weights = np.empty(3, np.int64)
    assert couple(np.array([0.5, 0.3, 0.2]), 0.1, np.array([1.0, room, 1.0]), 0.0, weights, np.empty(3)) == 0


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("delta", [0.3, 0.02])
def test_noise_reaches_farther_with_probability_delta_at_most(n_classes, delta):
    """Under every secret, the range of log-likelihoods of a noisy release is within the reach, but for delta."""
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


# --- histories under a limit ----------------------------------------------------------------------------------


def answer_stream(votes, finite, epsilon, delta, b, seed, secret=3):
    """Answer one query after the other; returns how each was answered, both labels, and the belief after each."""
    rng = np.random.default_rng(seed)
    m, n_classes = votes.shape[1], int(votes.max()) + 1
    log_belief, log_prior = np.full(m, -math.log(m)), np.full(m, -math.log(m))
    how, labels, beliefs = [], [], []
    for t, row in enumerate(votes):
        k = np.unique(row).size
        done, _, label = answer_votes(
            *(row[None, :], n_classes, secret, b, finite, epsilon, delta, False, False, t, 10**9),
            *(rng.standard_normal(k), rng.integers(UNITY, size=1), log_belief, log_prior, np.empty(k)),
        )
        how.append(int(done[0]))
        labels.append(tuple(label[:, 0].tolist()))
        beliefs.append(log_belief.copy())
    return how, labels, beliefs


def spreads(beliefs):
    return [float(np.ptp(belief)) for belief in beliefs]


def exclusive_or(n_queries):
    """Votes [u in s] xor [v in s]: the marginal odds of u and v stay where they are."""
    subsets = balanced(M, 2, np.random.default_rng(0))
    return np.repeat((subsets[:, 0] ^ subsets[:, 1])[None, :].astype(np.int16), n_queries, axis=0)


@pytest.mark.parametrize("epsilon", [0.05, 0.4])
@pytest.mark.parametrize("kind", ["telling", "xor", "lone"])
def test_no_label_of_a_channel_takes_a_history_past_the_limit(epsilon, kind):
    """Asked the worst question again and again, any two subsets stay within e^epsilon of each other, at every step."""
    votes = {
        "telling": np.repeat(
            balanced(M, 10, np.random.default_rng(6))[:, :1].T.astype(np.int16), 300, axis=0
        ),
        "xor": exclusive_or(300),
        "lone": np.repeat((np.arange(M) == 3)[None, :].astype(np.int16), 300, axis=0),
    }[kind]
    how, _, beliefs = answer_stream(votes, True, epsilon, 0.0, 2.0**-7, seed=7)
    assert max(spreads(beliefs)) <= epsilon
    assert max(spreads(beliefs)) > 0.9 * epsilon, "a limit that is never approached tests nothing"
    assert RELEASED in how
    _, _, without = answer_stream(votes, True, math.inf, 0.0, 2.0**-7, seed=7)
    assert max(spreads(without)) > epsilon


def test_exact_likelihoods_of_whole_histories():
    """Over all outcomes of a short history, the likelihood under any two subsets differs by at most e^epsilon.

    The likelihoods are sums and products of the integers that labels are drawn with, by an independent path: every
    uniform number is replaced by a representative of each label's interval.
    """
    m, epsilon, b = 4, 0.3, 2.0**-4
    queries = [np.array(row, np.int16) for row in ([0, 0, 0, 1], [0, 1, 0, 1], [0, 0, 0, 1], [2, 1, 0, 1])]
    for labels in itertools.product(range(3), repeat=len(queries)):
        likelihood = [Fraction(1)] * m
        log_belief, log_prior = np.full(m, -math.log(m)), np.full(m, -math.log(m))
        for t, (row, label) in enumerate(zip(queries, labels, strict=True)):
            chances = [chance_of(row, label, secret, log_belief, t, b, epsilon) for secret in range(m)]
            likelihood = [old * new for old, new in zip(likelihood, chances, strict=True)]
            if not any(chances):
                break
            replay_label(row, label, log_belief, log_prior, t, b, epsilon)
        if not any(likelihood):
            continue
        ratio = max(likelihood) / min(likelihood)
        with mpmath.workdps(50):
            assert mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator) <= mpmath.mpf(epsilon)


def chance_of(row, label, secret, log_belief, t, b, epsilon):
    """Return the probability of a label under a secret: the share of uniform numbers that give it, by bisection."""

    def drawn(uniform):
        _, _, labels = answer_votes(
            *(row[None, :], 3, secret, b, True, epsilon, 0.0, False, False, t, 10**9),
            *(np.empty(0), np.array([uniform]), log_belief.copy(), np.full(row.size, -math.log(row.size))),
            np.empty(3),
        )
        return int(labels[0, 0])

    total, start = 0, 0
    while start < UNITY:  # labels come in a few runs of uniform numbers
        here, low, high = drawn(start), start, UNITY
        while high - low > 1:
            middle = (low + high) // 2
            if drawn(middle) == here and all(drawn(low + (middle - low) * i // 4) == here for i in (1, 2, 3)):
                low = middle
            else:
                high = middle
        total += (high - start) * (here == label)
        start = high
    return Fraction(total, UNITY)


def replay_label(row, label, log_belief, log_prior, t, b, epsilon):
    slot = np.searchsorted(np.unique(row), [label])
    answer_votes(
        *(row[None, :], 3, -1, b, True, epsilon, 0.0, False, False, t, 10**9),
        *(np.empty(0), slot, log_belief, log_prior, np.empty(3)),
    )


def test_noise_stops_before_the_limit():
    """Gaussian releases end when the next could pass the limit; then the belief answers and does not move."""
    votes = exclusive_or(60)
    how, labels, beliefs = answer_stream(votes, False, 1.5, 1e-4, 2.0**-8, seed=9)
    assert max(spreads(beliefs)) <= 1.5
    first = how.index(BELIEVED)
    assert first > 0
    assert how[:first] == [RELEASED] * first
    assert how[first:] == [BELIEVED] * (len(how) - first)
    assert all(np.array_equal(belief, beliefs[first - 1]) for belief in beliefs[first:])
    by_argmax, by_map = ({label[row] for label in labels[first:]} for row in (0, 1))
    assert by_argmax == {0, 1}, "drawn from the belief"
    likelier = int(np.exp(beliefs[-1]) @ votes[0] > 0.5)
    assert by_map == {likelier}, "the likeliest label"


def test_ordinary_queries_do_not_notice_the_limit():
    """The same labels and beliefs with a limit and without, bit for bit, while no two subsets come near it."""
    votes = random_votes(np.random.default_rng(10), 40, M, 3, dissent=0.05)
    for finite in (True, False):
        limited = answer_stream(votes, finite, 1.0, 1e-9, 2.0**-26, seed=11)
        free = answer_stream(votes, finite, math.inf, 1e-9, 2.0**-26, seed=11)
        assert limited[:2] == free[:2]
        assert set(limited[0]) == {AGREED, RELEASED}
        assert all(map(np.array_equal, limited[2], free[2]))


def test_rounding_of_a_million_updates_is_within_its_bound():
    """A belief that gains and loses in turn, a million times, is off by less than the bound allows for."""
    rng = np.random.default_rng(3)
    gains = rng.choice([-0.01, 0.01, 0.003], size=(10**6, 1)) * rng.random((10**6, 4))
    log_belief = np.full(4, -math.log(4))
    for row in gains:
        log_belief = log_belief + (row - 1e-3)
    exact = [math.fsum([-math.log(4), *(gains[:, i] - 1e-3)]) for i in range(4)]
    depth = float(np.abs(log_belief).max())
    assert np.abs(np.diff(log_belief) - np.diff(exact)).max() <= odds_limit._ROUNDING_OF_UPDATE * 10**6 * (
        depth + 1
    )


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), finite=st.booleans(), epsilon=st.sampled_from([0.02, 0.1, 1.0]))
def test_batches_decide_as_single_queries_do(seed, finite, epsilon):
    """A batch looks at the spread when it must, single queries each time: the histories are equal."""
    rng = np.random.default_rng(seed)
    votes = contested_votes(rng, 60, M, 3, dissent=0.3)
    sizes = [np.unique(row).size - 1 for row in votes]
    normals, uniforms = rng.standard_normal(sum(sizes)), rng.integers(UNITY, size=len(votes))
    uniform = np.full(M, -math.log(M))

    def run(pieces):
        belief, how, done = uniform.copy(), [], 0
        for n in pieces:
            used, size = sum(sizes[:done]), sum(sizes[done : done + n])
            answered, _, _ = answer_votes(
                *(votes[done : done + n], 3, 5, 2.0**-12, finite, epsilon, 1e-3, False, False, done, 10**9),
                *(normals[used : used + size], uniforms[done : done + n], belief, uniform, np.empty(size)),
            )
            how += answered.tolist()
            done += n
        return how, belief

    batch, single = run([60]), run([1] * 60)
    assert batch[0] == single[0]
    assert np.array_equal(batch[1], single[1])
