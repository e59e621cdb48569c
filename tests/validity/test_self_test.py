"""The self-test catches mechanisms that lie, and leaves honest ones alone, whatever votes and questions the seed draws.

How often each lie is caught by the default self-test, in twenty self-tests each, is in docs/audit.md.
"""

from itertools import product

import numpy as np
import pytest
from tested_votes import claim_of, votes_of

from pacpredict.audit.self_test.mechanism import bare_mechanism
from pacpredict.audit.self_test.results import CHECK_ALARM, FALSE_ALARM
from pacpredict.audit.self_test.run import run_self_test
from pacpredict.audit.self_test.sabotage.registry import SABOTAGES, sabotages_of

pytestmark = pytest.mark.validity

SEEDS = range(2)
# Lies that the default self-test notices in most cases only, or that need all of its sessions.
SMALL = {
    "noise shifted by 0.02 standard deviations, by the parity of the secret",
    "noise shifted by 0.01 standard deviations, by the parity of the secret",
    "noise 1% too small",
    "the secret's own label in 2% of answers",
    "the secret's own label in 1% of answers",
}
CASES = [
    (decode, one.name)
    for decode in ("argmax", "map", "sample")
    for one in sabotages_of(claim_of(decode, n_models=128))
    if one.name not in SMALL
]


def failed(mechanism, votes, seed, n_sessions):
    results = run_self_test(mechanism, votes, seed=seed, n_sessions=n_sessions, stop_early=True)
    return [one.check for one in results if one.holds is False]


@pytest.mark.parametrize(("decode", "name"), CASES)
def test_a_lie_is_caught(decode, name):
    """Each sabotage but the smallest, by a quarter of the default sessions."""
    (lie,) = (one for one in SABOTAGES if one.name == name)
    mechanism = lie.apply(bare_mechanism(claim_of(decode, n_models=128)))
    assert all(failed(mechanism, votes_of(seed, 128), seed, 128) for seed in SEEDS)


def test_every_check_is_failed_by_some_lie():
    """No check stands there for show: each but that of the operating system's entropy is what catches something."""
    caught_by = {
        "records": "repeated queries answered anew",
        "belief": "the belief not updated",
        "labels": "the last bit of the secret where all models agree",
        "charges": "every 10th release free of charge",
        "total": "a doubled total",
        "odds limit": "no odds limit",
        "repeats": "repeated queries answered anew",
        "secrets": "the secret is always the first subset",
        "noise independence": "noise 10% too small",
        "noise variance": "noise 10% too small",
        "noise distribution": "noise truncated at 3 standard deviations",
        "noise freshness": "noise in single precision",
        "belief draws": "the secret's own label in answers from the belief",
    }
    by_name = {one.name: one for one in SABOTAGES}
    honest = bare_mechanism(claim_of("argmax", n_models=128))
    for check, name in caught_by.items():
        assert check in failed(by_name[name].apply(honest), votes_of(0, 128), 0, 64), (check, name)
    channel = by_name["the secret's own label in 30% of answers"].apply(
        bare_mechanism(claim_of("sample", n_models=128))
    )
    assert "channel" in failed(channel, votes_of(0, 128), 0, 64)


HONEST = {
    "default": {"n_models": 128},
    "ten labels": {"n_models": 32, "n_classes": 10, "charging": "flat", "when_exhausted": "belief"},
    "large steps": {"n_models": 64, "step": 2.0**-4, "total": 8.0, "odds_limit": 1.0},
    "few answers": {
        "n_models": 16,
        "total": 60 * 2.0**-32,
        "odds_limit": None,
        "when_exhausted": "unanimous",
    },
    "two models": {"n_models": 2, "n_classes": 2},
    "tiny steps": {"n_models": 16, "step": 2.0**-50, "total": 2.0**-30, "odds_limit": 1e-4},
}


@pytest.mark.parametrize(("decode", "name"), [*product(("argmax", "map", "sample"), HONEST)])
def test_an_honest_mechanism_passes(decode, name):
    """Whatever its budget, labels and models; and of all p-values no more than a share x is below x."""
    how, repetitions = HONEST[name], 6
    p_values = []
    for seed in range(repetitions):
        claim = claim_of(decode, **how)
        votes = votes_of(seed, claim.n_models, claim.n_classes)
        results = run_self_test(bare_mechanism(claim), votes, seed=seed, n_sessions=2)
        assert [(one.check, one.seen) for one in results if not one.holds] == []
        p_values += [one.p_value for one in results if one.p_value is not None]
    assert len(p_values) <= repetitions * FALSE_ALARM / CHECK_ALARM
    found = np.array(p_values)
    for level in (0.05, 0.2):
        allowed = level + 4.5 * np.sqrt(level * (1 - level) / found.size)
        assert (found <= level).mean() <= allowed, (level, found)
