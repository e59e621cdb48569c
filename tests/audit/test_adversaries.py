"""Adversaries who are after one unit choose what tells most about it, and what they see is read rightly."""

import math
from itertools import pairwise

import numpy as np
import pytest
from audited import subject_of
from scipy.special import expit

from pacpredict.audit.adversaries import Bout, choose_targets, duel, own_told, told_about
from pacpredict.audit.games import Rules, play
from pacpredict.audit.search import search
from pacpredict.tables.schema import Rows
from pacpredict.training.subsets import balanced

RULES = Rules("gaussian", 2.0**-9, 64)


def test_what_is_told_is_the_squared_correlation():
    """For two labels the share of a query's nats that is about a unit is corr(votes, membership)²."""
    rng = np.random.default_rng(0)
    votes, membership = rng.integers(0, 2, (5, 64)).astype(np.int16), balanced(64, 7, rng)
    told = told_about(votes, membership.astype(float))
    for q in range(5):
        for u in range(7):
            assert told[q, u] == pytest.approx(np.corrcoef(votes[q], membership[:, u])[0, 1] ** 2, abs=1e-12)


def test_a_unit_that_is_remembered_tells_all():
    """Votes that are membership itself have a share of 1, and so has a third label that only members give."""
    member = np.arange(8) < 4
    for votes in (member, np.where(member, 2, 0)):
        assert told_about(votes[None].astype(np.int16), member[:, None].astype(float))[0, 0] == pytest.approx(
            1
        )


def test_targets_are_those_that_are_remembered_best_and_others():
    """Of each unit the best of its own records counts, and nobody is in both kinds."""
    subject = subject_of()
    told = own_told(subject)
    expected = np.zeros(subject.n_units)
    for row, unit in zip(subject.votes, subject.units, strict=True):
        share = told_about(row[None], subject.membership[:, [unit]].astype(float))[0, 0]
        expected[unit] = max(expected[unit], share)
    assert told == pytest.approx(expected)
    targets = choose_targets(subject, 5, seed=0)
    assert set(targets["remembered"]) == set(np.argsort(-told)[:5])
    assert not set(targets["remembered"]) & set(targets["ordinary"])


def two_sided(n_models=16):
    """Return one query whose votes are the membership of a unit, and that membership."""
    member = balanced(n_models, 6, np.random.default_rng(1))[:, 0]
    return member[None, :].astype(np.int16), member


@pytest.mark.parametrize("reading", ["history", "argmax"])
def test_what_is_seen_is_the_true_posterior(reading):
    """Among runs that end with a belief p in membership, a share p are of members: also for who sees labels only.

    Whoever sees labels takes their own belief for the mechanism's, which differs a little; steps are small here.
    """
    game = play(*two_sided(), "first", Rules("gaussian", 2.0**-10, 128), 20_000, reading=reading)
    p = expit(game.shifts)
    edges = np.quantile(p, [0, 0.25, 0.5, 0.75, 1])
    for low, high in pairwise(edges):
        chosen = (p >= low) & (p <= high)
        error = 4 * math.sqrt(0.25 / chosen.sum())
        assert abs(game.members[chosen].mean() - p[chosen].mean()) < error + 0.01


def test_labels_tell_less_than_the_history():
    """By labels of argmax an adversary does worse than by everything; the last of map is what is believed by now."""
    success = {}
    for reading in ("history", "argmax", "map"):
        game = play(*two_sided(), "first", Rules("gaussian", 2.0**-10, 128), 20_000, reading=reading)
        success[reading] = np.mean((game.shifts > 0) == game.members)
    assert success["history"] > success["argmax"] + 0.02
    assert success["argmax"] > 0.55
    assert success["map"] == pytest.approx(success["history"], abs=0.02)


@pytest.mark.parametrize("mechanism", ["gaussian", "channel"])
def test_who_targets_does_better_than_who_asks_at_random(mechanism):
    """The re-chosen query tells more about the target than the pool's records at random; neither passes the ceiling."""
    subject = subject_of(total=0.125)
    targets = choose_targets(subject, 4, seed=0)["remembered"]
    rules = RULES._replace(mechanism=mechanism)
    found = {
        name: duel(subject, "remembered", targets, Bout(name, "history", rules, 500), seed=1)
        for name in ("random", "divided", "memorised", "targeted")
    }
    assert found["targeted"].success.low > found["random"].success.high
    assert found["memorised"].success.low > found["divided"].success.high
    for one in found.values():
        assert one.runs == 2000
        assert not one.success.passes(one.ceiling)


def test_the_limit_stops_an_adversary():
    """With a limit no two subsets move farther apart; without, they do."""
    subject = subject_of(total=0.125, odds_limit=1.0)
    targets = choose_targets(subject, 2, seed=0)["remembered"]
    rules = RULES._replace(mechanism="channel")
    free, limited = (
        duel(subject, "remembered", targets, Bout("targeted", "history", one, 200), seed=1)
        for one in (rules, rules._replace(limit=1.0))
    )
    assert limited.largest_spread <= 1.0
    assert limited.beyond.value == 0
    assert free.largest_spread > 3 * limited.limit


def test_a_search_finds_inputs_that_tell_more():
    """Among rows that nobody has there are some whose votes follow membership, and the climb finds them."""
    rng = np.random.default_rng(0)
    rows = Rows(rng.normal(size=(60, 4)), {})
    member = np.arange(16) % 2 == 0
    # Models agree but where the sum of a row is large: there members say 1.
    thresholds = np.where(member, 4.0, 8.0) + rng.normal(size=16)

    def vote(asked):
        return (asked.numbers.sum(axis=1)[:, None] > thresholds).astype(np.int16)

    def best(votes):
        return told_about(votes, member[:, None].astype(float)).max()

    found = search(rows, np.array([0]), member, vote, rng)
    assert best(found) > best(vote(rows)) > 0 or best(vote(rows)) == 0
    assert best(found) > 0.5
