"""The subsets that the m models are trained on (section 4.2.1 of the paper)."""

import numpy as np
import numpy.typing as npt

from pacpredict.core.scalars import check_model_count
from pacpredict.exceptions import InvalidSubsets

# Records assigned at a time: 128 models times this many stay within a few MiB.
_RECORDS_PER_BLOCK = 65_536


def balanced(n_models: int, n_records: int, generator: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Put each record into a random half of the subsets, exactly; returns membership (n_models, n_records).

    Given the subsets, every record is in the secret one with probability 1/2, whatever else is known: the prior of
    membership inference is 1/2 for everyone.
    """
    check_model_count(n_models)
    if n_records < 1:
        raise InvalidSubsets(f"there must be at least one record, got {n_records}")
    membership = np.empty((n_models, n_records), dtype=np.bool_)
    half = np.arange(n_models) < n_models // 2
    for start in range(0, n_records, _RECORDS_PER_BLOCK):
        size = min(_RECORDS_PER_BLOCK, n_records - start)
        block = np.broadcast_to(half, (size, n_models))
        membership[:, start : start + size] = generator.permuted(block, axis=1).T
    return membership
