"""The filters of labels: the test of Proposition 5.1 against its formula in high precision, and the posterior."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pacpredict.core.belief import Belief
from pacpredict.core.calibrate import calibrate_votes
from pacpredict.core.filters import (
    FILTERS,
    Confidence,
    check_filter,
    confidence,
    is_believed,
    is_confident,
    posteriors,
)
from pacpredict.exceptions import InvalidInput, InvalidProbability


def formula(votes, n_classes, belief, b, noisy, label):
    """min_j T_j of Proposition 5.1 over all other classes, with Sigma + t I for a tiny t, in sixty digits."""
    with mpmath.workdps(60):
        p = [mpmath.mpf(x) for x in belief.probabilities()]
        w = mpmath.matrix(
            [mpmath.fsum(x for x, v in zip(p, votes, strict=True) if v == c) for c in range(n_classes)]
        )
        w /= mpmath.fsum(w)
        values, vectors = mpmath.eigsy(mpmath.diag(list(w)) - w * w.T)
        deviations = [mpmath.sqrt(x) if x > mpmath.mpf(10) ** -50 else mpmath.mpf(0) for x in values]
        factor = mpmath.fsum(deviations) / (2 * mpmath.mpf(b))
        inverse = (
            vectors * mpmath.diag([1 / (s * factor + mpmath.mpf(10) ** -40) for s in deviations]) * vectors.T
        )
        r, unit = mpmath.matrix(noisy.tolist()), mpmath.eye(n_classes)
        statistics = []
        for j in range(n_classes):
            if j != label:
                towards = (unit[:, label] - unit[:, j]).T * inverse
                length = mpmath.sqrt((towards * (unit[:, label] - unit[:, j]))[0])
                statistics.append((towards * (r - unit[:, j]))[0] / length)
        return float(min(statistics))


@settings(deadline=None, max_examples=60)
@given(
    m=st.integers(2, 10), n_classes=st.integers(2, 5), seed=st.integers(0, 2**32 - 1),
    b=st.sampled_from([2.0**-32, 1e-3, 0.5]),
)  # fmt: skip
def test_confidence_is_the_limit_of_the_formula(m, n_classes, seed, b):
    """The singular noise of votes gives what the proposition gives when an extra noise vanishes."""
    rng = np.random.default_rng(seed)
    belief = Belief.from_probabilities(rng.dirichlet(np.ones(m)) * 0.99 + 0.01 / m)
    votes = rng.integers(n_classes, size=m)
    votes[:2] = rng.choice(n_classes, size=2, replace=False)
    noise = calibrate_votes(votes, n_classes, belief, b)
    noisy = noise.draw(int(rng.integers(m)), rng.standard_normal(noise.variances.size))
    vector = noise.vector(noisy)
    label = int(votes[np.argmax(vector[votes])])
    found, n_rivals = confidence(noise, votes, noisy, label)
    assert n_rivals == np.unique(votes).size - 1
    assert found == pytest.approx(formula(votes, n_classes, belief, b, vector, label), rel=1e-6, abs=1e-8)


def test_two_classes_by_hand():
    """With two classes the statistic is the distance from the rival, in deviations of the noise."""
    votes, belief = np.array([0, 0, 0, 1]), Belief.uniform(4)
    noise = calibrate_votes(votes, 2, belief, 0.5)
    deviation = math.sqrt(0.25 * 0.75 / 0.5)
    noisy = noise.coordinates_of(np.array([0.9, 0.1]))
    for label, entry in ((0, 0.9), (1, 0.1)):
        found = confidence(noise, votes, noisy, label)
        assert found == (pytest.approx(entry * math.sqrt(2) / deviation, rel=1e-9), 1)


def test_unanimous_labels_are_certain():
    """Where all models agree no noise could have changed the label."""
    votes = np.array([2, 2, 2, 2])
    noise = calibrate_votes(votes, 3, Belief.uniform(4), 0.1)
    noisy = noise.draw(0, np.empty(0))
    assert confidence(noise, votes, noisy, 2) == (math.inf, 0)
    assert confidence(noise, votes, noisy, 0) == (-math.inf, 1)


def test_unvoted_labels_are_impossible():
    """A label that nobody votes for is never confident, and is no rival to others."""
    votes = np.array([0, 0, 3, 3])
    noise = calibrate_votes(votes, 5, Belief.uniform(4), 0.1)
    noisy = noise.draw(0, np.array([0.5]))
    assert confidence(noise, votes, noisy, 1) == (-math.inf, 2)
    narrow = np.array([0, 0, 1, 1])
    fewer = calibrate_votes(narrow, 2, Belief.uniform(4), 0.1)
    assert tuple(confidence(noise, votes, noisy, 0)) == pytest.approx(
        confidence(fewer, narrow, noisy, 0), rel=1e-12
    )


def test_the_nearest_rival_counts():
    """The statistic is the smallest over the rivals: it falls when the vector moves towards any of them."""
    votes = np.array([0, 0, 1, 1, 2, 2])
    noise = calibrate_votes(votes, 3, Belief.uniform(6), 0.5)
    clear = confidence(noise, votes, noise.coordinates_of(np.array([1.0, 0.0, 0.0])), 0).statistic
    for nearer in ([0.7, 0.3, 0.0], [0.7, 0.0, 0.3]):
        assert confidence(noise, votes, noise.coordinates_of(np.array(nearer)), 0).statistic < clear


@pytest.mark.parametrize("alpha", [0.001, 0.01, 0.05, 0.5, 0.9])
@pytest.mark.parametrize("n_rivals", [0, 1, 2, 9])
def test_threshold(alpha, n_rivals):
    """A label passes from the upper quantile of the normal distribution on, divided among the rivals."""
    with mpmath.workdps(30):
        level = mpmath.mpf(alpha) / max(n_rivals, 1)
        threshold = float(mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * level))
    assert is_confident(Confidence(threshold + 1e-9, n_rivals), alpha)
    assert not is_confident(Confidence(threshold - 1e-9, n_rivals), alpha)


def test_the_paper_s_test_is_for_one_rival():
    """Uncorrected, the level is not divided among rivals."""
    assert is_confident(Confidence(1.7, 1), 0.05)
    assert not is_confident(Confidence(1.6, 1), 0.05)
    assert not is_confident(Confidence(1.7, 2), 0.05)
    assert is_confident(Confidence(1.7, 2), 0.05, corrected=False)


@pytest.mark.parametrize(("statistic", "expected"), [(math.inf, True), (-math.inf, False), (math.nan, False)])
def test_extreme_statistics(statistic, expected):
    """Certainty passes at every level; impossibility and NaN at none."""
    for alpha in (1e-300, 0.01, 0.999):
        assert bool(is_confident(Confidence(statistic, 3), alpha)) is expected


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.1, math.nan, math.inf])
def test_bad_levels(alpha):
    """A level is strictly between 0 and 1."""
    with pytest.raises(InvalidProbability, match="alpha"):
        is_confident(Confidence(1.0, 1), alpha)


@pytest.mark.parametrize("corrected", [True, False])
def test_many_labels_at_once(corrected):
    """Arrays of statistics are decided as each would be by itself."""
    rng = np.random.default_rng(0)
    statistics = np.append(rng.normal(2, 2, size=500), [math.inf, -math.inf])
    n_rivals = rng.integers(0, 9, size=statistics.size)
    together = is_confident(Confidence(statistics, n_rivals), 0.03, corrected=corrected)
    alone = [
        is_confident(Confidence(s, n), 0.03, corrected=corrected)
        for s, n in zip(statistics, n_rivals, strict=True)
    ]
    np.testing.assert_array_equal(together, alone)
    assert 0 < together.sum() < together.size


@settings(deadline=None, max_examples=50)
@given(m=st.integers(2, 12), n_classes=st.integers(2, 5), seed=st.integers(0, 2**32 - 1))
def test_posteriors_are_sums_of_belief(m, n_classes, seed):
    """The posterior of a label is what the belief gives to the models that vote for it, in exact arithmetic."""
    rng = np.random.default_rng(seed)
    belief = Belief.from_probabilities(rng.dirichlet(np.ones(m)))
    votes = rng.integers(n_classes, size=(6, m)).astype(np.int16)
    p = belief.probabilities()
    for row, found in zip(votes, posteriors(votes, belief, n_classes), strict=True):
        wanted = [math.fsum(x for x, v in zip(p, row, strict=True) if v == c) for c in range(n_classes)]
        np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-300)
        assert found.sum() == pytest.approx(1)


def test_doubt_decides():
    """A label is kept up to a doubt of alpha and not beyond, however little that is; certain ones always are."""
    labels = np.array([0, 0, 0, 1])
    posterior = np.array([[1.0, 0.0], [1 - 1e-9, 1e-9], [1 - 2e-9, 2e-9], [0.4, 0.6]])
    np.testing.assert_array_equal(is_believed(posterior, labels, 1.5e-9, 128), [True, True, False, False])
    np.testing.assert_array_equal(is_believed(posterior, labels, 1e-300, 128), [True, False, False, False])
    np.testing.assert_array_equal(is_believed(posterior, labels, 0.5, 128), [True] * 4)
    # Exactly alpha is not enough once what sums round away is counted.
    assert not is_believed(np.array([[0.75, 0.25]]), np.array([0]), 0.25, 128)


@pytest.mark.parametrize("alpha", [0, 1, math.nan])
def test_bad_levels_of_belief(alpha):
    """A level is strictly between 0 and 1."""
    with pytest.raises(InvalidProbability, match="alpha"):
        is_believed(np.array([[1.0, 0.0]]), np.array([0]), alpha, 2)


def test_names():
    """A misspelt filter is not taken for another."""
    assert [check_filter(name) for name in FILTERS] == ["corrected", "paper", "bayesian"]
    with pytest.raises(InvalidInput, match="corrected, paper"):
        check_filter("printed")
