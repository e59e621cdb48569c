"""Noise against a dense oracle, its certificate in exact arithmetic, and what it must not carry."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import exact_leakage
from scipy import stats

from pacpredict.core.belief import Belief
from pacpredict.core.calibrate import Noise, calibrate, calibrate_votes
from pacpredict.exceptions import InvalidBelief, InvalidBudget, InvalidInput, InvalidOutputs, InvalidVotes


def oracle_covariance(outputs, belief, b):
    """Sigma of Theorem 2.4 in forty digits, from the eigenvectors of the explicit covariance."""
    with mpmath.workdps(40):
        y, p = mpmath.matrix(outputs.tolist()), [mpmath.exp(mpmath.mpf(x)) for x in belief.log_probabilities]
        total = mpmath.fsum(p)
        p = mpmath.diag([x / total for x in p])
        ones = mpmath.ones(y.rows, 1)
        centred = y - ones * ((ones.T * p) * y)
        values, vectors = mpmath.eigsy(centred.T * p * centred)
        threshold = 1e-30 * max(values)
        deviations = [mpmath.sqrt(x) if x > threshold else mpmath.mpf(0) for x in values]
        factor = mpmath.fsum(deviations) / (2 * mpmath.mpf(b))
        sigma = vectors * mpmath.diag([s * factor for s in deviations]) * vectors.T
        return np.array(sigma.tolist(), dtype=float)


def numpy_covariance(outputs, belief, b):
    """The same by numpy.linalg.eigh, for larger problems."""
    p = belief.probabilities()
    centred = outputs - p @ outputs
    values, vectors = np.linalg.eigh((centred.T * p) @ centred)
    deviations = np.sqrt(np.where(values > 1e-13 * values.max(), values, 0))
    return (vectors * deviations) @ vectors.T * deviations.sum() / (2 * b)


def skewed(m, seed=0, concentration=0.3):
    return Belief.from_probabilities(
        np.random.default_rng(seed).dirichlet(np.full(m, concentration)) * 0.999 + 0.001 / m
    )


def near_certain(m, rest):
    """One model has all belief but `rest`."""
    p = np.full(m, rest / (m - 1))
    p[m // 2] = 1 - rest
    return Belief.from_probabilities(p)


def soft_scores(rng, m, d):
    return rng.dirichlet(np.ones(d), size=m)


def low_rank(rng, m, d):
    return rng.standard_normal((m, 2)) @ rng.standard_normal((2, d))


def with_constant_columns(rng, m, d):
    outputs = rng.standard_normal((m, d))
    outputs[:, ::2] = 0.1 * np.arange(1, d + 1)[::2]
    return outputs


def badly_scaled(rng, m, d):
    return rng.standard_normal((m, d)) * 10.0 ** np.linspace(-4, 4, d)


def far_from_zero(rng, m, d):
    return 1e6 + rng.standard_normal((m, d))


def few_distinct(rng, m, d):
    return rng.standard_normal((2, d))[rng.permutation(np.arange(m) % 2)]


KINDS = [soft_scores, low_rank, with_constant_columns, badly_scaled, far_from_zero, few_distinct]
BELIEFS = {
    "uniform": Belief.uniform,
    "skewed": skewed,
    "certain to 1e-6": lambda m: near_certain(m, 1e-6),
    "certain to 1e-12": lambda m: near_certain(m, 1e-12),
}


@pytest.mark.parametrize("b", [2.0**-32, 0.5])
@pytest.mark.parametrize("make", BELIEFS.values(), ids=BELIEFS)
@pytest.mark.parametrize("shape", [(8, 4), (4, 7), (6, 2)])
@pytest.mark.parametrize("kind", KINDS)
def test_covariance_is_that_of_the_theorem(kind, shape, make, b):
    """The noise agrees with high-precision eigenvectors of the explicit covariance, whatever its shape and rank."""
    m, d = shape
    outputs, belief = kind(np.random.default_rng(1), m, d), make(m)
    noise = calibrate(outputs, belief, b)
    expected = oracle_covariance(outputs, belief, b)
    assert noise.covariance() == pytest.approx(expected, rel=0, abs=1e-8 * np.abs(expected).max())
    assert noise.leakage(belief) == pytest.approx(b, rel=1e-9)


@pytest.mark.parametrize(("m", "d"), [(128, 10), (64, 100)])
@pytest.mark.parametrize("kind", [soft_scores, low_rank, with_constant_columns])
def test_covariance_of_larger_problems(kind, m, d):
    """So does the noise for as many models and outputs as are usual."""
    outputs, belief = kind(np.random.default_rng(2), m, d), skewed(m, concentration=1.0)
    expected = numpy_covariance(outputs, belief, 0.01)
    found = calibrate(outputs, belief, 0.01).covariance()
    assert found == pytest.approx(expected, rel=0, abs=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("kind", KINDS)
def test_axes_are_orthonormal(kind):
    """Noise is independent along perpendicular axes of length 1, as many as the rank."""
    outputs = kind(np.random.default_rng(3), 10, 6)
    noise = calibrate(outputs, skewed(10), 0.1)
    rank = np.linalg.matrix_rank(outputs - outputs[0], rtol=1e-10)
    assert noise.axes.shape == (rank, 6)
    assert noise.axes @ noise.axes.T == pytest.approx(np.eye(rank), abs=1e-12)
    assert (noise.variances > 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_diagonal_noise(kind):
    """The diagonal option noises every output that varies by its own deviation times the sum of all."""
    outputs, belief, b = kind(np.random.default_rng(4), 8, 5), skewed(8), 0.25
    noise = calibrate(outputs, belief, b, method="diagonal")
    p = belief.probabilities()
    deviations = np.sqrt(p @ (outputs - p @ outputs) ** 2)
    deviations[deviations < 1e-12 * deviations.max()] = 0
    expected = np.diag(deviations * deviations.sum() / (2 * b))
    assert noise.covariance() == pytest.approx(expected, rel=1e-6)
    assert noise.leakage(belief) == pytest.approx(b, rel=1e-9)


@pytest.mark.parametrize("kind", [soft_scores, low_rank, badly_scaled])
def test_eigenvectors_need_the_least_noise(kind):
    """Theorem 2.4 never adds more noise in all than noising each output on its own."""
    outputs, belief = kind(np.random.default_rng(5), 12, 5), skewed(12)
    eigen, diagonal = (calibrate(outputs, belief, 0.1, method=method) for method in ("eigen", "diagonal"))
    assert eigen.variances.sum() <= diagonal.variances.sum() * (1 + 1e-9)


@pytest.mark.parametrize("method", ["eigen", "diagonal"])
def test_agreement_needs_no_noise(method):
    """Outputs that never vary are released as they are."""
    outputs = np.tile([0.1, -3.0, 1e300], (6, 1))
    noise = calibrate(outputs, Belief.uniform(6), 1e-9, method=method)
    assert noise.variances.size == 0
    assert noise.leakage(Belief.uniform(6)) == 0
    assert noise.vector(noise.draw(3, np.empty(0))).tolist() == outputs[0].tolist()
    assert noise.covariance().tolist() == np.zeros((3, 3)).tolist()


# --- the certificate ---------------------------------------------------------------------------------------


@st.composite
def problems(draw):
    """Outputs of very different size, rank and sparseness, with beliefs from even to all but certain."""
    m, d = draw(st.integers(2, 8)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    outputs = rng.standard_normal((m, d))
    outputs *= 10.0 ** (rng.uniform(-1, 1, d) * draw(st.sampled_from([0, 2, 10, 40])))
    if draw(st.booleans()):
        outputs = np.round(outputs)
    if draw(st.booleans()):
        outputs = outputs[rng.integers(draw(st.integers(1, m)), size=m)]
    outputs += draw(st.sampled_from([0.0, 1.0, -1e9]))
    log_p = -rng.uniform(0, draw(st.sampled_from([0, 1, 30, 300])), m)
    return outputs, Belief(log_p - np.logaddexp.reduce(log_p))


budgets = st.one_of(st.floats(1e-12, 10.0), st.floats(-200, 3).map(lambda x: 10.0**x))


@settings(deadline=None, max_examples=400)
@given(problem=problems(), b=budgets, method=st.sampled_from(["eigen", "diagonal"]))
def test_no_calibration_exceeds_its_budget(problem, b, method):
    """In exact arithmetic on the numbers that are used, a release reveals at most its budget."""
    outputs, belief = problem
    noise = calibrate(outputs, belief, b, method=method)
    assert exact_leakage(noise, belief) <= Fraction(b)
    assert noise.leakage(belief) <= b
    assert np.isfinite(noise.variances).all()
    assert (noise.variances > 0).all()


@settings(deadline=None, max_examples=400)
@given(
    m=st.integers(2, 12), n_classes=st.integers(2, 6), seed=st.integers(0, 2**32 - 1),
    gap=st.sampled_from([0, 1, 30, 300, 1e6]), b=budgets,
)  # fmt: skip
def test_no_calibration_of_votes_exceeds_its_budget(m, n_classes, seed, gap, b):
    """The same holds for the closed form of label votes, whatever the belief has ruled out."""
    rng = np.random.default_rng(seed)
    log_p = -rng.uniform(0, gap, m)
    belief = Belief(log_p - np.logaddexp.reduce(log_p))
    noise = calibrate_votes(rng.integers(n_classes, size=m), n_classes, belief, b)
    assert exact_leakage(noise, belief) <= Fraction(b)
    assert np.isfinite(noise.variances).all()
    assert (noise.variances > 0).all()


def random_votes(rng, m, n_classes, k):
    """Votes for exactly k of the classes."""
    classes = rng.choice(n_classes, size=k, replace=False)
    return rng.permutation(np.concatenate([classes, rng.choice(classes, size=m - k)]))


@pytest.mark.parametrize("m", [2, 128, 1024])
@pytest.mark.parametrize("n_classes", [2, 10, 1000])
@pytest.mark.parametrize("log_gap", [0.0, 40.0, 690.0, 1e6])
def test_votes_at_the_extremes(m, n_classes, log_gap):
    """From a belief of 1 - 1e-300 to a uniform one, from b = 1e-300 to 1e3, noise is finite and within budget."""
    rng = np.random.default_rng(6)
    log_p = np.full(m, -log_gap)
    log_p[m // 2] = 0.0
    belief = Belief(log_p - np.logaddexp.reduce(log_p))
    votes = random_votes(rng, m, n_classes, min(m, n_classes))
    for b in (1e-300, 1e-100, 2.0**-32, 1.0, 1e3):
        noise = calibrate_votes(votes, n_classes, belief, b)
        assert np.isfinite(noise.axes).all()
        assert np.isfinite(noise.variances).all()
        assert (noise.variances > 0).all()
        assert noise.leakage(belief) <= b


@pytest.mark.parametrize("method", ["eigen", "diagonal"])
@pytest.mark.parametrize("offset", [0.0, 30.0, 1000.0])
def test_the_margin_grows_with_the_models(offset, method):
    """20,000 models, of which the likeliest lies far from the others: the exact certificate is still within b."""
    m, b = 20_000, 2.0**-10
    outputs = np.random.default_rng(m).normal(size=(m, 1))
    outputs[7] += offset
    p = np.ones(m)
    p[7] = 1.001
    belief = Belief.from_probabilities(p / p.sum())
    noise = calibrate(outputs, belief, b, method=method)
    assert exact_leakage(noise, belief) <= Fraction(noise.leakage(belief)) <= Fraction(b)


def test_the_margin_of_votes_grows_with_the_models():
    """20,000 models vote for 30 classes: the exact certificate is within b."""
    m, n_classes, b = 20_000, 30, 2.0**-32
    rng = np.random.default_rng(1)
    belief = Belief.from_probabilities(rng.dirichlet(np.ones(m)))
    votes = rng.integers(n_classes, size=m)
    noise = calibrate_votes(votes, n_classes, belief, b)
    p = [Fraction(x) for x in belief.probabilities().tolist()]
    mass = [sum(p[i] for i in np.flatnonzero(votes == c)) for c in range(n_classes)]
    first = [int(np.flatnonzero(votes == c)[0]) for c in range(n_classes)]
    leak = Fraction(0)
    for i, variance in enumerate(noise.variances.tolist()):
        u = [Fraction(x) for x in noise.coordinates[first, i].tolist()]
        mean = sum(w * x for w, x in zip(mass, u, strict=True)) / sum(mass)
        leak += (
            sum(w * (x - mean) ** 2 for w, x in zip(mass, u, strict=True)) / sum(mass) / Fraction(variance)
        )
    assert leak / 2 <= Fraction(b)


def test_noise_that_overflows_is_refused():
    """Outputs too large for a tiny budget are named, instead of noised by infinity."""
    with pytest.raises((InvalidOutputs, InvalidBudget)):
        calibrate([[0.0], [1e100]], Belief.uniform(2), 1e-300)


# --- no signal without noise -------------------------------------------------------------------------------


@settings(deadline=None, max_examples=200)
@given(problem=problems(), b=budgets, method=st.sampled_from(["eigen", "diagonal"]))
def test_there_is_no_signal_without_noise(problem, b, method):
    """What the release of any model adds to the centre lies along noised axes, to the last bit of the sum."""
    outputs, belief = problem
    noise = calibrate(outputs, belief, b, method=method)
    still = np.zeros(noise.variances.size)
    released = np.array([noise.vector(noise.draw(s, still)) for s in range(belief.n_models)])
    silent = ~noise.axes.any(axis=0)
    assert (released[:, silent] == noise.centre[silent]).all()
    for s in range(belief.n_models):
        for t in range(s):
            if (noise.coordinates[s] == noise.coordinates[t]).all():
                assert (released[s] == released[t]).all()
    signal = released - noise.centre
    residual = signal - (signal @ noise.axes.T) @ noise.axes
    size = np.abs(noise.centre) + np.abs(noise.coordinates).max(initial=0)
    assert (np.abs(residual) <= 64 * np.finfo(float).eps * size.max()).all()


@pytest.mark.parametrize("method", ["eigen", "diagonal"])
def test_ruled_out_models_carry_no_signal(method):
    """A model that the belief gives nothing is released as what it has in common with the others, bit for bit."""
    outputs = np.array([[0.25, 1.0, 3.0], [0.75, 1.0, 3.0], [0.25, 5.0, 3.0], [0.75, 1.0, -2.0]])
    belief = Belief.from_probabilities([0.5, 0.5, 0.0, 0.0])
    noise = calibrate(outputs, belief, 0.1, method=method)
    assert noise.axes.shape == (1, 3)
    for normal in (0.0, 1.5):
        drawn = [noise.vector(noise.draw(s, np.array([normal]))).tolist() for s in range(4)]
        assert drawn[2] == drawn[0]
        assert drawn[3] == drawn[1]
        assert drawn[0] != drawn[1]


def test_directions_below_the_numerical_rank_carry_no_signal():
    """Models that differ by less than rounding of the others' differences are released alike, bit for bit."""
    direction = np.array([1.0, -1.0]) / 1024
    outputs = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
    outputs[2] += direction * 2.0**-60
    noise = calibrate(outputs, Belief.uniform(4), 0.1)
    assert noise.variances.size == 1
    released = [noise.vector(noise.draw(s, np.zeros(1))) for s in range(4)]
    assert (released[1] == released[3]).all()
    assert released[0] == pytest.approx(released[2], abs=1e-15)
    assert released[0] @ direction == pytest.approx(released[1] @ direction, abs=1e-18)


