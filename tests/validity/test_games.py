"""Security games, played many times: the optimal attack stays below the ceiling that the budget promises."""

import numpy as np
import pytest
from scipy.stats import binomtest
from voting import contested_votes

from pacpredict import Belief, Budget, MemoryLedger, Session, simulate, success_bound
from pacpredict.training.subsets import balanced

pytestmark = pytest.mark.validity

M = 32


def play(rng, b, n_queries, ask):
    """One membership game against record 0: returns whether the optimal rule (Proposition 6.1) wins."""
    membership = balanced(M, 20, rng)
    session = Session(2, Budget(b, n_queries * b), M, ledger=MemoryLedger(), generator=rng)
    for _ in range(n_queries):
        session.answer(ask(session.belief, membership))
    guess = session.belief.membership_posterior(membership)[0] > 0.5
    return guess == membership[session._secret.reveal(), 0]


def ask_membership(belief, membership):
    """The most revealing question there is: every model says whether it was trained on the record."""
    return membership[:, 0].astype(np.int16)


def ask_likeliest_half(belief: Belief, membership):
    """An adaptive adversary: splits the models into two halves of equal belief, members first."""
    order = np.lexsort((-belief.log_probabilities, ~membership[:, 0]))
    cumulative = np.cumsum(belief.probabilities()[order])
    votes = np.zeros(M, dtype=np.int16)
    votes[order[cumulative <= max(0.5, cumulative[0])]] = 1
    return votes


@pytest.mark.parametrize("ask", [ask_membership, ask_likeliest_half])
@pytest.mark.parametrize(("b", "n_queries"), [(2.0**-6, 16), (2.0**-10, 64)])
def test_membership_games_stay_below_the_bound(ask, b, n_queries):
    """1,000 games with the optimal rule: the upper end of the confidence interval is below the ceiling."""
    rng = np.random.default_rng(11)
    wins = sum(play(rng, b, n_queries, ask) for _ in range(1000))
    interval = binomtest(wins, 1000).proportion_ci(0.95)
    bound = success_bound(b * n_queries)
    assert wins / 1000 < bound
    assert interval.low > 0.5, "an attack that learns nothing tests nothing"
    if ask is ask_membership:
        assert interval.high < bound


@pytest.mark.parametrize("log2_b", [-6, -12])
def test_the_average_information_gained_is_at_most_the_budget_spent(log2_b):
    """The mean divergence of belief from prior over many trials, which is I(S; H), stays below the spend."""
    rng = np.random.default_rng(2)
    votes = contested_votes(rng, 50, M, 4, dissent=0.3)
    run = simulate(votes, votes[:, 0], 2.0**log2_b, n_trials=4000, seed=3)
    prior = Belief.uniform(M)
    gained = np.array([run.belief(trial).divergence(prior) for trial in range(4000)])
    spent = run.spent_nats()[0, -1]
    error = gained.std() / np.sqrt(gained.size)
    assert gained.mean() <= spent + 3 * error
    if log2_b == -12:
        assert gained.mean() >= 0.9 * spent, "at small budgets the calibration is tight"


def test_the_belief_is_the_true_posterior():
    """Over many trials, models that are believed to be the secret with probability p are so a share p of the time."""
    rng = np.random.default_rng(4)
    votes = contested_votes(rng, 40, M, 3, dissent=0.3)
    run = simulate(votes, votes[:, 0], 2.0**-6, n_trials=6000, seed=5)
    belief = np.exp(run.log_belief[:, -1])
    is_secret = np.arange(M) == run.secrets[:, None]
    for low, high in [(0, 0.02), (0.02, 0.1), (0.1, 0.3), (0.3, 0.6), (0.6, 1.01)]:
        chosen = (belief >= low) & (belief < high)
        error = 4 * np.sqrt(0.25 / chosen.sum())
        assert abs(is_secret[chosen].mean() - belief[chosen].mean()) < error
