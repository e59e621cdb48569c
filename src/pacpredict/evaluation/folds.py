"""Parts of a pool to ask about, while the others are trained on: nobody is in both."""

from pacpredict.exceptions import InvalidInput
from pacpredict.learners.folds import split_units
from pacpredict.training.pool import Pool
from pacpredict.types import BoolArray


def split(pool: Pool, n_folds: int, seed: int) -> list[BoolArray]:
    """Return, of each fold, which records are held out."""
    if not 2 <= n_folds <= pool.units.count:
        raise InvalidInput(f"there must be from 2 to {pool.units.count} folds, got {n_folds}")
    return split_units(pool.labels, pool.units.of_record, n_folds, seed % 2**32)
