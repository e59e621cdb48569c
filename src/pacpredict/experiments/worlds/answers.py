"""What a client sees: for each decoder at a tiny step, the probability that an answer is a given label."""

from typing import Literal

import numpy as np

from pacpredict.experiments.worlds.explain import Counts, own_and_best_other
from pacpredict.types import BoolArray, FloatArray, IntArray

Decoder = Literal["map", "sample", "argmax"]
DECODERS: tuple[Decoder, ...] = ("map", "sample", "argmax")
_N_DRAWS = 16  # by which `argmax` among three or more classes is estimated


def label_probability(counts: Counts, labels: IntArray, decoder: Decoder) -> FloatArray:
    """Return how probably the answer to each query is a given label, as the step budget tends to 0.

    `map` answers with the plurality, and a coin decides ties; `sample` draws from the votes; `argmax` follows noise
    that has the covariance of the votes, whichever model is the secret.
    """
    own, other = own_and_best_other(counts, labels)
    if decoder == "map":
        return np.asarray(np.where(own == other, 0.5, own > other), np.float64)
    if decoder == "sample":
        return np.asarray(own / counts.sum(axis=1))
    n_voted = (counts > 0).sum(axis=1)
    found = np.asarray(np.where(n_voted == 1, own > 0, np.where(own > 0, 0.5, 0.0)), np.float64)
    many = np.flatnonzero((n_voted > 2) & (own > 0))
    if many.size:
        found[many] = _draw_noise(counts[many], labels[many])
    return found


def is_charged(counts: Counts) -> BoolArray:
    return np.asarray((counts > 0).sum(axis=1) > 1)


def _draw_noise(counts: Counts, labels: IntArray) -> FloatArray:
    """Estimate how often the noise of a release is largest in the direction of a label (theory.md, 3: eigenbasis)."""
    rng, found = np.random.default_rng(0), np.empty(len(counts))
    for some in np.array_split(np.arange(len(counts)), len(counts) // 10_000 + 1):
        share = counts[some] / counts[some].sum(axis=1, keepdims=True)
        covariance = (
            np.einsum("qi,ij->qij", share, np.eye(share.shape[1])) - share[:, :, None] * share[:, None, :]
        )
        variances, axes = np.linalg.eigh(covariance)
        deviations = np.maximum(variances, 0.0) ** 0.25  # the noise has variances in proportion to the roots
        normals = rng.standard_normal((_N_DRAWS, *deviations.shape)) * deviations
        noise = np.einsum("qij,dqj->dqi", axes, normals)
        noise[:, counts[some] == 0] = -np.inf
        found[some] = (noise.argmax(axis=2) == labels[some]).mean(axis=0)
    return found
