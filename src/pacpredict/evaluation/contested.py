"""On how many queries the models of a deployment will differ, measured on the records that each has not seen.

A record of the pool is like a new query to the models whose subset lacks it. These are half of the models, and half as
many voters agree more often than all do; so the share is carried on to all of them. If the rates at which models
dissent are spread near 0 with a density like p^(a-1), k of them are unanimous on a share of queries proportional to
k^-a: the exponent is measured between a quarter and a half of the models.
"""

from typing import NamedTuple

import numpy as np

from pacpredict.core.decode import Decoder
from pacpredict.learners.learner import Learner, Voter
from pacpredict.show import percent
from pacpredict.training.pool import Pool
from pacpredict.training.subsets import Subsets
from pacpredict.types import BoolArray, FloatArray, IntArray, Votes

# From here on noise decides a good part of the answers of `argmax`.
HIGH = 0.25
# Enough to know a share to a percent, and not too many for models that are asked one after another.
MOST_RECORDS = 2_000


class Contested(NamedTuple):
    share: float  # of new queries, on which not all models will agree
    measured: float  # of records, on which those models differ that have not seen them
    records: int

    def warning(self, decode: Decoder) -> str | None:
        """Say so if it is high, and what it means for answers by this decoder."""
        if self.share < HIGH:
            return None
        decided = ", and at small steps noise decides what argmax answers" if decode == "argmax" else ""
        return (
            f"models disagree on {percent(self.share)} of queries: each of these is charged{decided}; `pacpredict "
            "evaluate` compares learners and decoders"
        )


def measure_contested(
    pool: Pool, learner: Learner, voter: Voter, subsets: Subsets, seed: int
) -> Contested | None:
    """Let the models of a deployment vote on records of its pool."""
    chosen = np.sort(np.random.default_rng([seed, len(pool)]).permutation(len(pool))[:MOST_RECORDS])
    votes = voter.votes(learner.prepare(pool.schema, pool.rows.take(chosen)))
    return contested_outside(np.asarray(votes, np.int16), subsets.matrix()[:, pool.units.of_record[chosen]])


def contested_outside(votes: Votes, membership: BoolArray) -> Contested | None:
    """Measure the share from all models' votes on records of the pool (n_records, n_models).

    `membership` (n_models, n_records) says which record each was trained on. None if no record was left out by two
    models.
    """
    outside = ~membership.T
    n_outside = outside.sum(axis=1)
    known = n_outside >= 2
    if not known.any():
        return None
    counts = np.stack([((votes == c) & outside).sum(axis=1) for c in range(int(votes.max()) + 1)])[:, known]
    n_outside = n_outside[known]
    all_agree = _unanimous(counts, n_outside, n_outside)
    half_agree = _unanimous(counts, n_outside, n_outside // 2)
    measured = 1.0 - float(all_agree)
    if all_agree == 0:
        return Contested(1.0, 1.0, int(known.sum()))
    k = float(n_outside.mean())
    exponent = np.log(half_agree / all_agree) / np.log(2)
    share = 1.0 - float(all_agree * (votes.shape[1] / k) ** -exponent)
    return Contested(share, measured, int(known.sum()))


def _unanimous(counts: IntArray, of: IntArray, n_drawn: IntArray) -> np.float64:
    """Return the mean probability that so many models, drawn without replacement, agree."""
    log_factorial = np.concatenate([[0.0], np.log(np.arange(1, of.max() + 1)).cumsum()])

    def log_falling(n: IntArray) -> FloatArray:
        """Return the logarithm of n (n - 1) ... (n - n_drawn + 1)."""
        return log_factorial[n] - log_factorial[np.maximum(n - n_drawn, 0)]

    ways = np.where(counts >= n_drawn, log_falling(counts) - log_falling(of), -np.inf)
    return np.exp(ways).sum(axis=0).mean()