@pytest.mark.parametrize("kind", KINDS)
def test_full_rank_releases_are_the_outputs(kind):
    """Without noise, a model's release is its output, up to rounding."""
    outputs = kind(np.random.default_rng(7), 8, 4)
    noise = calibrate(outputs, skewed(8), 0.5)
    for s, expected in enumerate(outputs):
        released = noise.vector(noise.draw(s, np.zeros(noise.variances.size)))
        assert released == pytest.approx(expected, rel=0, abs=1e-10 * np.abs(outputs).max())


def test_draws_have_the_covariance_of_the_noise():
    """Many releases of one model scatter around its output as Sigma says."""
    outputs = soft_scores(np.random.default_rng(8), 16, 4)
    noise = calibrate(outputs, skewed(16), 0.5)
    normals = np.random.default_rng(9).standard_normal((100_000, noise.variances.size))
    drawn = np.array([noise.vector(noise.draw(5, z)) for z in normals])
    sigma = noise.covariance()
    assert drawn.mean(axis=0) == pytest.approx(outputs[5], abs=5 * math.sqrt(sigma.max() / 100_000))
    assert np.cov(drawn.T) == pytest.approx(sigma, abs=0.03 * sigma.max())


def test_log_likelihood_is_that_of_the_normal_distribution():
    """Differences between models are those of SciPy's log densities."""
    outputs = np.random.default_rng(10).standard_normal((10, 3))
    noise = calibrate(outputs, skewed(10), 0.5)
    noisy = noise.draw(2, np.array([0.3, -1.0, 2.0]))
    vector = noise.vector(noisy)
    expected = [stats.multivariate_normal.logpdf(vector, mean, noise.covariance()) for mean in outputs]
    found = noise.log_likelihood(noisy)
    assert found - found[0] == pytest.approx(np.array(expected) - expected[0], rel=1e-8, abs=1e-8)


