"""A lint for claims: whatever does not do what is claimed of it is caught, for every seed, and what does is not."""

import itertools

import pytest
from broken_lives import (
    BROKEN,
    BROKEN_CHANNEL,
    BROKEN_DRAWS,
    BROKEN_NOISE,
    CLAIMED,
    NO_LIMIT,
    LimitForSome,
    as_served,
    begin_with,
    scene,
)

from pacpredict.audit.claims import N_LIVES, examine
from pacpredict.mechanism.session import Session

pytestmark = pytest.mark.validity

SEEDS = range(20)
FEW_LIVES = 20


def findings_of(kind, budget, claimed, decode, seed, n_lives=N_LIVES):
    votes, membership = scene(seed)
    begin = begin_with(kind, budget, decode)
    how = {"finite": decode == "sample", "seed": seed, "n_lives": n_lives, "served": as_served(claimed)}
    return examine(begin, claimed, votes, membership, **how)


@pytest.mark.parametrize("decode", ["argmax", "sample"])
@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_deployment_is_caught(what, decode):
    """Half the noise, a belief that stands still, noise for the prior only, no limit, no charge: each is found out."""
    missed = [
        seed
        for seed in SEEDS
        if not any(one.holds is False for one in findings_of(*BROKEN[what], decode, seed))
    ]
    assert not missed, f"{what} passed with seeds {missed}"


@pytest.mark.parametrize(
    ("what", "decode"),
    [
        *itertools.product(BROKEN_DRAWS, ("argmax", "sample")),
        *itertools.product(BROKEN_NOISE, ("argmax",)),
        *itertools.product(BROKEN_CHANNEL, ("sample",)),
    ],
)
def test_a_deployment_that_tells_is_caught_by_the_claim_that_it_breaks(what, decode):
    """Labels that tell, or are not drawn; that follow the secret too closely; noise that is none, or old."""
    kind, budget, claimed, claim = (BROKEN_DRAWS | BROKEN_NOISE | BROKEN_CHANNEL)[what]
    found = {seed: findings_of(kind, budget, claimed, decode, seed, FEW_LIVES) for seed in SEEDS}
    missed = [seed for seed in SEEDS if {one.claim: one.holds for one in found[seed]}[claim] is not False]
    assert not missed, f"{what} passed with seeds {missed}"


def test_a_limit_on_odds_that_is_kept_for_some_is_caught():
    """Lives are after several units in turn. With noise some may pass the limit, and some more are not soon seen."""
    findings = {seed: findings_of(LimitForSome, CLAIMED, CLAIMED, "sample", seed) for seed in SEEDS}
    missed = [seed for seed in SEEDS if {one.claim: one.holds for one in findings[seed]}["odds"]]
    assert not missed, f"it passed with seeds {missed}"


@pytest.mark.parametrize("decode", ["argmax", "map", "sample"])
@pytest.mark.parametrize("budget", [CLAIMED, NO_LIMIT], ids=["limited", "unlimited"])
def test_an_honest_deployment_passes(budget, decode):
    """The same lint finds nothing wrong with the mechanism as it is."""
    for seed in SEEDS:
        found = findings_of(Session, budget, budget, decode, seed)
        assert all(finding.holds for finding in found), (seed, found)
