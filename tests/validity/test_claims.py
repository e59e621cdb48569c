"""A lint for claims: whatever does not do what is claimed of it is caught, for every seed, and what does is not."""

import pytest
from broken_lives import BROKEN, CLAIMED, NO_LIMIT, begin_with, scene

from pacpredict.audit.claims import examine
from pacpredict.mechanism.session import Session

pytestmark = pytest.mark.validity

SEEDS = range(20)


def findings_of(kind, budget, claimed, decode, seed):
    votes, membership = scene(seed)
    begin = begin_with(kind, budget, membership, decode)
    return examine(begin, claimed, votes, membership, finite=decode == "sample", seed=seed)


@pytest.mark.parametrize("decode", ["argmax", "sample"])
@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_deployment_is_caught(what, decode):
    """Half the noise, a belief that stands still, noise for the prior only, no limit, no charge: each is found out."""
    missed = [
        seed for seed in SEEDS if all(finding.holds for finding in findings_of(*BROKEN[what], decode, seed))
    ]
    assert not missed, f"{what} passed with seeds {missed}"


@pytest.mark.parametrize("decode", ["argmax", "map", "sample"])
@pytest.mark.parametrize("budget", [CLAIMED, NO_LIMIT], ids=["limited", "unlimited"])
def test_an_honest_deployment_passes(budget, decode):
    """The same lint finds nothing wrong with the mechanism as it is."""
    for seed in SEEDS:
        found = findings_of(Session, budget, budget, decode, seed)
        assert all(finding.holds for finding in found), (seed, found)
