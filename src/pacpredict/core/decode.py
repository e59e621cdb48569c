"""How a release becomes a label.

With Gaussian noise decoding is post-processing, covered by the theorem at no further cost (theory.md, 2). `argmax` is
the paper's decoder. `map` picks the most probable label given the release and the public belief. As the budget
shrinks, its answer tends to the belief-weighted vote of all m models: a function of the pool, about which the theorem
says nothing (docs/threat-model.md). `sample` releases a label to begin with, through a finite channel.
"""

import math
from typing import Literal, NamedTuple

import numpy as np

from pacpredict.core.calibrate import Noise
from pacpredict.exceptions import InvalidInput, InvalidProbability
from pacpredict.types import FloatArray, Votes

Decoder = Literal["argmax", "map", "sample"]
Mechanism = Literal["gaussian", "channel"]

# The labels that a release of each mechanism has, in the order in which the kernels write them.
DECODERS_OF: dict[Mechanism, tuple[Decoder, ...]] = {"gaussian": ("argmax", "map"), "channel": ("sample",)}
DECODERS: tuple[Decoder, ...] = tuple(name for names in DECODERS_OF.values() for name in names)


def check_decoder(decoder: str) -> tuple[Mechanism, int]:
    """Return the mechanism of a decoder, and its row in the tables of labels that the release kernels write."""
    for mechanism, names in DECODERS_OF.items():
        for row, name in enumerate(names):
            if decoder == name:
                return mechanism, row
    raise InvalidInput(f"decode must be one of {', '.join(DECODERS)}, got {decoder!r}")


class Confidence(NamedTuple):
    """How clearly a label beats its rivals: the smallest statistic of Proposition 5.1, and of how many rivals."""

    statistic: float
    n_rivals: int


def confidence(noise: Noise, votes: Votes, noisy: FloatArray, label: int) -> Confidence:
    """Compute min_j T_j(r) of Proposition 5.1 from noisy coordinates: how clearly `label` beats every rival.

    The noise of label votes is singular. The statistic is then the limit of a vanishing extra noise: a class
    that nobody votes for has no noise that could have hidden it and is excluded, and where all models agree
    the label is certain (infinity).
    """
    rivals = np.setdiff1d(votes, [label])
    at = {int(c): noise.coordinates[int(np.flatnonzero(votes == c)[0])] for c in np.unique(votes)}
    if label not in at:
        return Confidence(-math.inf, rivals.size)
    statistics = [_statistic(at[label], at[int(j)], noisy, noise.variances) for j in rivals]
    return Confidence(min(statistics, default=math.inf), rivals.size)


def _statistic(label: FloatArray, rival: FloatArray, observed: FloatArray, variances: FloatArray) -> float:
    direction = (label - rival) / variances
    length = math.sqrt(direction @ (label - rival))
    return float(direction @ (observed - rival) / length) if length else -math.inf  # nothing tells them apart


def is_confident(found: Confidence, alpha: float, *, corrected: bool = True) -> bool:
    """Decide whether a label passes the test of Proposition 5.1: a wrong one does with probability alpha at most.

    `corrected=False` is the paper's own test. Its proof treats the label as fixed, but the label is chosen by
    looking at the release; with three or more voted classes a wrong label can then pass more often than alpha
    (docs/theory.md, 7, has a counterexample). So alpha is divided among the rivals.
    """
    from scipy.special import ndtri  # noqa: PLC0415  # imported here: only distillation needs it

    if not 0 < alpha < 1:
        raise InvalidProbability(f"alpha must lie strictly between 0 and 1, got {alpha!r}")
    shares = max(found.n_rivals, 1) if corrected else 1
    return bool(found.statistic >= -ndtri(alpha / shares))
