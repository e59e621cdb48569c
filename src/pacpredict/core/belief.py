"""What an all-knowing adversary believes about the secret, kept in log space.

A linear belief underflows within some fifty contested queries at large budgets; then a class that is still
voted for has mass exactly 0, and its noise vanishes or a division by zero follows.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pacpredict.core.kernel import LOG_BELIEF_FLOOR
from pacpredict.core.validate import check_belief
from pacpredict.exceptions import InvalidBelief, InvalidSubsets
from pacpredict.types import FloatArray

# Records handled at a time by `membership_posterior`: 16 MiB of doubles for 128 models.
_RECORDS_PER_BLOCK = 16_384

# A belief that many releases have updated may differ from sum 1 by this much, and keeps its bits.
_DRIFT = 1e-11


@dataclass(frozen=True, eq=False)
class Belief:
    """A distribution over the m models, as natural logarithms of probabilities."""

    log_probabilities: FloatArray

    def __post_init__(self) -> None:
        log_p = np.array(self.log_probabilities, dtype=np.float64)
        if log_p.ndim != 1 or log_p.size == 0 or np.isnan(log_p).any():
            raise InvalidBelief("log_probabilities must be a one-dimensional array without NaN")
        check_belief(np.exp(log_p), name="exp(log_probabilities)")
        total = float(np.exp(log_p).sum())
        if abs(total - 1) > _DRIFT:
            log_p -= math.log(total)
        log_p.setflags(write=False)
        object.__setattr__(self, "log_probabilities", log_p)

    @classmethod
    def uniform(cls, n_models: int) -> "Belief":
        return cls.from_probabilities(np.full(n_models, 1 / n_models))

    @classmethod
    def from_probabilities(cls, probabilities: npt.ArrayLike) -> "Belief":
        p = check_belief(probabilities)
        with np.errstate(divide="ignore"):
            return cls(np.maximum(np.log(p), LOG_BELIEF_FLOOR))

    @property
    def n_models(self) -> int:
        return self.log_probabilities.size

    def probabilities(self) -> FloatArray:
        p: FloatArray = np.exp(self.log_probabilities)
        return p / p.sum()

    def updated(self, log_likelihood: FloatArray) -> "Belief":
        """Apply Bayes' rule (eq. 4)."""
        joint = self.log_probabilities + log_likelihood
        top = joint.max()
        log_evidence = top + np.log(np.exp(joint - top).sum())
        return Belief(np.maximum(joint - log_evidence, LOG_BELIEF_FLOOR))

    def entropy(self) -> float:
        """Measure what remains unknown about the secret, in nats: log m at first, 0 when it is found."""
        p = self.probabilities()
        return max(0.0, -float(p @ self.log_probabilities))

    def divergence(self, prior: "Belief") -> float:
        """KL divergence from the prior: what this history revealed; its mean is at most the spent budget."""
        p = self.probabilities()
        return max(0.0, float(p @ (self.log_probabilities - prior.log_probabilities)))

    def membership_posterior(self, membership: npt.ArrayLike) -> FloatArray:
        """Compute each record's probability of being in the training set, given all releases so far.

        `membership` is (n_models, n_records), true (or 1) where the model's subset has the record; packed bits are
        refused.
        """
        members = np.asarray(membership)
        if members.ndim != 2 or members.shape[0] != self.n_models:
            raise InvalidSubsets(
                f"membership must have shape ({self.n_models}, n_records), got {members.shape}"
            )
        p = self.probabilities()
        posterior = np.empty(members.shape[1])
        for start in range(0, members.shape[1], _RECORDS_PER_BLOCK):
            block = members[:, start : start + _RECORDS_PER_BLOCK]
            if members.dtype != np.bool_ and not ((block == 0) | (block == 1)).all():
                raise InvalidSubsets(
                    "membership must hold true and false, or 1 and 0, one for each model and record; unpack bits first "
                    "(numpy.unpackbits, or Subsets.matrix())"
                )
            posterior[start : start + _RECORDS_PER_BLOCK] = p @ block.astype(np.float64)
        return np.clip(posterior, 0.0, 1.0)
