"""Leave-one-out votes: if one unit explains the votes on a query, answer as the models without that unit do.

For each unit the vote shares of the models with and without it are compared, class by class, in standard errors. If the
largest difference Z exceeds what chance allows among all units, the models trained on that unit get the plurality of
the models that were not. This is a function of query, pool, subsets and seeds, and the same whichever model is the
secret: every theorem about the secret holds for these votes as for any others (docs/theory.md). It *reduces* what
answers tell about a single unit of the pool; it does not remove it, and it proves nothing about the pool.

Which unit was removed, its Z, and whether one was removed at all are functions of the pool: never show them.
"""

from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from pacpredict.core.vote_rule import VoteRule, n_removed
from pacpredict.exceptions import InvalidInput, InvalidSubsets, InvalidVotes
from pacpredict.types import IntArray, Votes
from pacpredict.votes.influence_kernel import (
    UNITS_PER_BLOCK,
    Holders,
    Scratch,
    Words,
    find_influential,
    leave_one_out,
)

# How many of all units pass the threshold by chance on a contested query, were Z normal and no unit of any influence:
# Z is two-sided, so a third of a unit.
_TAIL = 1 / 6


def influence_threshold(n_units: int) -> float:
    """Return the Z that a third of one unit exceeds by chance: 3.65 for 1,300 units, 4.2 for 12,000, 5.1 for a million.

    Parameters
    ----------
    n_units
        The number of units of privacy in the pool.

    Returns
    -------
    float
        The (1 - 1 / (6 n)) quantile of the standard normal distribution.
    """
    if n_units < 1:
        raise InvalidInput(f"n_units must be >= 1, got {n_units}")
    return -NormalDist().inv_cdf(_TAIL / n_units)


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Turns plain votes into leave-one-out votes; any number of threads may use one at a time."""

    holders: Holders = field(repr=False)
    n_models: int
    n_classes: int
    threshold: float  # in standard errors
    rounds: int

    @classmethod
    def of(
        cls,
        packed: npt.NDArray[np.uint8],
        n_units: int,
        n_classes: int,
        *,
        threshold: float | None = None,
        rounds: int = 1,
    ) -> "LeaveOneOut":
        """Prepare for the subsets of a deployment.

        Parameters
        ----------
        packed
            Membership bits (n_models, n_units / 8 rounded up), as np.packbits writes them.
        n_units
            The number of units.
        n_classes
            The number of classes that models vote for.
        threshold
            The smallest Z that removes a unit; `influence_threshold(n_units)` by default.
        rounds
            How many units may be removed, one after the other. Two withstand one decoy where strangers contribute.
        """
        if n_units < 1 or packed.dtype != np.uint8 or packed.ndim != 2 or packed.shape[1] != -(-n_units // 8):
            raise InvalidSubsets(
                f"packed membership of {n_units} units must be uint8 of shape (n_models, {-(-n_units // 8)}), got "
                f"{packed.dtype} of shape {packed.shape}"
            )
        chosen = influence_threshold(n_units) if threshold is None else threshold
        if not chosen >= 0:
            raise InvalidInput(f"threshold must be >= 0, got {threshold}")
        if rounds < 1:
            raise InvalidInput(f"rounds must be >= 1, got {rounds}")
        return cls(_turn(packed, n_units), len(packed), n_classes, chosen, rounds)

    @classmethod
    def by(
        cls, rule: VoteRule, packed: npt.NDArray[np.uint8], n_units: int, n_classes: int
    ) -> "LeaveOneOut | None":
        """Prepare what a rule needs: nothing for plain votes."""
        rounds = n_removed(rule)
        return cls.of(packed, n_units, n_classes, rounds=rounds) if rounds else None

    def apply(self, votes: Votes) -> Votes:
        """Return the leave-one-out votes for plain votes (n_queries, n_models); each row depends on itself alone."""
        votes = self._check(votes)
        changed = np.empty_like(votes, order="C")
        threshold = self.threshold * self.threshold
        leave_one_out(votes, self.holders, threshold, self.rounds, self._scratch(), changed)
        return changed

    def most_influential(self, votes: Votes) -> IntArray:
        """Return the unit with the largest Z for each query, or -1 where all models agree; never show it."""
        units = np.empty(len(votes), np.int64)
        find_influential(self._check(votes), self.holders, self._scratch(), units)
        return units

    def _check(self, votes: Votes) -> Votes:
        if votes.ndim != 2 or votes.shape[1] != self.n_models or votes.dtype != np.int16:
            raise InvalidVotes(
                f"votes must be int16 of shape (n_queries, {self.n_models}), got {votes.dtype} of shape {votes.shape}"
            )
        if votes.size and not 0 <= votes.min() <= votes.max() < self.n_classes:
            raise InvalidVotes(f"votes must be class indices from 0 to {self.n_classes - 1}")
        return np.ascontiguousarray(votes)

    def _scratch(self) -> Scratch:
        n_words = len(self.holders.words)
        return Scratch(
            tally=np.empty(self.n_classes, np.int64),
            alive=np.empty(n_words, np.uint64),
            voters=np.empty(n_words, np.uint64),
            counts=np.empty(UNITS_PER_BLOCK, np.uint64),
            trained=np.empty(UNITS_PER_BLOCK, np.uint64),
            lowest=np.empty(self.n_models + 1, np.int64),
            highest=np.empty(self.n_models + 1, np.int64),
        )


def _turn(packed: npt.NDArray[np.uint8], n_units: int) -> Holders:
    """Put the bits of a unit's models together."""
    words: Words = np.zeros((-(-len(packed) // 64), n_units), np.uint64)
    n_trained = np.zeros(n_units, np.int64)
    for i, row in enumerate(packed):
        bits = np.unpackbits(row, count=n_units)
        words[i // 64] |= bits.astype(np.uint64) << np.uint64(i % 64)
        n_trained += bits
    alike = bool((n_trained == n_trained[0]).all() and 0 < n_trained[0] < len(packed))
    return Holders(words, int(n_trained[0]) if alike else 0)
