"""How much of a target one column tells by itself."""

import numpy as np

from pacpredict.types import FloatArray, IntArray

# Quantities are cut into this many parts of equal size: enough to see a threshold, few enough to be well filled.
_PARTS = 20


def share_explained(cells: IntArray, labels: IntArray) -> float:
    """Return the share of the labels' entropy that knowing each record's cell explains, from 0 to 1.

    This is mutual information over entropy, less what chance alone would show (Miller and Madow's correction), so that
    a column with a different value in each record does not explain everything.
    """
    n_labels = int(labels.max()) + 1
    counts = np.bincount(cells * n_labels + labels, minlength=(int(cells.max()) + 1) * n_labels)
    joint = counts.reshape(-1, n_labels) / len(labels)
    of_labels, of_cells = joint.sum(axis=0), joint.sum(axis=1)
    by_chance = (np.count_nonzero(of_cells) - 1) * (np.count_nonzero(of_labels) - 1) / (2 * len(labels))
    information = _entropy(of_labels) + _entropy(of_cells) - _entropy(joint) - by_chance
    return float(np.clip(information / _entropy(of_labels), 0.0, 1.0))


def cells_of_numbers(numbers: FloatArray) -> IntArray:
    """Return the part of equal size that each quantity falls into; a missing one has a part of its own."""
    known = numbers[~np.isnan(numbers)]
    edges = np.unique(np.quantile(known, np.arange(1, _PARTS) / _PARTS))
    return np.where(np.isnan(numbers), 0, 1 + np.searchsorted(edges, numbers, side="right"))


def _entropy(shares: FloatArray) -> float:
    present = shares[shares > 0]
    return float(-(present * np.log(present)).sum())