# --- label votes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 5, 10])
@pytest.mark.parametrize("make", [Belief.uniform, skewed], ids=["uniform", "skewed"])
@pytest.mark.parametrize("b", [2.0**-32, 0.1])
def test_votes_are_outputs(k, make, b):
    """The closed form gives the noise, the releases and the likelihoods of the general path on one-hot rows."""
    rng = np.random.default_rng(11)
    votes, belief = random_votes(rng, 24, 12, k), make(24)
    fast, general = calibrate_votes(votes, 12, belief, b), calibrate(np.eye(12)[votes], belief, b)
    sigma = general.covariance()
    assert fast.covariance() == pytest.approx(sigma, rel=0, abs=1e-9 * sigma.max())
    for s in range(24):
        assert fast.vector(fast.draw(s, np.zeros(k - 1))) == pytest.approx(np.eye(12)[votes[s]], abs=1e-12)
    noisy = fast.draw(3, rng.standard_normal(k - 1))
    vector = fast.vector(noisy)
    assert fast.coordinates_of(vector) == pytest.approx(noisy, rel=1e-9, abs=1e-9)
    exponents = [noise.log_likelihood(noise.coordinates_of(vector)) for noise in (fast, general)]
    exponents = [x - x[0] for x in exponents]
    assert exponents[0] == pytest.approx(exponents[1], rel=1e-7, abs=1e-9)


