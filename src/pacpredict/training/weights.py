"""What each record counts in training."""

from typing import Any

import numpy as np

from pacpredict.exceptions import InvalidTable
from pacpredict.types import BoolArray, FloatArray


def check_weights(weights: Any, n_records: int, *, zero: bool = False) -> FloatArray:
    """Return one positive number for each record; with `zero` some may be 0: those records are left out.

    A record of weight 0 is in no pool. It would be protected there, and would learn nothing.
    """
    try:
        checked = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise InvalidTable(f"weights of records must be numbers ({problem})") from problem
    if checked.shape != (n_records,):
        raise InvalidTable(
            f"weights must be one number for each of {n_records} records, got the shape {checked.shape}"
        )
    allowed = np.isfinite(checked) & ((checked >= 0) if zero else (checked > 0))
    if not allowed.all():
        row = int(np.argmin(allowed))
        raise InvalidTable(
            f"the weight of row {row} (from 0) is {checked[row]}; a weight must be positive and finite"
        )
    if not checked.any():
        raise InvalidTable("all weights are zero: no record counts")
    return checked


def where(kept: BoolArray, part: Any) -> Any:
    """Take some records, or their labels, of whatever kind these are."""
    if isinstance(part, list | tuple):
        return [one for one, is_kept in zip(part, kept, strict=True) if is_kept]
    return part[kept]
