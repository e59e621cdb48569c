"""The finite channel against exact sums: integers, rational probabilities, logarithms at sixty digits."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from voting import contested_votes

from pacpredict import Belief
from pacpredict.core import channel
from pacpredict.core.channel import (
    UNITY,
    calibrate_channel,
    couple,
    draw_slot,
    information_density,
    uniform_of,
)
from pacpredict.core.release import BELIEVED, RELEASED, REPLAY, answer_votes
from pacpredict.exceptions import InvalidBudget, InvalidInput

MARGIN = 1e-12


@st.composite
def masses(draw, least=1e-30):
    """Masses of 2 to 20 classes, spread over all magnitudes."""
    powers = draw(st.lists(st.floats(math.log10(least), 0), min_size=1, max_size=19))
    mass = np.array([1.0, *(10.0**power for power in powers)])
    return draw(st.permutations((mass / mass.sum()).tolist()))


budgets = st.floats(2, 60).map(lambda power: 2.0**-power)


def weights_of(mass, b, room=math.inf, margin=MARGIN):
    mass = np.array(mass)
    weights = np.empty(mass.size, np.int64)
    coupled = couple(mass, b, np.full(mass.size, room), margin, weights, np.empty(mass.size))
    return weights.tolist(), coupled


def exact_information(mass, weights, coupled):
    """Return I(c; y) of the integer channel under exactly these masses."""
    total = sum(map(Fraction, mass))
    w = [Fraction(x) / total for x in mass]
    k = len(w)
    law = [[Fraction(weights[y] + coupled * (y == c), UNITY) for y in range(k)] for c in range(k)]
    marginal = [sum(w[c] * law[c][y] for c in range(k)) for y in range(k)]
    with mpmath.workdps(60):
        return mpmath.fsum(
            _mpf(w[c] * law[c][y]) * mpmath.log(_mpf(law[c][y] / marginal[y]))
            for c in range(k)
            for y in range(k)
        )


def _mpf(fraction):
    return mpmath.mpf(fraction.numerator) / fraction.denominator


@settings(deadline=None, max_examples=100)
@given(mass=masses(), b=budgets)
@example(mass=[3.23321864e-13, 1.0, 1.28631780e-26], b=5.113982772875767e-16)
@example(mass=[0.5, 0.5], b=0.25)
@example(mass=[1 - 1e-30, 1e-30], b=2.0**-60)
def test_no_answer_reveals_more_than_the_budget(mass, b):
    """The exact information of the very weights that are drawn is at most b, whatever the masses."""
    weights, coupled = weights_of(mass, b)
    assert sum(weights) + coupled == UNITY
    assert min(weights) >= 1
    assert coupled >= 0
    assert exact_information(mass, weights, coupled) <= b


@settings(deadline=None, max_examples=100)
@given(mass=masses(least=1e-9), b=budgets)
def test_the_coupling_is_the_largest(mass, b):
    """Nearly all of the budget is used, unless the label itself is worth less than that."""
    weights, coupled = weights_of(mass, b)
    nearly_everything = coupled >= UNITY * (1 - 2.0**-19)
    assert nearly_everything or exact_information(mass, weights, coupled) >= b * (1 - 1e-8)


@settings(deadline=None, max_examples=100)
@given(mass=masses(), b=budgets, room=st.floats(-14, 1).map(lambda power: 10.0**power))
def test_no_answer_moves_odds_beyond_the_room(mass, b, room):
    """For every label the exact ratio of likelihoods is within e^room, and nearly fills it where the room binds."""
    weights, coupled = weights_of(mass, b, room)
    assert sum(weights) + coupled == UNITY
    with mpmath.workdps(60):
        reach = max(mpmath.log(_mpf(Fraction(weight + coupled, weight))) for weight in weights)
        assert reach <= room
        unlimited = weights_of(mass, b)[1]
        if min(weights) > 2**30 and coupled > 2**30 and coupled < unlimited * 0.999:
            assert reach >= room * (1 - 1e-8)
    assert exact_information(mass, weights, coupled) <= b


@pytest.mark.parametrize("room", [0.0, -1e-300, -1.0, -math.inf])
def test_without_room_there_is_no_coupling(room):
    """Then an answer is a draw from the belief: the same whoever the secret is."""
    weights, coupled = weights_of([0.3, 0.2, 0.5], 0.1, room)
    assert coupled == 0
    assert sum(weights) == UNITY


@settings(deadline=None, max_examples=60)
@given(mass=masses(least=1e-12), b=budgets)
def test_answers_are_as_accurate_as_the_secret_model(mass, b):
    """At every budget the answer has the distribution of the secret model's label: the masses of the belief."""
    weights, coupled = weights_of(mass, b)
    total = sum(map(Fraction, mass))
    for y, weight in enumerate(weights):
        marginal = Fraction(weight, UNITY) + Fraction(mass[y]) / total * Fraction(coupled, UNITY)
        assert abs(marginal - Fraction(mass[y]) / total) <= Fraction(1, 2**40)