def test_two_classes_have_a_formula():
    """With masses w and 1 - w there is one axis, of variance w (1 - w) / b."""
    belief = Belief.from_probabilities([0.1, 0.2, 0.3, 0.4])
    noise = calibrate_votes([1, 0, 1, 1], 3, belief, 0.01)
    assert noise.variances == pytest.approx([0.2 * 0.8 / 0.01], rel=1e-10)
    assert np.abs(noise.axes) == pytest.approx(np.array([[math.sqrt(0.5), math.sqrt(0.5), 0.0]]))


def test_unanimous_votes_need_no_noise():
    """Where all agree there is nothing to hide."""
    noise = calibrate_votes([2, 2, 2, 2], 3, Belief.uniform(4), 0.01)
    assert noise.variances.size == 0
    assert noise.vector(noise.draw(1, np.empty(0))).tolist() == [0.0, 0.0, 1.0]


def test_unvoted_classes_have_no_noise():
    """A class that nobody votes for stays at exactly 0."""
    noise = calibrate_votes([0, 3, 3, 5], 7, Belief.uniform(4), 0.01)
    drawn = noise.vector(noise.draw(0, np.array([1.0, -2.0])))
    assert drawn[[1, 2, 4, 6]].tolist() == [0.0] * 4


# --- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("b", [0.0, -1.0, math.nan, math.inf, None])
def test_bad_budgets(b):
    """A budget must be a positive amount."""
    with pytest.raises(InvalidBudget):
        calibrate([[0.0], [1.0]], Belief.uniform(2), b)
    with pytest.raises(InvalidBudget):
        calibrate_votes([0, 1], 2, Belief.uniform(2), b)


