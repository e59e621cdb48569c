"""The belief stays the posterior, whatever the budget and however long it lasts."""

import math

import mpmath
import numpy as np
import pytest
from small_session import (
    CLASSES,
    CONTESTED,
    M,
    make,
    random_votes,
)

from pacpredict.core.belief import Belief
from pacpredict.core.calibrate import calibrate_votes
from pacpredict.exceptions import (
    PacPredictError,
)
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.mechanism.replay import replay
from pacpredict.mechanism.secret import Secret
from pacpredict.mechanism.session import Session


def exact_posterior(entries, prior, budget):
    """Bayes' rule in fifty digits, for the noise that the tracked belief calibrates."""
    tracked = prior.log_probabilities.copy()
    with mpmath.workdps(50):
        log_p = [mpmath.mpf(x) for x in tracked]
        for i, entry in enumerate(entries):
            if entry.noisy is None:
                continue
            noise = calibrate_votes(entry.question, CLASSES, Belief(tracked), budget.step)
            for s, vote in enumerate(entry.question):
                exponent = mpmath.mpf(0)
                for axis, variance, noisy in zip(noise.axes, noise.variances, entry.noisy, strict=True):
                    distance = mpmath.mpf(noisy) - mpmath.mpf(axis[vote])
                    exponent -= distance**2 / (2 * mpmath.mpf(variance))
                log_p[s] += exponent
            evidence = mpmath.log(mpmath.fsum(mpmath.exp(x) for x in log_p))
            log_p = [x - evidence for x in log_p]
            tracked = replay(entries[: i + 1], CLASSES, budget, prior).log_belief
        return np.array([float(mpmath.exp(x)) for x in log_p])


RULED_OUT = np.array([0.3, 0.3, 0.2, 0.2, 0.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("prior", [None, RULED_OUT], ids=["uniform", "ruled out"])
@pytest.mark.parametrize("step", [2.0**-8, 2.0**-4])
def test_the_belief_is_the_posterior(step, prior):
    """What the session believes is what Bayes' rule says, also when some models are ruled out."""
    ledger = MemoryLedger()
    belief = Belief.uniform(M) if prior is None else Belief.from_probabilities(prior)
    session, _ = make(11, Budget(step, 100 * step), prior=belief, secret=Secret(1, M), ledger=ledger)
    session.answer_all(random_votes(2, 25, dissent=0.5))
    expected = exact_posterior(list(ledger.entries()), belief, session.budget)
    assert np.exp(session.snapshot().log_belief) == pytest.approx(expected, rel=0, abs=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("step", [2.0**-32, 2.0**-10, 2.0**-6, 0.25, 1.0])
def test_the_belief_stays_a_distribution(step, n_classes):
    """However long a session lasts and however much it reveals, the belief sums to 1."""
    generator = np.random.default_rng(5)
    session = Session(n_classes, Budget(step, 1e6 * step), 16, secret=Secret(3, 16), generator=generator)
    for i in range(30):
        session.answer_all(random_votes(i, 20, 0.6, 16, n_classes))
        assert math.fsum(np.exp(session.snapshot().log_belief)) == pytest.approx(1, rel=0, abs=1e-12)
    assert session.belief.n_models == 16


def extreme_prior(m, log_gap):
    """Nearly all belief in one model; the others share exp(-log_gap)."""
    log_p = np.full(m, -log_gap - math.log(m - 1))
    log_p[m // 2] = math.log1p(-math.exp(-log_gap))
    return Belief(log_p)


@pytest.mark.parametrize("log_gap", [50.0, 690.0, 720.0, 740.0, 1e6])
def test_real_outputs_of_near_certain_beliefs(log_gap):
    """A release of real outputs under a belief of 1 - 1e-300 neither overflows nor changes what is known."""
    session, _ = make(budget=Budget(10.0, 100.0), prior=extreme_prior(M, log_gap), secret=Secret(M // 2, M))
    assert np.isfinite(session.release(np.arange(M)[:, None] * 1e6)).all()
    assert session.belief.probabilities()[M // 2] == 1


@pytest.mark.parametrize("m", [2, 16, 1024])
@pytest.mark.parametrize("n_classes", [2, 5, 1000])
@pytest.mark.parametrize("step", [1e-300, 1e-30, 1e-9, 1.0, 1e3])
def test_extremes_stay_finite(m, n_classes, step):
    """Tiny and huge budgets, near-certain beliefs and many classes give labels and beliefs, never NaN."""
    for log_gap in (1.0, 40.0, 690.0, 1e6):
        prior = extreme_prior(m, log_gap)
        for secret in (m // 2, 0):
            session = Session(
                n_classes, Budget(step, 100 * step), prior, secret=Secret(secret, m),
                generator=np.random.default_rng(1),
            )  # fmt: skip
            for i in range(3):
                votes = random_votes(i, 1, 0.9, m, n_classes)[0]
                votes[:2] = 0, 1
                assert session.answer(votes).label in votes
            log_belief = session.snapshot().log_belief
            assert np.isfinite(log_belief).all()
            assert math.fsum(np.exp(log_belief)) == pytest.approx(1, rel=0, abs=1e-10)


@pytest.mark.parametrize("step", [5e-324, 1e-310, 1e-300, 1e100, 1e295, 1e300, 1e308])
def test_absurd_budgets_leave_no_nan(step):
    """A budget for which noise cannot be a double is refused, or answered with a belief that is a number."""
    try:
        session, _ = make(
            budget=Budget(step, step), prior=Belief.from_probabilities(RULED_OUT), secret=Secret(0, M)
        )
        session.answer(CONTESTED)
    except PacPredictError:
        return
    assert np.isfinite(session.snapshot().log_belief).all()


def test_surprises_leave_a_distribution():
    """When a model that was ruled out turns out to be the secret, the belief is normalised to the last digits."""
    prior = Belief.from_probabilities([0.0] * 3 + [1 / (M - 3)] * (M - 3))
    session, _ = make(budget=Budget(1.0, 10.0), prior=prior, secret=Secret(0, M))
    session.answer([1] * 3 + [0] * (M - 3))
    assert np.exp(session.snapshot().log_belief[:3]) == pytest.approx(1 / 3, rel=1e-12)
