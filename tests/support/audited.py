"""What tests of the audit attack: votes that remember some records, without any artifact."""

import numpy as np
from voting import random_votes

from pacpredict.audit.subject import Subject
from pacpredict.core.priors import Records, attack_priors
from pacpredict.mechanism.budget import Budget
from pacpredict.training.subsets import balanced

M, N_UNITS = 32, 40


def scene(seed=0):
    """Votes and subsets: of each unit a record that is more or less remembered, and records that few dissent on."""
    rng = np.random.default_rng(seed)
    membership = balanced(M, N_UNITS, rng)
    forgets = rng.random((N_UNITS, M)) < rng.uniform(0, 0.4, (N_UNITS, 1))
    remembered = (membership.T ^ forgets).astype(np.int16)
    others = random_votes(rng, 60, M, 2, dissent=0.05)
    votes = np.concatenate([remembered, others])
    return votes[votes.min(axis=1) < votes.max(axis=1)], membership


def subject_of(seed=0, *, step=2.0**-9, total=0.25, odds_limit=None, decode="argmax"):
    """Return 100 records of 40 units, some of which 32 models remember; three labels, of which the last is rare."""
    votes, membership = scene(seed)
    rng = np.random.default_rng(seed)
    votes = votes.copy()
    votes[rng.random(votes.shape) < 0.01] = 2
    n = len(votes)
    units = np.concatenate([np.arange(40), rng.integers(40, size=n - 40)])
    priors = attack_priors(membership, Records(units, np.arange(n)), np.ascontiguousarray(votes.T))
    budget = Budget(step, total, odds_limit=odds_limit)
    return Subject(
        votes, votes[:, 0].astype(np.int64), units, np.arange(n), membership, 3, budget, decode, priors
    )
