"""What is audited: how all models vote on the pool's own records, who is in which subset, and what is claimed.

The secret is no part of it. A game draws one of its own and is scored by that.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pacpredict.artifact.artifact import Artifact
from pacpredict.core.decode import Decoder, Mechanism, check_decoder
from pacpredict.core.validate import check_votes
from pacpredict.core.vote_rule import VoteRule, check_vote_rule
from pacpredict.exceptions import InvalidInput, InvalidSubsets, InvalidTable, InvalidVotes
from pacpredict.mechanism.budget import Budget
from pacpredict.training.pool import Pool
from pacpredict.types import BoolArray, IntArray, Votes
from pacpredict.votes.leave_one_out import LeaveOneOut

_MEMORY = Path("/proc/meminfo")


@dataclass(frozen=True, eq=False)
class Subject:
    votes: Votes  # (n_records, n_models), on the pool's own records, as the mechanism sees them
    labels: IntArray  # (n_records,), the true ones
    units: IntArray  # (n_records,), the unit that each is of
    contents: IntArray  # (n_records,), a number that equal records share
    membership: BoolArray  # (n_models, n_units)
    n_classes: int
    budget: Budget  # what is claimed
    decode: Decoder
    priors: Mapping[str, float]  # of each attack, before any answer
    unit: str = "record"  # what a unit is
    rule: VoteRule = "plain"  # by which the votes of the models count
    votes_of_models: Votes | None = None  # before the rule; None: they are the same

    def __post_init__(self) -> None:
        check_votes(self.votes, self.n_classes)
        n_records, n_models = self.votes.shape
        if self.membership.ndim != 2 or self.membership.dtype != np.bool_:
            raise InvalidSubsets("membership must be a boolean matrix (n_models, n_units)")
        if self.membership.shape[0] != n_models:
            raise InvalidVotes(
                f"the votes are those of {n_models} models, and there are {self.membership.shape[0]} subsets: they are "
                "not of the same deployment"
            )
        for name, given in (("labels", self.labels), ("units", self.units), ("contents", self.contents)):
            if given.shape != (n_records,):
                raise InvalidVotes(f"there are votes on {n_records:,} records, and {len(given):,} {name}")
        if self.units.min() < 0 or self.units.max() >= self.membership.shape[1]:
            raise InvalidSubsets(f"a record is of a unit that is not among {self.membership.shape[1]:,}")
        check_decoder(self.decode)
        check_vote_rule(self.rule)

    @classmethod
    def of(
        cls,
        artifact: Artifact,
        pool: Pool,
        *,
        decode: Decoder | None = None,
        votes: VoteRule | None = None,
        n_threads: int = 1,
    ) -> "Subject":
        """Let an artifact's models vote on the records that it was fitted on."""
        check_pool(artifact, pool)
        ensemble = artifact.ensemble(rule=votes)
        plain = ensemble.votes_of_models(pool.rows, n_threads)
        return cls(
            ensemble.count(plain, n_threads),
            pool.labels,
            artifact.space.units.of_record,
            pool.contents,
            artifact.space.subsets.matrix(),
            len(artifact.classes),
            artifact.recipe.budget,
            decode or artifact.recipe.decode,
            artifact.space.priors,
            artifact.space.units.kind,
            ensemble.rule,
            plain,
        )

    @property
    def plain(self) -> Votes:
        """The votes of the models themselves."""
        return self.votes if self.votes_of_models is None else self.votes_of_models

    def count(self, votes: Votes, membership: BoolArray) -> Votes:
        """Return what votes count as by the rule, of models that were trained on these units and no others."""
        packed, n_units = np.packbits(membership, axis=1), membership.shape[1]
        rule = LeaveOneOut.by(self.rule, packed, n_units, self.n_classes)
        return votes if rule is None else rule.apply(votes)

    @property
    def n_models(self) -> int:
        return self.votes.shape[1]

    @property
    def n_units(self) -> int:
        return self.membership.shape[1]

    @property
    def mechanism(self) -> Mechanism:
        return check_decoder(self.decode)[0]

    @property
    def delta(self) -> float:
        """The probability with which the limit on odds may be passed: labels of a channel never do."""
        return self.budget.odds_delta if self.mechanism == "gaussian" else 0.0

    def contested(self) -> IntArray:
        """Return the records on which models differ: all others teach nobody anything."""
        found = np.flatnonzero(self.votes.min(axis=1) < self.votes.max(axis=1))
        if not found.size:
            charged = "" if self.budget.charging == "flat" else ", and nothing is charged for them"
            raise InvalidVotes(
                "all models agree on all records of the pool, so that answers about these reveal nothing: there is "
                f"nothing to attack with them{charged}. `pacpredict evaluate` says whether "
                "such models are better than always the most frequent class; `audit --ledger` what other questions "
                "have revealed so far"
            )
        return found


def check_pool(artifact: Artifact, pool: Pool) -> None:
    """Refuse other records than those that the artifact was fitted on."""
    if pool.schema != artifact.schema or pool.classes != artifact.classes:
        raise InvalidTable(
            "these records have other columns or classes than those that the artifact was fitted on"
        )
    if pool.digest() != artifact.manifest["records_sha256"]:
        raise InvalidTable(
            "these are not the records that the artifact was fitted on, or not in the same order"
        )


def check_memory(needed: int, what: str) -> None:
    """Refuse, before anything is begun, what memory does not suffice for."""
    free = _free_memory()
    if needed > free:
        raise InvalidInput(
            f"{what} would need about {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free: ask for fewer"
        )


def _free_memory() -> int:
    """Return the bytes that are free, or all that there are where nobody says."""
    try:
        line = next(one for one in _MEMORY.read_text().splitlines() if one.startswith("MemAvailable:"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
