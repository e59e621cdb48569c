"""The strongest adversaries there are against the limit on odds: it holds, both ceilings hold, and without it they win.

`python -m pacpredict.experiments.odds` plays the same games 10,000 times each.
"""

import math

import numpy as np
import pytest
from scipy.stats import beta

from pacpredict import tpr_bound, tpr_for_epsilon
from pacpredict.experiments.odds import ADVERSARIES, DELTA, LIMIT, TOTAL, make_pool, play, rates

pytestmark = pytest.mark.validity

RUNS = 4000
THRESHOLDS = (-0.9, -0.5, 0.0, 0.5, 0.9, 1.5, 2.0)
# Clopper and Pearson's bands, at a level that all comparisons of this file share: one of ten thousand runs of it fails.
LEVEL = 1e-4 / (2 * len(THRESHOLDS) * len(ADVERSARIES) * 4)


@pytest.fixture(scope="module")
def pool():
    return make_pool()


def at_most(rate, n):
    """Return the upper end of the confidence interval of a rate that was measured in n cases."""
    k = round(rate * n)
    return 1.0 if k == n else float(beta.ppf(1 - LEVEL, k + 1, n - k))


def at_least(rate, n):
    return 1 - at_most(1 - rate, n)


def passes(game, ceiling):
    """Say whether true positives are significantly above a ceiling, at any threshold."""
    inside, outside = game.members.sum(), (~game.members).sum()
    for threshold in THRESHOLDS:
        fpr, tpr = rates(game, threshold)
        if at_least(tpr, inside) > ceiling(at_most(fpr, outside)):
            return True
    return False


def by_nats(fpr):
    return tpr_bound(TOTAL, fpr)


def by_odds(delta):
    return lambda fpr: tpr_for_epsilon(LIMIT, fpr, delta)


@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_labels_of_a_channel_keep_the_limit_always(pool, adversary):
    """Nobody's odds ever pass the limit, though they are driven to it; the curve lies under both ceilings."""
    game = play(pool, adversary, "channel", LIMIT, RUNS)
    assert game.largest.max() <= LIMIT
    assert np.mean(game.largest > 0.99 * LIMIT) > 0.2, "an adversary who is never stopped tests nothing"
    assert not passes(game, by_nats)
    assert not passes(game, by_odds(0.0))


@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_noise_keeps_the_limit_but_for_delta(pool, adversary):
    """Odds pass the limit in a share delta of runs at most, and the curve lies under both ceilings."""
    game = play(pool, adversary, "gaussian", LIMIT, RUNS)
    assert at_least(float(np.mean(game.largest > LIMIT)), RUNS) <= DELTA
    assert 0 < game.released.mean() < math.floor(TOTAL / 2.0**-9)
    assert not passes(game, by_nats)
    assert not passes(game, by_odds(DELTA))


@pytest.mark.parametrize("mechanism", ["channel", "gaussian"])
@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_without_the_limit_odds_pass_it(pool, adversary, mechanism):
    """The same games without a limit are won: the tests above can fail. What follows from nats alone still holds."""
    game = play(pool, adversary, mechanism, None, RUNS)
    assert at_least(float(np.mean(game.largest > LIMIT)), RUNS) > 0.2
    assert not passes(game, by_nats)
    if adversary == "memorised":
        assert passes(game, by_odds(DELTA))
        assert np.mean(game.largest > math.log(9)) > 0.05, "somebody is known with a certainty of 90 %"
