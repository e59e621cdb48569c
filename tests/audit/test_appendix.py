"""Every attack of appendix C, made optimally: at the prior without answers, certain with all of them."""

import numpy as np
import pytest
from audited import subject_of

from pacpredict.audit.appendix import Futures, attack_all
from pacpredict.core.attacks import success_after
from pacpredict.core.near import near_reconstruction_prior
from pacpredict.core.priors import full_set_prior, model_prior


@pytest.fixture(scope="module")
def subject():
    return subject_of()


def futures(beliefs, secrets, nats=0.0):
    return Futures(np.asarray(beliefs), np.asarray(secrets), nats)


def test_without_an_answer_success_is_the_prior(subject):
    """Over many secrets the best blind guess succeeds as often as the prior says: priors and attacks agree."""
    rng = np.random.default_rng(0)
    secrets = rng.integers(32, size=6000)
    blind = futures(np.full((6000, 32), 1 / 32), secrets)
    points = rng.normal(size=(len(subject.votes), 3))
    found = attack_all(subject, blind, points=points, group_sizes=(1, 3, 10))
    for attack in found:
        assert attack.success.low <= attack.prior + 1e-3, attack
        assert attack.success.high >= attack.prior - 0.02, attack
        assert attack.ceiling == pytest.approx(success_after(0.0, attack.prior))
    assert {attack.name for attack in found} == {
        *(f"group-{kind}-{size}" for kind in ("any", "exact") for size in (1, 3, 10)),
        *("reconstruction", "near", "full-set", "model"),
    }


def test_who_knows_the_secret_always_succeeds(subject):
    """With all belief on the secret no attack ever fails."""
    secrets = np.arange(32)
    for attack in attack_all(subject, futures(np.eye(32), secrets), group_sizes=(4,)):
        assert attack.success.value == 1.0, attack


def test_priors_are_those_of_the_realised_subsets(subject):
    """They are counted in these subsets, votes and points."""
    blind = futures(np.full((2, 32), 1 / 32), [0, 1])
    by_name = {attack.name: attack for attack in attack_all(subject, blind, group_sizes=())}
    assert by_name["full-set"].prior == full_set_prior(subject.membership)
    assert by_name["model"].prior == model_prior(np.ascontiguousarray(subject.votes.T))
    assert "near" not in by_name


def test_what_is_near_includes_what_is_the_same(subject):
    """Whoever may name something near a record has no lower prior than at distance 0."""
    points = np.random.default_rng(0).normal(size=(len(subject.votes), 2))
    blind = futures(np.full((2, 32), 1 / 32), [0, 1])
    near = next(
        one for one in attack_all(subject, blind, points=points, group_sizes=()) if one.name == "near"
    )
    by_record = subject.membership[:, subject.units]
    assert near.prior >= near_reconstruction_prior(by_record, points, 0.0, guesses=points[:50])
