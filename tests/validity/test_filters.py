"""How often filters keep a label that is not the secret model's, beside the level that they are run at."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import beta, norm

from pacpredict.core.belief import Belief
from pacpredict.core.calibrate import calibrate_votes
from pacpredict.core.filters import Confidence, confidence, is_believed, is_confident, posteriors
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.session import Session

pytestmark = pytest.mark.validity

M = 120
DRAWS = 40_000
# One in a million tests of a true claim fails.
ERROR = 1e-6


def lowest(n_found, n):
    """Return the lower end of the confidence interval of a rate (Clopper and Pearson)."""
    return beta.ppf(ERROR, n_found, n - n_found + 1) if n_found else 0.0


def highest(n_found, n):
    return beta.ppf(1 - ERROR, n_found + 1, n - n_found)


def even(k):
    return np.arange(M) % k


def uneven(k):
    """All but one model for each other class vote for class 0."""
    return np.where(np.arange(M) < k, np.arange(M), 0)


def budget_at(votes, k, distance):
    """Find the budget at which classes 0 and 1 lie so many deviations of the noise apart."""

    def excess(exponent):
        noise = calibrate_votes(votes, k, Belief.uniform(M), 2.0**exponent)
        apart = noise.coordinates[np.flatnonzero(votes == 0)[0]] - noise.coordinates[votes == 1][0]
        return np.log(np.sum(apart**2 / noise.variances) / distance**2)

    return 2.0 ** brentq(excess, -60, 20)


def kept_and_wrong(votes, k, b, alpha, truth, rng):
    """Draw releases of a model that votes `truth`; count labels by argmax that are wrong and pass each test."""
    noise = calibrate_votes(votes, k, Belief.uniform(M), b)
    at = np.stack([noise.coordinates[votes == c][0] for c in range(k)])
    noisy = at[truth] + np.sqrt(noise.variances) * rng.standard_normal((DRAWS, k - 1))
    labels = (noisy @ noise.axes + noise.centre).argmax(axis=1)
    statistics = np.full(DRAWS, np.inf)
    for c in range(k):
        mine = labels == c
        for rival in set(range(k)) - {c}:
            towards = (at[c] - at[rival]) / noise.variances
            of_rival = (noisy[mine] - at[rival]) @ towards / np.sqrt(towards @ (at[c] - at[rival]))
            statistics[mine] = np.minimum(statistics[mine], of_rival)
    for i in range(5):  # the library computes the same
        assert confidence(noise, votes, noisy[i], int(labels[i])).statistic == pytest.approx(statistics[i])
    found, wrong = Confidence(statistics, np.full(DRAWS, k - 1)), labels != truth
    return [
        int((wrong & is_confident(found, alpha, corrected=corrected)).sum()) for corrected in (True, False)
    ]


def patterns(k, alpha):
    """Yield votes and a budget: easy and hard ones under the paper's noise, and those made against the test.

    The noise is then as large as lets a release come as near to a wrong label as the test allows.
    """
    yield "easy", uneven(k), 2.0**-32
    yield "hard", even(k), 2.0**-32
    yield "hard, little noise", even(k), budget_at(even(k), k, 2.0)
    for nearness in (1.0, 1.5, 2.0):
        yield (
            f"adversarial {nearness}",
            uneven(k),
            budget_at(uneven(k), k, nearness * norm.isf(alpha / (k - 1))),
        )
        yield (
            f"adversarial {nearness}, printed",
            uneven(k),
            budget_at(uneven(k), k, nearness * norm.isf(alpha)),
        )


@pytest.mark.parametrize("alpha", [0.01, 0.1])
@pytest.mark.parametrize("k", range(2, 11))
def test_the_corrected_test_keeps_its_level(k, alpha):
    """Whatever the votes, the noise and the truth, a label is kept and wrong with probability alpha at most."""
    rng = np.random.default_rng([k, int(1000 * alpha)])
    for name, votes, b in patterns(k, alpha):
        for truth in {0, 1, k - 1}:
            n_kept, _ = kept_and_wrong(votes, k, b, alpha, truth, rng)
            assert lowest(n_kept, DRAWS) <= alpha, (name, truth, n_kept / DRAWS)


@pytest.mark.parametrize(("k", "excess"), [(3, 1.4), (5, 2.5), (10, 4.0)])
def test_the_printed_test_does_not(k, excess):
    """From three classes on there are votes for which the test as printed keeps wrong labels more often than alpha."""
    alpha, rng = 0.01, np.random.default_rng(k)
    votes = uneven(k)
    n_corrected, n_printed = kept_and_wrong(votes, k, budget_at(votes, k, 2 * norm.isf(alpha)), alpha, 0, rng)
    assert lowest(n_printed, DRAWS) > alpha
    assert n_printed / DRAWS > excess * alpha
    assert highest(n_corrected, DRAWS) < 1.3 * alpha


def test_the_printed_test_is_right_for_two_classes():
    """With one rival both tests are the same, and reach their level against the noise that is made for it."""
    alpha, rng, votes = 0.05, np.random.default_rng(2), even(2)
    n_corrected, n_printed = kept_and_wrong(votes, 2, budget_at(votes, 2, 2 * norm.isf(alpha)), alpha, 0, rng)
    assert n_corrected == n_printed
    assert lowest(n_printed, DRAWS) <= alpha <= highest(n_printed, DRAWS)


def asked(pattern, k, n_models, n_queries, rng):
    """Return votes: mostly in agreement, at random, or such that few models can be told apart by the answers."""
    if pattern == "easy":
        minority = rng.random((n_queries, n_models)) < 0.08
        return np.where(
            minority, rng.integers(k, size=(n_queries, n_models)), rng.integers(k, size=(n_queries, 1))
        )
    if pattern == "hard":
        return rng.integers(k, size=(n_queries, n_models))
    # Each query singles out a few models, so that belief gathers on some and wrong certainty would show.
    votes = np.zeros((n_queries, n_models), int)
    for i in range(n_queries):
        votes[i, rng.permutation(n_models)[: k - 1]] = np.arange(1, k)
    return votes


@pytest.mark.parametrize("decode", ["argmax", "map", "sample"])
@pytest.mark.parametrize("pattern", ["easy", "hard", "adversarial"])
@pytest.mark.parametrize("k", [2, 3, 4, 6, 8, 10])
def test_the_posterior_keeps_its_level(pattern, decode, k):
    """Of the labels that the Bayesian filter keeps, a share of alpha at most is wrong, by what is known at the end."""
    rng = np.random.default_rng([k, len(pattern), len(decode)])
    n_models, n_queries, n_lives, b = 12, 25, 120, 2.0**-4
    for alpha in (0.05, 0.3):
        excess, n_kept = [], 0
        for _ in range(n_lives):
            session = Session(k, Budget(b, n_queries * b), n_models, decode=decode, generator=rng)
            votes = asked(pattern, k, n_models, n_queries, rng).astype(np.int16)
            labels = np.array([release.label for release in session.answer_all(votes)])
            kept = is_believed(posteriors(votes, session.belief, k), labels, alpha, n_models)
            wrong = votes[:, session._secret.reveal()] != labels
            excess.append((wrong & kept).sum() - alpha * kept.sum())
            n_kept += kept.sum()
        error = np.std(excess) / np.sqrt(n_lives)
        assert np.mean(excess) <= 4.8 * error + 1e-12, (alpha, np.mean(excess), error)
        assert n_kept > 0 or pattern == "hard"
