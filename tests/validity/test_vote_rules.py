"""The games of the theorem on leave-one-out votes: a function on the secret space like any other votes."""

import numpy as np
import pytest

from pacpredict import Budget, MemoryLedger, Session, success_bound
from pacpredict.training.subsets import Subsets
from pacpredict.votes.leave_one_out import LeaveOneOut

pytestmark = pytest.mark.validity

B, N_QUERIES, N_GAMES, N_UNITS = 2.0**-6, 16, 400, 60


def follow(rng, trained, strength):
    """Votes of which a share follows the membership of a unit, and the others a coin."""
    coins = rng.random(trained.size) < 0.5
    return np.where(rng.random(trained.size) < strength, trained, coins).astype(np.int16)


def play(rng, m, strength):
    """One membership game against unit 0: returns whether the optimal rule wins, and how much was revealed."""
    subsets = Subsets.balanced(m, N_UNITS, rng)
    membership = subsets.matrix()
    rule = LeaveOneOut.of(subsets.packed, N_UNITS, 2)
    session = Session(2, Budget(B, N_QUERIES * B), m, ledger=MemoryLedger(), generator=rng)
    plain = np.stack([follow(rng, membership[:, 0], strength) for _ in range(N_QUERIES)])
    charges = [release.charge for release in session.answer_all(rule.apply(plain))]
    guess = session.belief.membership_posterior(membership)[0] > 0.5
    return guess == membership[session._secret.reveal(), 0], sum(charges)


@pytest.mark.parametrize("m", [128, 512])
def test_games_on_leave_one_out_votes_stay_below_the_bound(m):
    """An attacker whose questions follow a unit just below the threshold wins no more games than the budget allows."""
    rng = np.random.default_rng(m)
    strength = 2.0 / np.sqrt(m)  # Z about 2, of a threshold of 2.8: mostly the unit is not removed
    outcomes = [play(rng, m, strength) for _ in range(N_GAMES)]
    wins = sum(won for won, _ in outcomes)
    assert max(spent for _, spent in outcomes) <= N_QUERIES * B

    assert wins / N_GAMES < success_bound(N_QUERIES * B)


@pytest.mark.parametrize("m", [128, 512])
def test_questions_that_follow_a_unit_reveal_nothing(m):
    """Where all models say whether they were trained on a unit, leave-one-out votes agree: nothing is charged."""
    rng = np.random.default_rng(m)
    outcomes = [play(rng, m, 1.0) for _ in range(20)]
    assert not any(spent for _, spent in outcomes)
