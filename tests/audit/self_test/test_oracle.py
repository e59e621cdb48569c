"""The auditor's own formulas against brute force, and against the library's."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tested_votes import claim_of, votes_of

from pacpredict.audit.self_test.oracle import (
    LabelLaw,
    NoiseLaw,
    Posterior,
    Question,
    channel_information,
    largest_coupling,
)
from pacpredict.audit.self_test.transcripts import state_at
from pacpredict.core.belief import Belief
from pacpredict.core.calibrate import calibrate_votes
from pacpredict.core.channel import calibrate_channel


def belief_of(seed, m=32, scale=1.0):
    log_belief = scale * np.random.default_rng(seed).normal(size=m)
    return log_belief - np.log(np.exp(log_belief).sum())


def posterior_of(claim, log_belief):
    return Posterior(claim, state_at(claim, 0, log_belief))


@pytest.mark.parametrize("step", [2.0**-40, 2.0**-32, 2.0**-5, 0.3])
def test_noise_is_that_of_the_library(step):
    """Points, variances and likelihoods are those that the library calibrates, up to signs and its margins."""
    for seed, row in enumerate(votes_of(n=60)):
        log_belief = belief_of(seed)
        claim = claim_of(step=step, total=1e3 * step, odds_limit=None)
        question = Question.of(row)
        law = posterior_of(claim, log_belief).expect(question, 1).release
        noise = calibrate_votes(row, 3, Belief(log_belief), step)
        assert isinstance(law, NoiseLaw)
        assert law.variances == pytest.approx(noise.variances.tolist(), rel=1e-9)
        noisy = noise.draw(5, np.random.default_rng(seed).standard_normal(noise.variances.size))
        mine = np.array(law.log_likelihoods(noisy.tolist()))[question.slots]
        theirs = noise.log_likelihood(noisy)
        assert mine - mine[0] == pytest.approx(theirs - theirs[0], rel=1e-6, abs=1e-9)
        masses = question.sides @ np.exp(log_belief)
        assert law.leak(masses.tolist()) <= step * (1 + 1e-9)
        assert law.leak(masses.tolist()) == pytest.approx(step, rel=1e-6)


@pytest.mark.parametrize("step", [2.0**-50, 2.0**-32, 2.0**-5, 0.3, 5.0])
def test_the_channel_is_that_of_the_library(step):
    """Transition probabilities are those of its whole numbers."""
    for seed, row in enumerate(votes_of(n=60)):
        log_belief = belief_of(seed)
        law = (
            posterior_of(claim_of("sample", step=step, total=1e3 * step, odds_limit=None), log_belief)
            .expect(Question.of(row), 1)
            .release
        )
        channel = calibrate_channel(row, 3, Belief(log_belief), step)
        assert isinstance(law, LabelLaw)
        chances = np.array([law.chances(c) for c in range(channel.classes.size)])
        assert chances == pytest.approx(channel.transition, rel=1e-6, abs=1e-12)


def test_information_of_a_channel_is_mutual_information():
    """By the definition, summed over labels and classes; and the slope is its derivative."""
    masses, coupling = [0.1, 0.25, 0.65], 0.3
    chances = np.array([LabelLaw(masses, coupling).chances(c) for c in range(3)])
    marginal = np.array(masses) @ chances
    by_definition = sum(
        masses[c] * chances[c, y] * math.log(chances[c, y] / marginal[y]) for c in range(3) for y in range(3)
    )
    found, slope = channel_information(masses, coupling)
    assert found == pytest.approx(by_definition, rel=1e-9)
    after, _ = channel_information(masses, coupling + 1e-6)
    assert slope == pytest.approx((after - found) / 1e-6, rel=1e-4)
    assert channel_information(masses, largest_coupling(masses, 0.01))[0] == pytest.approx(0.01, rel=1e-9)


@pytest.mark.parametrize("decode", ["argmax", "sample"])
def test_the_posterior_is_that_of_bayes(decode):
    """After some releases it is the normalised product of prior and likelihoods."""
    claim = claim_of(decode, step=0.05, total=5.0, odds_limit=None)
    posterior, joint = posterior_of(claim, belief_of(0)), belief_of(0)
    rng = np.random.default_rng(2)
    for row in votes_of(n=40):
        question = Question.of(row)
        law = posterior.expect(question, 1).release
        if isinstance(law, NoiseLaw):
            noisy = rng.normal(size=len(law.variances)).tolist()
            likelihoods = law.log_likelihoods(noisy)
        else:
            noisy, slot = [], int(rng.integers(question.classes.size))
            likelihoods = [math.log(law.chances(c)[slot]) for c in range(question.classes.size)]
            own = law.log_likelihoods(slot)
            assert np.ptp(np.subtract(own, likelihoods)) < 1e-12
        joint = joint + np.array(likelihoods)[question.slots]
        masses = (question.sides @ np.exp(posterior.log_belief)).tolist()
        posterior.learn(question, masses, likelihoods, noisy)
    joint -= joint.max()
    assert posterior.log_belief == pytest.approx(joint - np.log(np.exp(joint).sum()), abs=1e-9)


@pytest.mark.parametrize("decode", ["argmax", "sample"])
def test_the_limit_is_decided_by_the_worst_outcome(decode):
    """A release is expected exactly where no outcome leaves two subsets further apart than the limit, but for delta."""
    decided = set()
    for seed, row in enumerate(votes_of(n=150)):
        log_belief = belief_of(seed, scale=0.1)
        claim = claim_of(decode, step=1e-4, total=1.0, odds_limit=0.55)
        question = Question.of(row)
        posterior = posterior_of(claim, log_belief)
        expected = posterior.expect(question, 1)
        free = posterior_of(replace(claim, budget=replace(claim.budget, odds_limit=None)), log_belief)
        law, moved = expected.release, log_belief + math.log(32)
        reach = free.reach(free.unlimited(question), [float(x) for x in question.sides @ np.exp(log_belief)])[
            0
        ]
        room = min(0.55 - (moved[side].max() - moved[~side].min()) for side in (question.sides > 0))
        if isinstance(law, LabelLaw):
            for drawn in range(question.classes.size):
                gains = np.array(law.log_likelihoods(drawn))[question.slots]
                assert np.ptp((log_belief + gains)[gains > 0]) >= 0
                across = (moved + gains)[question.slots == drawn].max() - moved[question.slots != drawn].min()
                assert across <= 0.55 * (1 + 1e-9)
            decided.add("less" if law.coupling < largest_coupling(law.masses, 1e-4) * (1 - 1e-9) else "full")
        else:
            assert expected.is_open or (law is None) == (room < reach if decode == "argmax" else room <= 0)
            decided.add("noise" if law else "belief")
    assert decided >= ({"less", "full"} if decode == "sample" else {"noise", "belief"})
    assert posterior.expect(question, 0).release is None