@settings(deadline=None, max_examples=60)
@given(mass=masses(), b=budgets, secret=st.integers(0, 19))
def test_every_label_is_drawn_with_exactly_its_weight(mass, b, secret):
    """Of the 2^62 numbers, a block of weights[y] means y and the last ones mean the secret's label: nothing is lost."""
    weights, coupled = weights_of(mass, b)
    secret %= len(weights)
    drawn = np.array(weights, np.int64)
    start = 0
    for y, weight in enumerate(weights):
        assert draw_slot(drawn, secret, start) == y
        assert draw_slot(drawn, secret, start + weight - 1) == y
        start += weight
    if coupled:
        assert draw_slot(drawn, secret, start) == draw_slot(drawn, secret, UNITY - 1) == secret
    else:
        assert start == UNITY


def test_uniform_numbers_of_a_seed():
    """Two uniform numbers make one of 62 bits, from 0 to 2^62 - 1."""
    assert uniform_of(0.0, 0.0) == 0
    assert uniform_of(1 - 2.0**-53, 1 - 2.0**-53) == UNITY - 1
    assert uniform_of(0.5, 0.25) == UNITY // 2 + 2**29


@settings(deadline=None, max_examples=300)
@given(
    u=st.one_of(
        st.floats(-0.999999, 0.999999).filter(lambda x: abs(x) > 1e-100), st.floats(0, 12).map(lambda p: 10.0**p),
        st.floats(-12, 0).map(lambda p: 10.0**p), st.floats(-12, 0).map(lambda p: -(10.0**p) * 0.999999),
    )
)  # fmt: skip
def test_density_of_information(u):
    """(1 + u) log(1 + u) - u to 1e-13 of itself, from u = -1 to a trillion, and next to 0."""
    with mpmath.workdps(700):
        exact = (1 + mpmath.mpf(u)) * mpmath.log1p(mpmath.mpf(u)) - mpmath.mpf(u)
        assert abs(information_density(u) - exact) <= 1e-13 * abs(exact)


def test_the_margin_grows_with_history():
    """After more releases the belief is less sure in its last digits, and the coupling a little smaller."""
    mass = [0.4, 0.6]
    fresh, old = weights_of(mass, 2.0**-20)[1], weights_of(mass, 2.0**-20, margin=1e-6)[1]
    assert fresh * (1 - 1e-6) < old < fresh
    exact = exact_information(mass, *weights_of(mass, 2.0**-20, margin=1e-6))
    assert exact * (1 + 1e-6) <= 2.0**-20


# --- releases ----------------------------------------------------------------------------------------------


def answer(votes, secret, b, log_belief, uniform, n_classes):
    """Answer one query through the kernel that sessions use; `log_belief` is updated."""
    how, charged, labels = answer_votes(
        *(votes[None, :], n_classes, secret, b, True, math.inf, 0.0, False, False, 0, 10**9),
        *(np.empty(n_classes), np.array([uniform]), log_belief, np.full(votes.size, -math.log(votes.size))),
        np.empty(n_classes),
    )
    assert charged[0] == (how[0] == RELEASED)
    return how[0], labels[0, 0]


