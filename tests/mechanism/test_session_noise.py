"""Sessions with the least noise and with fair noise: the labels they give, and histories that replay and continue."""

import math
from dataclasses import replace

import numpy as np
import pytest
from ledger_contract import same_array, same_state
from small_session import CLASSES, SECRET, M, make, random_votes
from voting import contested_votes

from pacpredict import Belief, Budget, MemoryLedger, Secret, Session, calibrate_votes, simulate
from pacpredict.core.filters import confidence
from pacpredict.core.release import answer_votes
from pacpredict.exceptions import InvalidBelief, InvalidInput, LedgerError
from pacpredict.mechanism.evidence import weigh
from pacpredict.mechanism.replay import replay

SHARES = np.repeat(np.arange(8), [64, 32, 16, 8, 4, 2, 1, 1])
FAIR = Budget(2.0**-8, 1000.0, noise="fair")


def labels_at(step, noise, n=2_000_000, chunk=20_000):
    """How often `argmax` gives each label to one question, asked so often, by the belief it begins with."""
    rng, found = np.random.default_rng(5), np.zeros(8)
    votes, uniform = np.tile(SHARES.astype(np.int16), (chunk, 1)), np.full(128, -math.log(128))
    for _ in range(n // chunk):
        normals = rng.standard_normal(7 * chunk)
        _, _, labels = answer_votes(
            *(votes, 8, int(rng.integers(128)), step, False, math.inf, 0.0, False, noise == "fair", 0, chunk),
            *(normals, np.empty(0, np.int64), uniform.copy(), uniform, np.empty(normals.size)),
        )
        found += np.bincount(labels[0], minlength=8)
    return found / n


@pytest.mark.parametrize("step", [2.0**-32, 2.0**-40])
def test_fair_noise_gives_all_voted_labels_alike(step):
    """With fair noise and small steps every label that somebody votes for comes as often, to three digits."""
    np.testing.assert_allclose(labels_at(step, "fair"), 1 / 8, atol=1e-3)


@pytest.mark.parametrize("step", [2.0**-32, 2.0**-40])
def test_the_least_noise_follows_the_vote_shares_at_every_step(step):
    """With the paper's noise labels that more models vote for come more often, however small the step is."""
    expected = [0.227, 0.209, 0.173, 0.137, 0.099, 0.067, 0.044, 0.044]
    np.testing.assert_allclose(labels_at(step, "least"), expected, atol=2e-3)


class DenseFair:
    """Fair noise written naively: a full covariance matrix on the voted classes, and Bayes' rule for every model."""

    def __init__(self, m, n_classes, b):
        self.belief, self.n_classes, self.b = np.full(m, 1 / m), n_classes, b

    def update(self, votes, vector):
        """Learn from a noisy vector; returns its covariance, and labels by argmax and by map."""
        one_hot, voted = np.eye(self.n_classes)[votes], np.unique(votes)
        mass = self.belief @ one_hot
        among = np.zeros(self.n_classes)
        among[voted] = 1
        sum_zero = np.diag(among) - np.outer(among, among) / voted.size
        covariance = (1 - mass @ mass) / (2 * self.b) * sum_zero
        away = vector - one_hot
        exponent = -0.5 * np.einsum("ij,jk,ik->i", away, np.linalg.pinv(covariance), away)
        posterior = self.belief * np.exp(exponent - exponent.max())
        self.belief = posterior / posterior.sum()
        return covariance, int(voted[vector[voted].argmax()]), int((self.belief @ one_hot).argmax())


@pytest.mark.parametrize("decode", ["argmax", "map"])
@pytest.mark.parametrize("n_classes", [3, 4, 10])
@pytest.mark.parametrize("b", [2.0**-6, 2.0**-16])
def test_noise_belief_and_labels_agree_with_dense_matrices(decode, n_classes, b):
    """Over a stream of queries noise, belief and labels of both decoders are what dense matrices give, to 1e-9."""
    m, rng, ledger = 64, np.random.default_rng(n_classes), MemoryLedger()
    naive = DenseFair(m, n_classes, b)
    session = Session(
        n_classes, Budget(b, 1e3, noise="fair"), m,
        secret=Secret(17, m), decode=decode, ledger=ledger, generator=np.random.default_rng(4),
    )  # fmt: skip
    for votes in contested_votes(rng, 60, m, n_classes, dissent=0.3):
        noise = calibrate_votes(votes, n_classes, session.belief, b, noise="fair")
        label = session.answer(votes).label
        covariance, by_argmax, by_map = naive.update(votes, noise.vector(list(ledger.entries())[-1].noisy))
        np.testing.assert_allclose(
            noise.covariance(), covariance, rtol=0, atol=1e-9 * np.abs(covariance).max()
        )
        np.testing.assert_allclose(session.belief.probabilities(), naive.belief, rtol=0, atol=1e-9)
        assert label == (by_argmax if decode == "argmax" else by_map)


def test_noise_is_drawn_equally_in_all_directions():
    """The noisy coordinates of many releases scatter around the secret's with the same variance, independently."""
    rng, n, k = np.random.default_rng(0), 40_000, 5
    votes = np.repeat(np.arange(k), [20, 6, 4, 1, 1]).astype(np.int16)
    b, m = 2.0**-6, votes.size
    noise = calibrate_votes(votes, k, Belief.uniform(m), b, noise="fair")
    drawn = np.empty((n, k - 1))
    for i in range(n):
        answer_votes(
            *(votes[None], k, 25, b, False, math.inf, 0.0, False, True, 0, 1, rng.standard_normal(k - 1)),
            *(np.empty(0, np.int64), np.full(m, -math.log(m)), np.full(m, -math.log(m)), drawn[i]),
        )
    variance = (1 - ((np.bincount(votes) / m) ** 2).sum()) / (2 * b)
    np.testing.assert_allclose(
        np.cov((drawn - noise.coordinates[25]).T), variance * np.eye(k - 1), atol=8 * variance / n**0.5
    )
    np.testing.assert_allclose(drawn.mean(axis=0), noise.coordinates[25], atol=5 * (variance / n) ** 0.5)


@pytest.mark.parametrize("decode", ["argmax", "map"])
@pytest.mark.parametrize("odds_limit", [None, 2.0])
def test_replay_and_evidence_recompute_a_history_with_fair_noise(decode, odds_limit):
    """The entries and the budget give the state again, bit for bit; with the other noise they give another."""
    budget, ledger = replace(FAIR, step=2.0**-14, odds_limit=odds_limit), MemoryLedger()
    session, _ = make(3, budget, decode=decode, ledger=ledger)
    session.answer_all(random_votes(4, 40, dissent=0.5))
    entries, prior = list(ledger.entries()), Belief.uniform(M)
    assert same_state(replay(entries, CLASSES, budget, prior), session.snapshot())
    chosen = next(
        e for e in entries[10:] if e.noisy is not None and e.noisy.size > 1
    )  # of three labels or more
    evidence = weigh(entries, CLASSES, budget, prior, [chosen.sequence], [40])
    assert same_array(evidence.points[40].belief.log_probabilities, session.snapshot().log_belief)
    before = Belief(replay(entries[: chosen.sequence - 1], CLASSES, budget, prior).log_belief)
    noise = calibrate_votes(chosen.question, CLASSES, before, budget.step, noise="fair")
    found = confidence(noise, chosen.question, chosen.noisy, chosen.label)
    assert evidence.labels[chosen.sequence].confidence == found
    try:
        other = replay(entries, CLASSES, replace(budget, noise="least"), prior)
    except LedgerError:  # its labels do not follow from its releases
        return
    assert not same_state(other, session.snapshot())


@pytest.mark.parametrize("where", ["snapshot", "ledger"])
def test_resuming_continues_bit_for_bit_and_never_with_other_noise(where):
    """A session goes on exactly as if it had not been interrupted, and refuses a history of the other noise."""
    votes, ledger = random_votes(1, 60, dissent=0.5), MemoryLedger()
    whole, _ = make(5, FAIR)
    expected = whole.answer_all(votes)
    first, generator = make(5, FAIR, ledger=ledger)
    before = first.answer_all(votes[:20])
    source = {"ledger": ledger} if where == "ledger" else {"snapshot": first.snapshot()}
    with pytest.raises(InvalidBelief, match="kind of noise"):
        Session(CLASSES, replace(FAIR, noise="least"), M, secret=SECRET, **source)
    second = Session(CLASSES, FAIR, M, secret=SECRET, generator=generator, **source)
    assert before + second.answer_all(votes[20:]) == expected
    assert same_state(second.snapshot(), whole.snapshot())


def test_for_two_labels_sessions_agree_to_the_bit():
    """Where two labels are voted for, sessions with either noise release and believe the same."""
    votes = random_votes(2, 50, dissent=0.4) % 2
    states = []
    for noise in ("least", "fair"):
        session, _ = make(7, replace(FAIR, noise=noise, odds_limit=5.0))
        states.append((session.answer_all(votes), session.snapshot()))
    (least, fair) = states
    assert least[0] == fair[0]
    assert least[1].log_belief.tobytes() == fair[1].log_belief.tobytes()


def test_fair_noise_keeps_the_limit_on_odds():
    """Releases stop where the next could pass the limit; no log-likelihoods of two subsets are ever farther apart."""
    limit, spreads, kinds = 1.0, [], set()
    for seed in range(20):
        ledger = MemoryLedger()
        session, _ = make(
            seed, Budget(2.0**-12, 1.0, odds_limit=limit, odds_delta=1e-6, noise="fair"), ledger=ledger
        )
        for votes in random_votes(seed, 300, dissent=0.6):
            session.answer(votes)
            spreads.append(np.ptp(session.snapshot().log_belief))
        kinds |= {entry.kind for entry in ledger.entries()}
        assert same_state(
            replay(ledger.entries(), CLASSES, session.budget, Belief.uniform(M)), session.snapshot()
        )
    assert max(spreads) <= limit
    assert {"argmax", "belief"} <= kinds


def test_a_budget_refuses_unknown_noise():
    """Noise is "least" or "fair"."""
    with pytest.raises(InvalidInput, match="least, fair"):
        Budget(0.1, 1.0, noise="uniform")


@pytest.mark.parametrize(("noise", "share"), [("least", 0.227), ("fair", 1 / 8)])
def test_simulations_have_the_noise_that_they_are_asked_for(noise, share):
    """Of simulated answers to one question the share with the most voted label is that of the noise."""
    found = simulate(
        SHARES[None], [0], 2.0**-32, n_trials=2, seed=1, n_queries=100_000, noise=noise, n_classes=8, n_jobs=1
    )
    assert found.accuracy("argmax").mean() == pytest.approx(share, abs=0.004)
