"""The fast path against Algorithm 1 as the paper writes it."""

import math

import mpmath
import numpy as np
import pytest
from algorithm1 import Algorithm1
from voting import contested_votes, random_votes

from pacpredict import Belief, Budget, MemoryLedger, Secret, Session, calibrate_votes
from pacpredict.core.kernel import keep_normalised
from pacpredict.core.release import answer_votes


def session_of(n_classes, m, b, secret, seed, prior=None):
    return Session(
        n_classes,
        Budget(b, 1e6 * b),
        m if prior is None else prior,
        secret=Secret(secret, m),
        ledger=MemoryLedger(),
        generator=np.random.default_rng(seed),
    )


def assert_agree(session, naive, votes, n_classes):
    """Answer one query with both, on the same noisy vector, and compare noise and belief."""
    one_hot = np.eye(n_classes)[votes]
    noise = calibrate_votes(votes, n_classes, session.belief, session.budget.step)
    ours = noise.covariance()
    theirs = naive.covariance(one_hot)
    # The oracle itself has rounding noise where all models agree.
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9 * np.abs(theirs).max() + 1e-20)
    session.answer(votes)
    entry = list(session._ledger.entries())[-1]
    if entry.noisy is not None:
        naive.update(one_hot, noise.vector(entry.noisy), *naive.calibrate(one_hot))
    np.testing.assert_allclose(session.belief.probabilities(), naive.belief, rtol=0, atol=1e-9)


@pytest.mark.parametrize("log2_b", [-8, -16, -32])
@pytest.mark.parametrize("n_classes", [2, 3, 10, 100])
def test_noise_and_belief_agree_with_algorithm_1_release_by_release(n_classes, log2_b):
    """Over a stream of queries, both have the same noise and the same belief to 1e-9."""
    b, m, secret = 2.0**log2_b, 128, 17
    rng = np.random.default_rng(3)
    naive = Algorithm1(np.full(m, 1 / m), b, secret, rng)
    session = session_of(n_classes, m, b, secret, seed=4)
    for votes in random_votes(rng, 60, m, n_classes, dissent=0.05):
        assert_agree(session, naive, votes, n_classes)


def exact_step(log_belief, votes, axes, noisy, b):
    """Algorithm 1 in 60 digits: the covariance of the noise on the voted classes, and the belief after a release."""
    with mpmath.workdps(60):
        belief = [mpmath.exp(mpmath.mpf(float(x))) for x in log_belief]
        total = mpmath.fsum(belief)
        voted, slots = np.unique(votes, return_inverse=True)
        k = voted.size
        mass = [
            mpmath.fsum(p for p, s in zip(belief, slots, strict=True) if s == c) / total for c in range(k)
        ]
        covariance = mpmath.diag(mass) - mpmath.matrix(mass) * mpmath.matrix(mass).T
        values, vectors = mpmath.eigsy(covariance)
        order = sorted(range(k), key=lambda i: values[i])[1:]  # without the null vector
        deviations = {i: mpmath.sqrt(values[i]) for i in order}
        variance = {i: deviations[i] * mpmath.fsum(deviations.values()) / (2 * mpmath.mpf(b)) for i in order}
        sigma = mpmath.matrix(k, k)
        for i in order:
            sigma += variance[i] * vectors[:, i] * vectors[:, i].T
        released = mpmath.matrix(
            [
                mpmath.mpf(1) / k + mpmath.fdot(zip(map(float, axes[:, c]), map(float, noisy), strict=True))
                for c in voted
            ]
        )
        exponent = [
            -sum((vectors[:, i].T * (released - mpmath.eye(k)[:, c]))[0] ** 2 / variance[i] for i in order)
            / 2
            for c in range(k)
        ]
        joint = [p * mpmath.exp(exponent[s] - max(exponent)) for p, s in zip(belief, slots, strict=True)]
        after = np.array([float(p / mpmath.fsum(joint)) for p in joint])
        return np.array(sigma.tolist(), dtype=float), after


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_noise_and_belief_are_exact_when_the_belief_collapses(n_classes):
    """At b = 2^-4, where NumPy's decomposition loses digits, both agree with 60-digit arithmetic to 1e-9."""
    b, m = 2.0**-4, 64
    rng = np.random.default_rng(3)
    session = session_of(n_classes, m, b, 17, seed=4)
    compared = 0
    for votes in contested_votes(rng, 60, m, n_classes, dissent=0.1):
        before = session.belief
        noise = calibrate_votes(votes, n_classes, before, b)
        session.answer(votes)
        voted = np.unique(votes)
        if min(before.probabilities()[votes == c].sum() for c in voted) < 1e-20:
            continue  # the floor under the masses adds noise of its own
        compared += 1
        noisy = list(session._ledger.entries())[-1].noisy
        sigma, after = exact_step(before.log_probabilities, votes, noise.axes, noisy, b)
        ours = noise.covariance()[np.ix_(voted, voted)]
        np.testing.assert_allclose(ours, sigma, rtol=0, atol=1e-9 * np.abs(sigma).max())
        np.testing.assert_allclose(session.belief.probabilities(), after, rtol=0, atol=1e-9)
    assert compared > 20