@pytest.mark.parametrize("b", [2.0**-4, 2.0**-20])
def test_the_belief_is_the_exact_posterior(b):
    """Bayes' rule in rational arithmetic, with the transition probabilities of the integers, label by label."""
    rng = np.random.default_rng(3)
    m, n_classes = 12, 4
    log_belief = np.full(m, -math.log(m))
    posterior = [Fraction(1, m)] * m
    for votes in contested_votes(rng, 25, m, n_classes, dissent=0.4):
        belief = Belief(log_belief)
        used = calibrate_channel(votes, n_classes, belief, b)
        how, label = answer(votes, 5, b, log_belief, int(rng.integers(UNITY)), n_classes)
        assert how == RELEASED
        place = int(np.searchsorted(used.classes, label))
        weight = int(used.weights[place])
        posterior = [
            p * (weight + (used.coupled if v == label else 0)) for p, v in zip(posterior, votes, strict=True)
        ]
        total = sum(posterior)
        posterior = [p / total for p in posterior]
        # The channel of the released answer has another margin, by 1e-13 of the coupling.
        np.testing.assert_allclose(np.exp(log_belief), [float(p) for p in posterior], rtol=1e-10)


def test_a_replay_ends_at_the_same_belief():
    """Given the labels instead of secret and randomness, the belief is the same to the last bit."""
    rng = np.random.default_rng(4)
    m, n_classes, b = 16, 3, 2.0**-6
    first = np.full(m, -math.log(m))
    again = first.copy()
    for votes in contested_votes(rng, 100, m, n_classes, dissent=0.3):
        how, label = answer(votes, 2, b, first, int(rng.integers(UNITY)), n_classes)
        place = int(np.searchsorted(np.unique(votes), label))
        assert answer(votes, REPLAY, b, again, place, n_classes) == (how, label)
    assert np.array_equal(first, again)


def test_the_secret_enters_through_the_coupling_alone():
    """With the same randomness two secrets get different labels only where the coupled numbers are drawn."""
    rng = np.random.default_rng(5)
    m, n_classes, b = 16, 2, 2.0**-4
    votes = contested_votes(rng, 1, m, n_classes, dissent=0.4)[0]
    one, other = int(np.argmax(votes == 0)), int(np.argmax(votes == 1))
    used = calibrate_channel(votes, n_classes, Belief.uniform(m), b)
    for uniform in rng.integers(UNITY, size=300).tolist():
        labels = [
            answer(votes, secret, b, np.full(m, -math.log(m)), uniform, n_classes)[1]
            for secret in (one, other)
        ]
        if uniform < UNITY - used.coupled:
            assert labels[0] == labels[1]
        elif uniform > UNITY - used.coupled * 0.999:
            assert labels == [0, 1]


def test_a_budget_too_small_for_whole_numbers_releases_nothing():
    """Where not even one of 2^62 may be coupled, the answer comes from the belief, and the belief stays."""
    votes, log_belief = np.array([0, 0, 0, 1], np.int16), np.full(4, -math.log(4))
    how, label = answer(votes, 3, 1e-200, log_belief, 5, 2)
    assert (how, label) == (BELIEVED, 0)
    assert np.array_equal(log_belief, np.full(4, -math.log(4)))


def test_unanimous_votes_have_nothing_to_tell():
    """One class has all the weight."""
    used = calibrate_channel([1, 1, 1, 1], 3, Belief.uniform(4), 0.1)
    assert (used.weights.tolist(), used.coupled, used.classes.tolist()) == ([UNITY], 0, [1])
    assert used.leakage() == used.reach() == 0


def test_what_a_channel_says_of_itself():
    """Its law, its certificate and its reach."""
    used = calibrate_channel([0, 0, 0, 2], 3, Belief.uniform(4), 0.01)
    np.testing.assert_allclose(used.transition.sum(axis=1), 1)
    assert used.classes.tolist() == [0, 2]
    assert (
        float(exact_information([0.75, 0.25], used.weights.tolist(), used.coupled)) <= used.leakage() <= 0.01
    )
    assert used.reach() == pytest.approx(math.log(used.transition[1, 1] / used.transition[0, 1]))
    tight = calibrate_channel([0, 0, 0, 2], 3, Belief.uniform(4), 0.01, room=0.01)
    assert 0.0099 < tight.reach() <= 0.01
    assert tight.coupled < used.coupled


def test_calibrations_that_are_refused():
    """Budgets and shapes are checked as for Gaussian noise."""
    with pytest.raises(InvalidBudget):
        calibrate_channel([0, 1], 2, Belief.uniform(2), 0)
    with pytest.raises(InvalidInput, match="one query"):
        calibrate_channel([[0, 1], [0, 1]], 2, Belief.uniform(2), 0.1)


def test_the_constants_are_as_claimed():
    """The unit fits a signed 64-bit integer beside any sum of weights."""
    assert UNITY == 2**channel.UNITY_BITS < 2**63
