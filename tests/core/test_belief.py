"""Beliefs: a distribution in log space, Bayes' rule without underflow, and what is read from it."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from pacpredict.core.belief import Belief
from pacpredict.core.kernel import LOG_BELIEF_FLOOR
from pacpredict.exceptions import InvalidBelief, InvalidSubsets

sizes = st.integers(1, 12)
log_weights = st.one_of(st.floats(-5, 0), st.floats(-1000, 0))


@st.composite
def beliefs(draw, size=sizes):
    weights = np.array(draw(st.lists(log_weights, min_size=(m := draw(size)), max_size=m)))
    return Belief(weights - np.logaddexp.reduce(weights))


def exact_update(log_p, log_likelihood):
    """Bayes' rule in fifty digits; returns the logarithms of the new probabilities."""
    with mpmath.workdps(50):
        joint = [mpmath.mpf(a) + mpmath.mpf(b) for a, b in zip(log_p, log_likelihood, strict=True)]
        top = max(joint)
        evidence = top + mpmath.log(mpmath.fsum(mpmath.exp(x - top) for x in joint))
        return np.array([max(float(x - evidence), LOG_BELIEF_FLOOR) for x in joint])


@pytest.mark.parametrize("m", [1, 2, 7, 128, 1024])
def test_uniform(m):
    """Every model is as likely as any other."""
    assert Belief.uniform(m).n_models == m
    assert Belief.uniform(m).probabilities() == pytest.approx(np.full(m, 1 / m), rel=1e-14)


def test_zeros_are_kept_as_a_floor():
    """An impossible model has a finite logarithm, and probability exactly 0."""
    belief = Belief.from_probabilities([0.0, 0.25, 0.75])
    assert belief.log_probabilities[0] == LOG_BELIEF_FLOOR
    assert belief.probabilities().tolist() == pytest.approx([0.0, 0.25, 0.75])
    assert belief.probabilities()[0] == 0


def test_the_smallest_doubles_survive():
    """Probabilities near the end of double range are not taken for 0."""
    belief = Belief.from_probabilities([1.0, 5e-324])
    assert belief.log_probabilities[1] == pytest.approx(math.log(5e-324))


@settings(deadline=None)
@given(belief=beliefs())
def test_probabilities_are_a_distribution(belief):
    """Leaving log space gives numbers of at least 0 that sum to 1."""
    p = belief.probabilities()
    assert (p >= 0).all()
    assert math.fsum(p) == pytest.approx(1, rel=1e-14)


def test_beliefs_do_not_change():
    """A belief is independent of the array that it was made of, and its own is read-only."""
    source = np.log([0.5, 0.5])
    belief = Belief(source)
    source[:] = 0
    assert belief.probabilities().tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        belief.log_probabilities[0] = 0.0


BAD_PROBABILITIES = {
    "sum above 1": [0.5, 0.50001],
    "sum below 1": [0.5, 0.49999],
    "negative": [1.5, -0.5],
    "NaN": [math.nan, 1.0],
    "infinity": [math.inf, 0.0],
    "nothing": [],
    "a number": 1.0,
    "two dimensions": [[0.5, 0.5]],
    "ragged": [[0.5], [0.25, 0.25]],
    "texts": ["a", "b"],
    "None": None,
}


@pytest.mark.parametrize("bad", BAD_PROBABILITIES.values(), ids=BAD_PROBABILITIES)
def test_bad_probabilities_are_refused(bad):
    """What is no distribution is no belief."""
    with pytest.raises(InvalidBelief):
        Belief.from_probabilities(bad)


@pytest.mark.parametrize(
    "bad",
    [
        np.log([0.5, 0.6]),
        [0.0, 0.0],
        [math.nan, 0.0],
        [math.inf, 0.0],
        [-math.inf, -math.inf],
        [],
        [[0.0]],
        0.0,
    ],
)
def test_bad_logarithms_are_refused(bad):
    """The same holds for beliefs that are given in log space."""
    with pytest.raises(InvalidBelief), np.errstate(over="ignore"):
        Belief(np.array(bad))


def test_rounding_of_a_sum_is_forgiven():
    """A distribution that went through single precision is one still, and is normalised."""
    p = np.random.default_rng(0).dirichlet(np.ones(100)).astype(np.float32)
    assert math.fsum(Belief.from_probabilities(p).probabilities()) == pytest.approx(1, rel=1e-14)


def test_logarithms_are_normalised_too():
    """The logarithms that a session goes on with belong to probabilities that sum to 1."""
    belief = Belief(np.log(np.full(4, 0.25 * (1 - 9e-7))))
    assert math.fsum(np.exp(belief.log_probabilities)) == pytest.approx(1, rel=1e-12)


@settings(deadline=None, max_examples=200)
@given(belief=beliefs(), data=st.data())
def test_update_is_bayes_rule(belief, data):
    """Posterior logarithms agree with fifty-digit arithmetic, however unlikely the observation."""
    exponents = st.one_of(st.floats(-10, 10), st.floats(-1e6, 1e6))
    log_likelihood = data.draw(hnp.arrays(np.float64, belief.n_models, elements=exponents))
    updated = belief.updated(log_likelihood).log_probabilities
    expected = exact_update(belief.log_probabilities, log_likelihood)
    assert updated == pytest.approx(expected, rel=1e-12, abs=1e-9)


