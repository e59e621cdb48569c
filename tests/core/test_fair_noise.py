"""Fair noise: equal variances on the sum-zero space of the voted labels, and what labels it gives."""

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import estimated_information, exact_leakage, quadrature_information

from pacpredict import Belief, calibrate_votes
from pacpredict.core.axes import helmert_axes, make_scratch, padded
from pacpredict.core.odds_limit import reach_of_fair_noise
from pacpredict.exceptions import InvalidInput

BUDGETS = [2.0**-4, 2.0**-8, 2.0**-16, 2.0**-32]


def random_problem(rng, k, m=24, concentration=1.0):
    """Votes for exactly k classes, and a belief."""
    votes = rng.permutation(np.concatenate([np.arange(k), rng.integers(k, size=m - k)]))
    p = rng.dirichlet(np.full(m, concentration)) * (1 - 1e-9) + 1e-9 / m
    return votes, Belief.from_probabilities(p)


def masses(votes, belief):
    return np.bincount(votes, weights=belief.probabilities())


def points_of(noise, k, votes):
    """The coordinates that each class has."""
    return noise.coordinates[[int(np.flatnonzero(votes == c)[0]) for c in range(k)]]


@pytest.mark.parametrize("k", [2, 3, 4, 5, 8, 9, 16, 40, 128])
def test_axes_are_an_orthonormal_basis_of_the_sum_zero_space(k):
    """Whatever the masses, the axes are orthonormal, sum to zero, and lanes without an axis are zero."""
    axes = np.full((k, padded(k - 1)), np.nan)
    mass = np.random.default_rng(k).dirichlet(np.ones(k))
    assert helmert_axes(mass, axes, make_scratch(k)) == mass.argmax()
    assert (axes[:, k - 1 :] == 0).all()
    np.testing.assert_allclose(
        axes.T @ axes, np.eye(axes.shape[1]) * (np.arange(axes.shape[1]) < k - 1), atol=1e-14
    )
    np.testing.assert_allclose(axes.sum(axis=0), 0, atol=1e-13)


@pytest.mark.parametrize("b", BUDGETS)
@pytest.mark.parametrize("concentration", [0.02, 1.0, 1e3])
@pytest.mark.parametrize("k", [2, 3, 5, 12])
def test_covariance_and_certificate_in_fifty_digits(k, concentration, b):
    """The noise is (1 - sum w²) / (2 b) on the sum-zero space, and its certificate is b to 1e-9 and never above."""
    votes, belief = random_problem(np.random.default_rng(k), k, concentration=concentration)
    noise = calibrate_votes(votes, k, belief, b, noise="fair")
    with mpmath.workdps(50):
        p = [mpmath.exp(mpmath.mpf(float(x))) for x in belief.log_probabilities]
        w = [
            mpmath.fsum(x for x, v in zip(p, votes, strict=True) if v == c) / mpmath.fsum(p) for c in range(k)
        ]
        variance = (1 - mpmath.fsum(x * x for x in w)) / (2 * mpmath.mpf(b))
        sum_zero = mpmath.eye(k) - mpmath.ones(k, k) / k
        expected = np.array((variance * sum_zero).tolist(), dtype=float)
        votes_covariance = mpmath.diag(w) - mpmath.matrix(w) * mpmath.matrix(w).T
        sigma = mpmath.matrix(noise.covariance().tolist())
        # On the sum-zero space the inverse of Sigma; the ones that are added have no share in the votes' covariance.
        inverse = (sigma + mpmath.ones(k, k) * sigma[0, 0]) ** -1
        certificate = sum((inverse * votes_covariance)[c, c] for c in range(k)) / 2
    np.testing.assert_allclose(noise.covariance(), expected, rtol=0, atol=1e-9 * expected.max())
    assert float(certificate / b) == pytest.approx(1, rel=1e-9)
    assert Fraction(b) * (1 - Fraction(1, 10**9)) <= exact_leakage(noise, belief) <= Fraction(b)


budgets = st.one_of(st.floats(1e-12, 10.0), st.floats(-200, 3).map(lambda x: 10.0**x))


@settings(deadline=None, max_examples=400)
@given(
    m=st.integers(3, 16), n_classes=st.integers(3, 12), seed=st.integers(0, 2**32 - 1),
    gap=st.sampled_from([0, 1, 30, 300, 1e6]), b=budgets,
)  # fmt: skip
def test_no_fair_calibration_exceeds_its_budget(m, n_classes, seed, gap, b):
    """In exact arithmetic on the released numbers at most b is revealed, whatever the belief has ruled out."""
    rng = np.random.default_rng(seed)
    log_p = -rng.uniform(0, gap, m)
    belief = Belief(log_p - np.logaddexp.reduce(log_p))
    noise = calibrate_votes(rng.integers(n_classes, size=m), n_classes, belief, b, noise="fair")
    assert exact_leakage(noise, belief) <= Fraction(b)
    assert np.isfinite(noise.variances).all()
    assert (noise.variances > 0).all()
    assert (noise.variances == noise.variances[:1]).all()


