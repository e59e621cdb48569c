"""Algorithm 1 written straight from the paper, in NumPy: the oracle of the tests and the baseline to beat.

Every query is a matrix of outputs (m, d); noise is calibrated by a singular value decomposition of the weighted,
centred matrix (Theorem 2.5 and the remark after it), and the belief is updated for all m secrets by projecting
on the same decomposition (eq. 4).
"""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


class Algorithm1:
    def __init__(self, prior: FloatArray, step_budget: float, secret: int, rng: np.random.Generator) -> None:
        self.belief = prior.copy()
        self.b = step_budget
        self.secret = secret
        self.rng = rng

    def calibrate(self, outputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the axes (rows) and variances of the noise."""
        centred = outputs - self.belief @ outputs
        weighted = np.sqrt(self.belief)[:, None] * centred
        _, singular, axes = np.linalg.svd(weighted, full_matrices=False)
        singular[singular <= max(outputs.shape) * np.finfo(float).eps * singular[0]] = 0.0
        return axes, singular * singular.sum() / (2 * self.b)

    def covariance(self, outputs: FloatArray) -> FloatArray:
        axes, variances = self.calibrate(outputs)
        return (axes.T * variances) @ axes

    def release(self, outputs: FloatArray) -> FloatArray:
        axes, variances = self.calibrate(outputs)
        noise = (self.rng.standard_normal(variances.size) * np.sqrt(variances)) @ axes
        noisy = outputs[self.secret] + noise
        self.update(outputs, noisy, axes, variances)
        return noisy

    def update(self, outputs: FloatArray, noisy: FloatArray, axes: FloatArray, variances: FloatArray) -> None:
        noised = variances > 0
        distance = (noisy - outputs) @ axes[noised].T
        exponent = -0.5 * (distance**2 / variances[noised]).sum(axis=1)
        likelihood = np.exp(exponent - exponent.max())
        self.belief = self.belief * likelihood
        self.belief /= self.belief.sum()

    def answer(self, votes: npt.NDArray[np.int16], n_classes: int) -> int:
        """Release the secret model's one-hot label and decode it as the paper does."""
        return int(np.argmax(self.release(np.eye(n_classes)[votes])))
