"""Parts of some records to hold out in turn: whole units, so that nobody is both learned from and asked about."""

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from pacpredict.types import BoolArray, IntArray


def split_units(labels: IntArray, units: IntArray, n_folds: int, seed: int) -> list[BoolArray]:
    """Return, of each fold, which records are held out; classes are spread alike unless one is too rare for that.

    The class of a unit is that of its first record.
    """
    _, firsts, number = np.unique(units, return_index=True, return_inverse=True)
    classes = labels[firsts]
    kind = StratifiedKFold if np.unique(classes, return_counts=True)[1].min() >= n_folds else KFold
    folds = kind(n_folds, shuffle=True, random_state=seed).split(classes[:, None], classes)
    return [np.isin(number, held_out) for _, held_out in folds]