@pytest.mark.parametrize("m", [2, 6, 128, 400])
def test_agreement_holds_for_a_non_uniform_prior_and_heavy_dissent(m):
    """Neither the number of models nor the prior nor a missing majority matters."""
    rng = np.random.default_rng(m)
    prior = rng.dirichlet(np.ones(m))
    naive = Algorithm1(prior, 2**-10, 1, rng)
    session = session_of(7, m, 2**-10, 1, seed=5, prior=Belief.from_probabilities(prior))
    for votes in random_votes(rng, 60, m, 7, dissent=0.6):
        assert_agree(session, naive, votes, 7)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_noise_is_drawn_with_the_calibrated_covariance(n_classes):
    """The noisy vectors of many equal sessions scatter as the covariance says, around the secret's label."""
    m, b, n = 16, 2.0**-6, 40_000
    rng = np.random.default_rng(0)
    votes = contested_votes(rng, 1, m, n_classes, dissent=0.5)
    noise = calibrate_votes(votes[0], n_classes, Belief.uniform(m), b)
    drawn = np.zeros((n, n_classes))
    for i in range(n):
        noisy = np.empty(noise.variances.size)
        answer_votes(
            *(votes, n_classes, 3, b, False, math.inf, 0.0, False, False, 0, 1),
            *(rng.standard_normal(noisy.size), np.empty(0, np.int64)),
            *(np.full(m, -np.log(m)), np.full(m, -np.log(m)), noisy),
        )
        drawn[i] = noise.vector(noisy)
    covariance = noise.covariance()
    scale = np.sqrt(np.diag(covariance))
    error = 5 * np.abs(covariance).max() / np.sqrt(n)
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=2 * error)
    np.testing.assert_allclose(
        drawn.mean(axis=0), np.eye(n_classes)[votes[0, 3]], atol=5 * scale.max() / n**0.5
    )


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_argmax_never_names_a_class_that_nobody_voted_for(n_classes):
    """The noise sums to zero over the voted classes, so one of them always wins."""
    rng = np.random.default_rng(1)
    votes = contested_votes(rng, 500, 32, n_classes, dissent=0.1)
    releases = session_of(n_classes, 32, 2**-20, 5, seed=6).answer_all(votes)
    assert all(release.label in row for release, row in zip(releases, votes, strict=True))


def test_map_is_the_label_of_largest_posterior_mass():
    """The map decoder agrees with the posterior computed by Algorithm 1 from the same noisy vector."""
    m, n_classes, b = 64, 4, 2.0**-6
    rng = np.random.default_rng(2)
    naive = Algorithm1(np.full(m, 1 / m), b, 9, rng)
    session = Session(
        n_classes,
        Budget(b, 1e3),
        m,
        secret=Secret(9, m),
        decode="map",
        ledger=MemoryLedger(),
        generator=np.random.default_rng(7),
    )
    for votes in contested_votes(rng, 100, m, n_classes, dissent=0.4):
        noise = calibrate_votes(votes, n_classes, session.belief, b)
        label = session.answer(votes).label
        one_hot = np.eye(n_classes)[votes]
        noisy = list(session._ledger.entries())[-1].noisy
        naive.update(one_hot, noise.vector(noisy), *naive.calibrate(one_hot))
        assert label == np.argmax(naive.belief @ one_hot)


@pytest.mark.parametrize("drift", [1e-12, -1e-12, 1e-13])
def test_the_sum_of_the_belief_is_looked_after(drift):
    """A belief that has drifted is normalised at every 256th contested release; one that has not keeps its bits."""
    drifted = np.full(16, -np.log(16)) + drift
    for contested in (255, 257):
        belief = drifted.copy()
        keep_normalised(belief, contested)
        assert np.array_equal(belief, drifted)
    keep_normalised(belief, 512)
    if abs(drift) > 2e-13:
        assert abs(math.fsum(np.exp(belief)) - 1) < 1e-15
    else:
        assert np.array_equal(belief, drifted)


def test_a_drifting_belief_is_normalised_between_releases():
    """In a stream of releases the sum returns to 1 where the count says so, in one batch or in many."""
    rng = np.random.default_rng(12)
    votes = contested_votes(rng, 300, 16, 3, dissent=0.02)  # where most dissent, the sum is looked at anyway
    sizes = [np.unique(row).size - 1 for row in votes]
    normals, start = rng.standard_normal(sum(sizes)), np.full(16, -np.log(16)) + 4e-13
    fixed = (False, math.inf, 0.0, False, False)

    def run(pieces):
        belief, done, used = start.copy(), 0, 0
        for rows in pieces:
            n = sum(sizes[done : done + rows])
            answer_votes(
                *(votes[done : done + rows], 3, 2, 2.0**-32, *fixed, done, 1000, normals[used : used + n]),
                *(np.empty(0, np.int64), belief, start, np.empty(n)),
            )
            done, used = done + rows, used + n
        return belief

    whole = run([300])
    assert np.array_equal(whole, run([100, 100, 100]))
    assert abs(math.fsum(np.exp(whole)) - 1) < 1e-13
    assert abs(math.fsum(np.exp(run([250]))) - 1) > 3e-13
