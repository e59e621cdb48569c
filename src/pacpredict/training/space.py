"""The secret space: units, the subsets of them, and what an attacker knows of these before any answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pacpredict.core.attacks import bound_attacks
from pacpredict.core.belief import Belief
from pacpredict.core.priors import Records, attack_priors, model_prior
from pacpredict.learners.learner import Learner, Voter
from pacpredict.rows.kind import AnyRows
from pacpredict.training.pool import Pool
from pacpredict.training.subsets import Subsets
from pacpredict.training.units import Units
from pacpredict.types import FloatArray, Votes

# Models that agree on all probes are taken for one: on this many records of the pool, and as many mixtures of them.
_MOST_RECORDS = 4096
# They are asked in steps, since a few probes mostly suffice to tell all apart.
_STEPS = (64, 512, 2 * _MOST_RECORDS)

# Where the histogram of posteriors changes bins: fine around 1/2, where nearly everybody is, and at the ends.
POSTERIOR_EDGES = (0, 0.001, 0.01, 0.1, 0.25, 0.4, 0.45, 0.49, 0.51, 0.55, 0.6, 0.75, 0.9, 0.99, 0.999, 1)


@dataclass(frozen=True, eq=False)
class Space:
    units: Units
    subsets: Subsets  # of units
    count_priors: Callable[[], Mapping[str, float]] = field(repr=False)

    def __repr__(self) -> str:
        return f"Space({self.subsets.n_models} subsets of {self.units!r})"

    @cached_property
    def priors(self) -> Mapping[str, float]:
        """How often each attack of core/attacks.py succeeds before any answer; counted when first asked for."""
        return self.count_priors()

    @classmethod
    def realised(cls, pool: Pool, subsets: Subsets, learner: Learner, voter: Voter, seed: int) -> "Space":
        """Count priors in what was really drawn and trained; the seed chooses what models are compared on."""

        def count() -> dict[str, float]:
            votes = _telling_votes(pool, learner, voter, seed)
            return attack_priors(subsets.matrix(), Records(pool.units.of_record, pool.contents), votes)

        return cls(pool.units, subsets, count)

    def bounds(self, total_budget: float) -> dict[str, dict[str, str | float]]:
        """Say of each attack how often it succeeds: before any answer, and ever."""
        return bound_attacks(self.priors, total_budget, unit=self.units.kind, n_models=self.subsets.n_models)

    def membership_posterior(self, belief: Belief) -> FloatArray:
        """Return each unit's posterior probability of membership in the training set."""
        return np.concatenate([belief.membership_posterior(block) for block in self.subsets.blocks()])


def summarise_posterior(posterior: FloatArray) -> dict[str, Any]:
    """Return the smallest and the largest posterior, and a histogram of the units."""
    counts, _ = np.histogram(posterior, POSTERIOR_EDGES)
    return {
        "smallest": float(posterior.min()),
        "largest": float(posterior.max()),
        "histogram": {"edges": list(POSTERIOR_EDGES), "units": counts.tolist()},
    }


def _telling_votes(pool: Pool, learner: Learner, voter: Voter, seed: int) -> Votes:
    """Return the votes (n_models, n_probes) on enough probes to tell all models apart, if these can.

    More probes would change nothing then: with all models different the prior is the smallest that there is.
    """
    probes = _probes(pool, np.random.default_rng([seed, len(pool)]))
    for step in _STEPS:
        asked = learner.prepare(pool.schema, probes.take(np.arange(min(step, len(probes)))))
        votes = np.ascontiguousarray(voter.votes(asked).T)
        if step >= len(probes) or model_prior(votes) == 1 / len(votes):
            break
    return votes


def _probes(pool: Pool, rng: np.random.Generator) -> AnyRows:
    """Return different records of the pool, and as many mixtures of these."""
    _, first = np.unique(pool.contents, return_index=True)
    records = pool.rows.take(rng.permutation(first)[:_MOST_RECORDS])
    return records.join([records, records.mixed(rng)])
