"""From a noisy release to a label: post-processing, covered by the theorem at no further cost (theory.md, 2).

`argmax` is the paper's decoder. `map` picks the most probable label given the release and the public
belief. As the budget shrinks, its answer tends to the belief-weighted vote of all m models: a function of
the pool, about which the theorem says nothing (docs/threat-model.md).
"""

import math
from typing import Literal

import numpy as np

from pacpredict.core.calibrate import Noise
from pacpredict.core.validate import FloatArray, Votes
from pacpredict.exceptions import InvalidInput, InvalidProbability

Decoder = Literal["argmax", "map"]
DECODERS: tuple[Decoder, ...] = ("argmax", "map")


def check_decoder(decoder: str) -> int:
    """Return the decoder's row in the tables of labels that the release kernels write."""
    for row, name in enumerate(DECODERS):
        if decoder == name:
            return row
    raise InvalidInput(f"decode must be one of {', '.join(DECODERS)}, got {decoder!r}")


def confidence(noise: Noise, votes: Votes, noisy: FloatArray, label: int) -> float:
    """Compute min_j T_j(r) of Proposition 5.1 from noisy coordinates: how clearly `label` beats every rival.

    The noise of label votes is singular. The statistic is then the limit of a vanishing extra noise: a class
    that nobody votes for has no noise that could have hidden it and is excluded, and where all models agree
    the label is certain (infinity).
    """
    rivals = np.setdiff1d(votes, [label])
    at = {int(c): noise.coordinates[int(np.flatnonzero(votes == c)[0])] for c in np.unique(votes)}
    if label not in at:
        return -math.inf
    statistics = [_statistic(at[label], at[int(j)], noisy, noise.variances) for j in rivals]
    return min(statistics, default=math.inf)


def _statistic(label: FloatArray, rival: FloatArray, observed: FloatArray, variances: FloatArray) -> float:
    direction = (label - rival) / variances
    length = math.sqrt(direction @ (label - rival))
    return float(direction @ (observed - rival) / length) if length else -math.inf  # nothing tells them apart


def is_confident(statistic: float, alpha: float, *, n_rivals: int = 1) -> bool:
    """Decide whether a label passes the test of Proposition 5.1 at level alpha.

    With `n_rivals=1` this is the paper's test. Its proof treats the label as fixed, but the label is chosen
    by looking at the release; with three or more voted classes a wrong label can pass more often than
    alpha (docs/theory.md, 7, has a counterexample). Give the number of voted classes less one
    to divide alpha among the rivals, which holds always.
    """
    from scipy.special import ndtri  # noqa: PLC0415  # imported here: only distillation needs it

    if not 0 < alpha < 1:
        raise InvalidProbability(f"alpha must lie strictly between 0 and 1, got {alpha!r}")
    return bool(statistic >= -ndtri(alpha / max(n_rivals, 1)))
