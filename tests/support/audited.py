"""What tests of the audit attack: votes that remember some records, without any artifact."""

import numpy as np
from broken_lives import scene

from pacpredict.audit.subject import Subject
from pacpredict.core.priors import Records, attack_priors
from pacpredict.mechanism.budget import Budget


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