@settings(deadline=None)
@given(belief=beliefs(), data=st.data())
def test_updates_add_up(belief, data):
    """Two observations in turn are one observation of both."""
    first, second = (
        data.draw(hnp.arrays(np.float64, belief.n_models, elements=st.floats(-20, 20))) for _ in range(2)
    )
    in_turn = belief.updated(first).updated(second).probabilities()
    assert in_turn == pytest.approx(belief.updated(first + second).probabilities(), rel=1e-9, abs=1e-12)


def test_shared_parts_of_a_likelihood_do_not_matter():
    """What all models have in common cancels, also if it is huge."""
    belief, log_likelihood = Belief.from_probabilities([0.2, 0.3, 0.5]), np.array([0.0, 1.0, -2.0])
    expected = belief.updated(log_likelihood).probabilities()
    for shared in (1e3, -1e3, -1e8):
        assert belief.updated(log_likelihood + shared).probabilities() == pytest.approx(expected, rel=1e-6)


def test_a_thousand_strong_observations_leave_numbers():
    """Where a linear belief would be 0 / 0, every logarithm is finite and none is below the floor."""
    belief = Belief.uniform(4)
    for i in range(1000):
        belief = belief.updated(np.array([0.0, -700.0, -1e7, 700.0 * (-1) ** i]))
    assert np.isfinite(belief.log_probabilities).all()
    assert belief.log_probabilities.min() == LOG_BELIEF_FLOOR
    assert math.fsum(belief.probabilities()) == pytest.approx(1)


@pytest.mark.parametrize("bad", [[math.nan, 0.0], [math.inf, 0.0]])
def test_impossible_likelihoods_are_refused(bad):
    """An update that has no answer raises instead of spreading NaN."""
    with pytest.raises(InvalidBelief), np.errstate(invalid="ignore"):
        Belief.uniform(2).updated(np.array(bad))


@settings(deadline=None)
@given(belief=beliefs())
def test_entropy(belief):
    """What remains unknown is between 0 and log m, and what SciPy computes."""
    assert 0 <= belief.entropy() <= math.log(belief.n_models) + 1e-12
    assert belief.entropy() == pytest.approx(stats.entropy(belief.probabilities()), rel=1e-9, abs=1e-12)


def test_entropy_of_certainty_and_ignorance():
    """Nothing is unknown about a found secret, and log m about a fresh one."""
    assert Belief.from_probabilities([0.0, 1.0]).entropy() == 0
    assert Belief.uniform(128).entropy() == pytest.approx(math.log(128), rel=1e-14)


@settings(deadline=None)
@given(pair=st.integers(1, 8).flatmap(lambda m: st.tuples(beliefs(st.just(m)), beliefs(st.just(m)))))
def test_divergence(pair):
    """What a history revealed is the relative entropy to the prior, and never negative."""
    belief, prior = pair
    expected = float(belief.probabilities() @ (belief.log_probabilities - prior.log_probabilities))
    assert belief.divergence(prior) >= 0
    assert belief.divergence(prior) == pytest.approx(max(expected, 0), rel=1e-9, abs=1e-9)
    assert belief.divergence(belief) == 0


@pytest.mark.parametrize("kind", [bool, int, float])
@pytest.mark.parametrize("n_records", [0, 1, 5, 16_384, 16_385, 40_000])
def test_posterior(n_records, kind):
    """A record is as exposed as the models that have it are likely, for any number of records."""
    rng = np.random.default_rng(1)
    belief, members = Belief.from_probabilities(rng.dirichlet(np.ones(6))), rng.random((6, n_records)) < 0.5
    posterior = belief.membership_posterior(members.astype(kind))
    assert posterior.shape == (n_records,)
    assert posterior == pytest.approx(np.array(belief.probabilities() @ members), rel=1e-12)


def test_posterior_is_a_probability():
    """A record that every model has is in the training set with probability 1, not a bit more."""
    belief = Belief.from_probabilities(np.full(10, 0.1))
    assert belief.membership_posterior(np.ones((10, 3)))[0] <= 1
    assert belief.membership_posterior(np.zeros((10, 3))).tolist() == [0.0] * 3


def test_posterior_refuses_packed_bits():
    """Bits of eight records in a byte are no membership of one: refused, with what to do, also past the first block."""
    members = np.random.default_rng(0).random((6, 4000)) < 0.5
    with pytest.raises(InvalidSubsets, match="unpack"):
        Belief.uniform(6).membership_posterior(np.packbits(members, axis=1))
    late = np.zeros((6, 40_000), np.uint8)
    late[3, -1] = 255
    with pytest.raises(InvalidSubsets, match="unpack"):
        Belief.uniform(6).membership_posterior(late)


@pytest.mark.parametrize("shape", [(3,), (3, 2), (4, 2, 2), ()])
def test_posterior_needs_a_row_for_every_model(shape):
    """A membership matrix of another shape is refused."""
    with pytest.raises(InvalidSubsets, match="shape"):
        Belief.uniform(4).membership_posterior(np.ones(shape))
