"""Votes and claims for tests of the self-test."""

import numpy as np

from pacpredict.audit.self_test.oracle import Claim
from pacpredict.mechanism.budget import Budget

STEP = 2.0**-32


def claim_of(
    decode="argmax", *, n_models=32, n_classes=3, step=STEP, total=1e6 * STEP, odds_limit=0.25, **how
):
    return Claim(Budget(step, total, odds_limit=odds_limit, **how), decode, n_classes, n_models)


def votes_of(seed=0, n_models=32, n_classes=3, n=200):
    """Votes of all degrees of agreement, on two labels mostly."""
    rng = np.random.default_rng([seed, 3])
    votes = (rng.random((n, n_models)) < rng.beta(0.5, 0.5, (n, 1))).astype(np.int16)
    others = rng.integers(n_classes, size=votes.shape).astype(np.int16)
    votes = np.where(rng.random(votes.shape) < 0.02, others, votes)
    return votes[votes.min(axis=1) < votes.max(axis=1)]