@pytest.mark.parametrize("b", BUDGETS)
@pytest.mark.parametrize(
    "mass", [(1 / 3, 1 / 3, 1 / 3), (0.6, 0.3, 0.1), (0.98, 0.01, 0.01), (0.5, 0.5 - 1e-6, 1e-6)]
)
def test_three_labels_never_exceed_the_budget(mass, b):
    """The information, integrated over both coordinates, is at most b, and nearly b where noise is large."""
    weights = np.array(mass) / sum(mass)
    noise = calibrate_votes([0, 1, 2], 3, Belief.from_probabilities(weights), b, noise="fair")
    information = quadrature_information(noise.coordinates, weights, np.sqrt(noise.variances))
    assert information <= b * (1 + 1e-8)
    if b <= 2.0**-16 and min(mass) > 0.001:
        assert information >= 0.99 * b


@settings(deadline=None, max_examples=60)
@given(st.integers(3, 12), st.floats(0.02, 20), st.sampled_from(BUDGETS), st.integers(0, 2**32 - 1))
def test_many_labels_never_exceed_the_budget(k, concentration, b, seed):
    """For up to twelve labels and beliefs from uniform to nearly certain, Monte Carlo stays below b."""
    rng = np.random.default_rng(seed)
    votes, belief = random_problem(rng, k, concentration=concentration)
    noise = calibrate_votes(votes, k, belief, b, noise="fair")
    information, error = estimated_information(
        points_of(noise, k, votes), masses(votes, belief), np.sqrt(noise.variances), rng, n_pairs=20_000
    )
    assert information <= b + 5 * error


@settings(deadline=None, max_examples=200)
@given(seed=st.integers(0, 2**32 - 1), m=st.integers(2, 40), gap=st.sampled_from([0, 1, 30, 1e6]), b=budgets)
def test_for_two_labels_both_are_the_same_noise(seed, m, gap, b):
    """Between two labels there is one direction, so the least noise and fair noise agree to the last bit."""
    rng = np.random.default_rng(seed)
    votes, log_p = rng.permutation(np.arange(m) < rng.integers(1, m)) * 3, -rng.uniform(0, gap, m)
    belief = Belief(log_p - np.logaddexp.reduce(log_p))
    least, fair = (calibrate_votes(votes, 5, belief, b, noise=noise) for noise in ("least", "fair"))
    for one, other in zip(vars(least).values(), vars(fair).values(), strict=True):
        assert one.tobytes() == other.tobytes()


@settings(deadline=None, max_examples=200)
@given(st.integers(3, 12), st.floats(0.02, 100), st.integers(0, 2**32 - 1))
def test_fair_noise_is_never_less_in_all(k, concentration, seed):
    """Fair noise has 1 to k - 1 times the total of the least noise, and as much where all masses are equal."""
    rng = np.random.default_rng(seed)
    votes, belief = random_problem(rng, k, concentration=concentration)
    for held in (belief, Belief.uniform(k)):
        cast = votes if held is belief else np.arange(k)
        least, fair = (calibrate_votes(cast, k, held, 2.0**-10, noise=noise) for noise in ("least", "fair"))
        ratio = fair.variances.sum() / least.variances.sum()
        assert 1 - 1e-9 <= ratio <= k - 1
    assert ratio == pytest.approx(1, rel=1e-9)


def test_an_unknown_noise_is_refused():
    """Noise is one of the two, or refused with their names."""
    with pytest.raises(InvalidInput, match="least, fair"):
        calibrate_votes([0, 1], 2, Belief.uniform(2), 0.1, noise="paper")


@pytest.mark.parametrize("k", [3, 4, 7, 12, 40, 128])
def test_all_labels_are_equally_far_apart(k):
    """In exact arithmetic no two released points are farther apart than the limit on odds takes them to be."""
    votes, belief = random_problem(np.random.default_rng(k), k, m=2 * k)
    noise = calibrate_votes(votes, k, belief, 0.01, noise="fair")
    points = [[Fraction(x) for x in point] for point in points_of(noise, k, votes).tolist()]
    variance = Fraction(noise.variances[0])
    farthest = max(
        sum((x - y) ** 2 for x, y in zip(one, other, strict=True)) / variance
        for one, other in itertools.combinations(points, 2)
    )
    with mpmath.workdps(30):
        d = mpmath.sqrt(mpmath.mpf(farthest.numerator) / farthest.denominator)
        needed = d * d / 2 + 2 * d * mpmath.sqrt(2 * mpmath.log((k - 1) / mpmath.mpf(1e-9)))
        assert needed <= reach_of_fair_noise(k, noise.variances[0], 1e-9) <= needed * (1 + 1e-10)
    assert needed <= noise.reach(1e-9)  # which knows less about the noise


@pytest.mark.parametrize("b", [2.0**-4, 2.0**-10])
@pytest.mark.parametrize("k", [3, 6])
def test_releases_stay_within_reach_but_for_delta(k, b):
    """Whoever the secret is, log-likelihoods move against each other by more in no more than delta of releases."""
    n, delta, rng = 100_000, 0.01, np.random.default_rng(k)
    votes, belief = random_problem(rng, k)
    noise = calibrate_votes(votes, k, belief, b, noise="fair")
    points, reach = points_of(noise, k, votes), reach_of_fair_noise(k, noise.variances[0], delta)
    for secret in range(k):
        noisy = points[secret] + np.sqrt(noise.variances) * rng.standard_normal((n, k - 1))
        likelihood = -0.5 * (((noisy[:, None] - points) ** 2) / noise.variances).sum(axis=2)
        assert (np.ptp(likelihood, axis=1) > reach).mean() <= delta
