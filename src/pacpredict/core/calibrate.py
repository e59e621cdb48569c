"""How much noise keeps one release within its budget, under any belief (Theorem 2.5).

What is released is always a vector of *coordinates*, each with its own positive Gaussian noise; the noisy
output is computed from these alone. So the guarantee rests on one sum over the numbers really released,
½ sum_i Var(coordinate_i) / sigma_i² <= b (theory.md, 3), and never on the accuracy of a decomposition:
a direction that a rank rule drops carries no signal either.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from pacpredict import defaults
from pacpredict.core import kernel
from pacpredict.core.axes import padded
from pacpredict.core.belief import Belief
from pacpredict.core.decode import NoiseRule, check_noise
from pacpredict.core.odds_limit import reach_of_noise
from pacpredict.core.tally import tally_votes
from pacpredict.core.validate import check_budget, check_outputs, check_votes
from pacpredict.exceptions import InvalidBelief, InvalidInput, InvalidOutputs
from pacpredict.types import FloatArray

Method = Literal["eigen", "diagonal"]

# Squares and inverse squares of differences within these limits stay far inside double range.
_SMALLEST_DIFFERENCE, _LARGEST_DIFFERENCE = 1e-100, 1e100


@dataclass(frozen=True, eq=False)
class Noise:
    """Independent Gaussian noise along axes, for one query.

    Model s would release centre + coordinates[s] @ axes, exactly its output where no direction was dropped;
    noise of the given variances is added to the coordinates.
    """

    centre: FloatArray  # (d,)
    axes: FloatArray  # (r, d), orthonormal rows
    coordinates: FloatArray  # (m, r)
    variances: FloatArray  # (r,), all positive

    def covariance(self) -> FloatArray:
        """Covariance of the noise in the space of outputs: Sigma of Theorem 2.5."""
        return (self.axes.T * self.variances) @ self.axes

    def leakage(self, belief: Belief) -> float:
        """Certify the calibration: an upper bound in nats on what the release reveals under this belief."""
        return _leakage(self.coordinates, belief, self.variances)

    def reach(self, delta: float) -> float:
        """Bound how far a release moves log-likelihoods against each other, but for delta under every secret."""
        return reach_of_noise(self.coordinates, self.variances, 0, delta) if self.variances.size else 0.0

    def draw(self, secret: int, normals: FloatArray) -> FloatArray:
        """Compute the release of one model from standard normals: its noisy coordinates.

        All models' coordinates are read, and all but one multiplied by 0: the work does not depend on the secret.
        """
        chosen = (np.arange(len(self.coordinates)) == secret).astype(np.float64)
        return chosen @ self.coordinates + np.sqrt(self.variances) * normals

    def vector(self, noisy: FloatArray) -> FloatArray:
        """Compute the noisy output R_t of Algorithm 1 from noisy coordinates."""
        return self.centre + noisy @ self.axes

    def coordinates_of(self, vector: FloatArray) -> FloatArray:
        """Compute the noisy coordinates of a noisy output; the inverse of `vector`, up to rounding."""
        return self.axes @ (vector - self.centre)

    def log_likelihood(self, noisy: FloatArray) -> FloatArray:
        """Compute the exponent of eq. (4) for every model from noisy coordinates, less the part that all share."""
        return ((noisy - 0.5 * self.coordinates) * self.coordinates / self.variances).sum(axis=1)


def calibrate(
    outputs: npt.ArrayLike, belief: Belief, step_budget: float, *, method: Method = "eigen"
) -> Noise:
    """Calibrate noise for any real outputs (m, d): soft scores, statistics, gradients.

    `method="eigen"` is Theorem 2.5, the least total noise; `"diagonal"` noises each output on its own.
    """
    b = check_budget(step_budget, "step_budget")
    y = check_outputs(outputs, belief.n_models)
    # Differences to the likeliest model: exactly 0 where all models agree, and without cancellation when
    # that model has nearly all the belief.
    likeliest = int(np.argmax(belief.log_probabilities))
    with np.errstate(over="ignore"):  # infinite differences are refused below
        difference = y - y[likeliest]
    scale = float(np.abs(difference).max())
    if scale != 0 and not _SMALLEST_DIFFERENCE <= scale <= _LARGEST_DIFFERENCE:
        raise InvalidOutputs(
            f"outputs differ between models by up to {scale:g}; rescale them to differ by "
            f"{_SMALLEST_DIFFERENCE:g} to {_LARGEST_DIFFERENCE:g}"
        )
    mean = belief.probabilities() @ difference
    centred = difference - mean
    axes = _axes(centred, belief, method)
    coordinates = centred @ axes.T
    spread = _variances(coordinates, belief)
    # However little the belief leaves to the models that differ, their share counts as the floor: that adds noise.
    reach = np.abs(coordinates - coordinates[likeliest]).max(axis=0)
    kept = spread > 0
    spread = np.maximum(spread, kernel.MASS_FLOOR * reach**2)[kept]
    variances = _certified(_noise_variances(spread, b), coordinates[:, kept], belief, b)
    return Noise(y[likeliest] + mean, axes[kept], coordinates[:, kept], variances)


def calibrate_votes(
    votes: npt.ArrayLike,
    n_classes: int,
    belief: Belief,
    step_budget: float,
    *,
    noise: NoiseRule = defaults.NOISE,
) -> Noise:
    """Calibrate noise for the one-hot labels of m models, in closed form: to the bit what a release of them has.

    `noise="least"` is Theorem 2.5, the least total noise; `"fair"` has the same variance in every direction, so that
    the labels which noise alone would choose are uniform. For two labels they are the same.
    """
    b, fair = check_budget(step_budget, "step_budget"), check_noise(noise)
    row = check_votes(votes, n_classes, belief.n_models)
    if row.shape[0] != 1:
        raise InvalidInput(f"calibrate_votes takes one query of shape ({belief.n_models},)")
    tally = tally_votes(row, n_classes)
    classes, k = tally.classes[: tally.n_voted[0]], int(tally.n_voted[0])
    centre = np.zeros(n_classes)
    centre[classes] = 1 / k
    axes = np.zeros((k - 1, n_classes))
    variances = np.empty(padded(k - 1))
    if k > 1:
        mass, slot_axes = np.empty(k), np.empty((k, variances.size))
        dissenters = tally.dissenters[: tally.slots.size]
        kernel.sum_masses(belief.log_probabilities, dissenters, tally.slots, tally.bulk[0], mass)
        space = kernel.make_workspace(k, belief.n_models)
        kernel.calibrate_masses(mass, b, fair, slot_axes, variances, space)
        axes[:, classes] = slot_axes[:, : k - 1].T
    return Noise(centre, axes, axes[:, row[0]].T, variances[: k - 1])


def _axes(centred: FloatArray, belief: Belief, method: Method) -> FloatArray:
    varying = (centred != centred[0]).any(axis=0)  # exact: an output that never varies gets no noise
    if method == "diagonal":
        return np.eye(centred.shape[1])[varying]
    if method != "eigen":
        raise InvalidInput(f"method must be 'eigen' or 'diagonal', got {method!r}")
    weighted = np.sqrt(belief.probabilities())[:, None] * centred[:, varying]
    _, singular, rows = np.linalg.svd(weighted, full_matrices=False)
    # The usual numerical rank, decided before anything is divided by b: rounding divided by 2^-32 would
    # become noise of its own.
    rank = int((singular > max(weighted.shape) * np.finfo(float).eps * singular[:1]).sum())
    axes = np.zeros((rank, centred.shape[1]))
    axes[:, varying] = rows[:rank]
    return axes


def _variances(coordinates: FloatArray, belief: Belief) -> FloatArray:
    """Compute the variance of each coordinate. It chooses the noise; `_leakage` certifies it."""
    p = belief.probabilities()
    likeliest = int(np.argmax(belief.log_probabilities))
    difference = coordinates - coordinates[likeliest]
    variances: FloatArray = p @ difference**2 - (p @ difference) ** 2
    return variances


def _noise_variances(spread: FloatArray, b: float) -> FloatArray:
    deviations = np.sqrt(spread)
    with np.errstate(over="ignore"):
        variances: FloatArray = deviations * deviations.sum() / (2 * b) * (1 + kernel.ROUNDING_MARGIN)
    if not np.isfinite(variances).all():
        raise InvalidOutputs(f"outputs differ too much to be hidden with {b:g} nats; rescale them")
    return variances


def _leakage(coordinates: FloatArray, belief: Belief, variances: FloatArray) -> float:
    """Compute the certificate ½ sum_i Var_i / sigma_i², rounded up.

    In place of a variance stands the mean square about the mean: no less, however the mean is rounded, and a sum of
    positive terms. The variance itself is a difference, of which m equally likely models can leave a part in m.
    """
    if coordinates.shape[0] != belief.n_models:
        raise InvalidBelief(f"the belief must be over {coordinates.shape[0]} models, not {belief.n_models}")
    p = belief.probabilities()
    difference = coordinates - coordinates[int(np.argmax(belief.log_probabilities))]
    moments = p @ (difference - p @ difference) ** 2
    return float(0.5 * (moments / variances).sum() * (1 + kernel.rounding_of_masses(p.size)))


def _certified(variances: FloatArray, coordinates: FloatArray, belief: Belief, b: float) -> FloatArray:
    """Scale the noise up if rounding has left its certificate above the budget."""
    leak = _leakage(coordinates, belief, variances)
    return variances if leak <= b else variances * (leak / b * (1 + kernel.ROUNDING_MARGIN))
