"""Noise for three and more labels, along the axes that the library chose.

Released coordinates mean nothing without these axes. Where masses are nearly equal, axes turn with the last digit of
the belief, so the library replays the belief from what it released, bit for bit. What noise along these axes reveals is
then computed from their numbers, and the belief is not used for anything else.
"""

import math

import numpy as np

from pacpredict.core.belief import Belief
from pacpredict.core.calibrate import calibrate_votes
from pacpredict.core.release import REPLAY, answer_votes
from pacpredict.mechanism.budget import Budget
from pacpredict.types import FloatArray, Votes


class ReplayedAxes:
    """Follows the noisy releases of one history."""

    def __init__(self, n_classes: int, budget: Budget, log_belief: FloatArray) -> None:
        self._n_classes, self._step, self._noise = n_classes, budget.step, budget.noise
        self._log_belief = log_belief.copy()
        self._log_prior = Belief.uniform(log_belief.size).log_probabilities

    def law(self, votes: Votes) -> tuple[FloatArray, FloatArray]:
        """Return the coordinates of each model's label (n_models, r) and the variance of each coordinate."""
        noise = calibrate_votes(
            votes, self._n_classes, Belief(self._log_belief), self._step, noise=self._noise
        )
        return noise.coordinates, noise.variances

    def follow(self, votes: Votes, noisy: list[float], contested: int) -> None:
        """Replay a release that came after so many contested queries."""
        fair, released = self._noise == "fair", np.array(noisy, np.float64)
        answer_votes(
            *(
                votes[None],
                self._n_classes,
                REPLAY,
                self._step,
                False,
                math.inf,
                1.0,
                False,
                fair,
                contested,
                1,
            ),
            *(np.empty(0), np.empty(0, np.int64), self._log_belief, self._log_prior, released),
        )
