"""The strongest adversaries there are against the limit on odds: it holds, both ceilings hold, and without it they win.

`python -m pacpredict.experiments.odds` prints the same games.
"""

import math

import numpy as np
import pytest
from scipy.stats import beta

from pacpredict import tpr_bound, tpr_for_epsilon
from pacpredict.experiments.odds import (
    ADVERSARIES,
    DELTA,
    LIMIT,
    N_KNOWN,
    TOTAL,
    known_shifts,
    limit_on,
    make_pools,
    play,
    rates,
)

pytestmark = pytest.mark.validity

RUNS = 10_000
THRESHOLDS = (-0.9, -0.5, 0.0, 0.5, 0.9, 1.5, 2.0)
# Clopper and Pearson's bands, at a level that all comparisons of this file share: one of ten thousand runs of it fails.
LEVEL = 1e-4 / (2 * len(THRESHOLDS) * len(ADVERSARIES) * 4)


@pytest.fixture(scope="module")
def pools():
    return make_pools()


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


def by_odds(delta, limit=LIMIT):
    return lambda fpr: tpr_for_epsilon(limit, fpr, delta)


def largest_known_shift(pool, adversary, game):
    """Return the largest shift of the target's log-odds in each run, whoever's membership is known."""
    return np.max([np.abs(known_shifts(pool, adversary, game, n)) for n in N_KNOWN], axis=0)


@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_labels_of_a_channel_keep_the_limit_always(pools, adversary):
    """No two subsets ever move farther apart, whatever is known of others; the curve lies under both ceilings."""
    pool = pools[adversary]
    game = play(pool, adversary, "channel", LIMIT, RUNS)
    assert game.largest.max() <= LIMIT
    assert np.mean(game.largest > 0.99 * LIMIT) > 0.2, "an adversary who is never stopped tests nothing"
    assert largest_known_shift(pool, adversary, game).max() <= LIMIT
    assert not passes(game, by_nats)
    assert not passes(game, by_odds(0.0))


@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_noise_keeps_the_limit_but_for_delta(pools, adversary):
    """Subsets move apart beyond the limit in a share delta of runs at most; the curve lies under both ceilings."""
    pool, limit = pools[adversary], limit_on(adversary, "gaussian")
    game = play(pool, adversary, "gaussian", limit, RUNS)
    assert at_least(float(np.mean(game.largest > limit)), RUNS) <= DELTA
    assert at_least(float(np.mean(largest_known_shift(pool, adversary, game) > limit)), RUNS) <= DELTA
    assert 0 < game.released.mean() < math.floor(TOTAL / 2.0**-9)
    assert not passes(game, by_nats)
    assert not passes(game, by_odds(DELTA, limit))


@pytest.mark.parametrize("mechanism", ["channel", "gaussian"])
@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_without_the_limit_odds_pass_it(pools, adversary, mechanism):
    """The same games without a limit are won: the tests above can fail. What follows from nats alone still holds."""
    game = play(pools[adversary], adversary, mechanism, None, RUNS)
    assert at_least(float(np.mean(game.largest > limit_on(adversary, mechanism))), RUNS) > 0.2
    assert not passes(game, by_nats)
    if adversary == "memorised":
        assert passes(game, by_odds(DELTA))
        assert np.mean(game.largest > math.log(9)) > 0.05, (
            "a history tells membership with a certainty of 90%"
        )


def test_marginal_odds_do_not_see_what_friends_see(pools):
    """Under xor votes the target's own odds hardly move, while those of an adversary who knows the other one do.

    A limit on the marginal odds of single records would let this pass.
    """
    pool = pools["xor"]
    game = play(pool, "xor", "channel", None, RUNS)
    assert np.abs(game.shifts).max() < LIMIT
    assert np.mean(largest_known_shift(pool, "xor", game) > LIMIT) > 0.2
