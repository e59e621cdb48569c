"""The limit on how far anybody's odds of membership may move, as a session keeps it (docs/theory.md, 10)."""

import hashlib
import math
from typing import NamedTuple

import numpy as np

from pacpredict.core.belief import Belief
from pacpredict.core.calibrate import Noise
from pacpredict.core.decode import Decoder, check_decoder
from pacpredict.core.exposure import MOVED, ROOM, Bits, Membership, move, reach_of_noise, room_for, settle
from pacpredict.exceptions import ExposureReached, InvalidInput
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import State
from pacpredict.types import FloatArray


class Limit(NamedTuple):
    """How far log-odds may move from where they were, whose are watched, and what stands for all that."""

    epsilon: float
    delta: float  # the probability that one noisy release passes it
    bits: Bits
    digest: bytes | None

    @classmethod
    def of(cls, budget: Budget, membership: Membership | None, prior: Belief) -> "Limit":
        """Return the limit that a budget sets, for these units; none, if it sets none."""
        if budget.exposure is None:
            return NO_LIMIT
        if membership is None or membership.n_models != prior.n_models:
            raise InvalidInput(
                "a budget with a limit on exposure needs to know whose: pass the membership of units in the subsets of "
                "these models, or exposure=None"
            )
        numbers = np.array([budget.exposure, budget.step_delta], "<f8").tobytes()
        digest = hashlib.sha256(numbers + membership.digest()).digest()
        return cls(budget.exposure, budget.step_delta, membership.bits, digest)

    @property
    def is_none(self) -> bool:
        return self.digest is None

    def begin(self) -> FloatArray:
        """Return the track of a history that begins."""
        return np.array([self.epsilon, 0.0])

    def track(self, state: State) -> FloatArray:
        """Return the track of a history, to be moved by its next releases."""
        if state.room is None or state.moved is None:
            return self.begin()
        return np.array([state.room, state.moved])

    def kept(self, track: FloatArray) -> tuple[float | None, float | None]:
        """Return what a state remembers of a track."""
        return (None, None) if self.is_none else (float(track[ROOM]), float(track[MOVED]))

    def admit(self, noise: Noise, belief: Belief, contested: int, track: FloatArray) -> None:
        """Refuse a noisy vector that could move somebody's odds past the limit, before it is drawn."""
        if self.is_none:
            return
        reach = noise.reach(self.delta)
        where = belief.log_probabilities, contested, track, self.bits, self._tables()
        if reach > room_for(reach, 1.0, self.epsilon, *where):
            raise ExposureReached(
                f"this release could move the odds of some unit's membership past the limit of {self.epsilon:g}. "
                "Nothing was drawn or charged: release less, or with a smaller step budget"
            )

    def note(self, likelihoods: FloatArray, track: FloatArray) -> None:
        """Note how far a released vector can have moved odds."""
        move(track, float(np.ptp(likelihoods)))

    def settle(self, log_belief: FloatArray, contested: int, track: FloatArray) -> None:
        """Look at all units, as is done when the belief answers because of the limit."""
        if not self.is_none:
            settle(self.epsilon, log_belief, contested, track, self.bits, self._tables())

    def _tables(self) -> FloatArray:
        return np.empty((self.bits.members.shape[1], 256))


def limit_warning(budget: Budget, decode: Decoder, n_models: int) -> str | None:
    """Say so if noise of this step is too little for the limit on odds, so that the belief will answer instead.

    Of two labels, noise that hides a vote in halves moves odds least, and that of a single dissenter most.
    """
    if budget.exposure is None or check_decoder(decode)[0] != "gaussian":
        return None
    least, most = (_reach_of_two(budget, mass) for mass in (0.5, 1 / n_models))
    if most <= budget.exposure:
        return None
    which = "all" if least > budget.exposure else "some"
    return (
        f"with {budget.step:g} nats a step, noise could move somebody's odds past the limit of {budget.exposure:g}: "
        f"{which} answers on which models differ will come from the belief instead, without the secret model and "
        "without a charge; choose a smaller step, decode by sample, or set another limit"
    )


def _reach_of_two(budget: Budget, mass: float) -> float:
    """Return how far a release about two labels could move odds, if one of them has this share of the belief."""
    variance = mass * (1 - mass) / (2 * budget.step)
    return reach_of_noise(np.array([[0.0], [1.0]]), np.array([variance]), 0, budget.step_delta)


NO_LIMIT = Limit(math.inf, 0.0, Bits(np.empty((0, 0), np.uint8), np.empty(0)), None)
