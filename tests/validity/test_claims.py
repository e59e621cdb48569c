"""A lint for claims: whatever does not do what is claimed of it is caught, for every seed, and what does is not."""

import itertools

import pytest
from broken_lives import BROKEN, BROKEN_NOISE, CLAIMED, NO_LIMIT, begin_with, scene

from pacpredict.audit.claims import examine
from pacpredict.mechanism.session import Session

pytestmark = pytest.mark.validity

SEEDS = range(20)


def findings_of(kind, budget, claimed, decode, seed):
    votes, membership = scene(seed)
    begin = begin_with(kind, budget, membership, decode)
    return examine(begin, claimed, votes, membership, finite=decode == "sample", seed=seed)


@pytest.mark.parametrize(
    ("what", "decode"),
    [*itertools.product(BROKEN, ("argmax", "sample")), *itertools.product(BROKEN_NOISE, ("argmax",))],
)
def test_a_broken_deployment_is_caught(what, decode):
    """Half the noise, or none; noise that cancels; no limit, no charge; labels that tell the secret: each is found."""
    case = (BROKEN | BROKEN_NOISE)[what]
    missed = [
        seed
        for seed in SEEDS
        if not any(finding.holds is False for finding in findings_of(*case, decode, seed))
    ]
    assert not missed, f"{what} passed with seeds {missed}"


@pytest.mark.parametrize("decode", ["argmax", "map", "sample"])
@pytest.mark.parametrize("budget", [CLAIMED, NO_LIMIT], ids=["limited", "unlimited"])
def test_an_honest_deployment_passes(budget, decode):
    """The same lint finds nothing wrong with the mechanism as it is."""
    for seed in SEEDS:
        found = findings_of(Session, budget, budget, decode, seed)
        assert all(finding.holds for finding in found), (seed, found)