@pytest.mark.parametrize(
    "outputs",
    [
        [[0.0], [math.nan]],
        [[0.0], [math.inf]],
        [[0.0]],
        [0.0, 1.0],
        [[], []],
        [[0.0], [1e101]],
        [[0.0], [1e-101]],
    ],
)
def test_bad_outputs(outputs):
    """Outputs must be finite, of the right shape and of a size whose squares are doubles."""
    with pytest.raises(InvalidOutputs):
        calibrate(outputs, Belief.uniform(2), 0.1)


@pytest.mark.parametrize("method", ["svd", None, "Eigen", ""])
def test_unknown_methods(method):
    """A method that does not exist is not taken for another."""
    with pytest.raises(InvalidInput, match="method must be"):
        calibrate([[0.0], [1.0]], Belief.uniform(2), 0.1, method=method)


@pytest.mark.parametrize("votes", [[0, 2], [0, -1], [0.0, 1.0], [0], [0, 1, 1], []])
def test_bad_votes(votes):
    """Votes must be labels of all models."""
    with pytest.raises(InvalidVotes):
        calibrate_votes(votes, 2, Belief.uniform(2), 0.1)


def test_one_query_at_a_time():
    """A matrix of votes is not silently taken for its first row."""
    with pytest.raises(InvalidInput, match="one query"):
        calibrate_votes([[0, 1], [0, 1]], 2, Belief.uniform(2), 0.1)


def test_leakage_is_about_the_same_models():
    """A belief over another number of models does not fit."""
    with pytest.raises(InvalidBelief, match="over 2 models"):
        calibrate([[0.0], [1.0]], Belief.uniform(2), 0.1).leakage(Belief.uniform(3))


def test_leakage_is_computed_from_the_noise_itself():
    """Noise that is too small is found out."""
    noise, belief = calibrate([[0.0], [1.0]], Belief.uniform(2), 0.1), Belief.uniform(2)
    weaker = Noise(noise.centre, noise.axes, noise.coordinates, noise.variances / 3)
    assert weaker.leakage(belief) == pytest.approx(0.3, rel=1e-9)
