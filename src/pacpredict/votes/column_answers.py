"""From encoded rows to columns: which rows go right at each distinct split; see column_kernel."""

from typing import Any

import numpy as np
import numpy.typing as npt

from pacpredict.core.compiled import compiled
from pacpredict.types import IntArray
from pacpredict.votes.tree_kernel import EncodedRows, UIntArray, lower_bound

Columns = npt.NDArray[Any]  # uint8 or uint64

_ONE, _ZERO = np.uint64(1), np.uint64(0)
_WORD_SHIFT, _BIT_MASK = np.uint64(6), np.uint64(63)


@compiled
def answer_numbers(
    block: EncodedRows, ranks: npt.NDArray[np.uint32], rank_starts: IntArray, columns: Columns
) -> None:
    """Let a row go right at the thresholds below it: at all of them before a place."""
    few = columns.itemsize == 1
    for c in range(len(rank_starts) - 1):
        start, end = rank_starts[c], rank_starts[c + 1]
        if start == end:
            continue
        for r in range(len(block)):
            bit = columns.dtype.type(_ONE << np.uint64(r))
            place = lower_bound(ranks, start, end, block[r, c])
            for s in range(start if few else max(start, place - 1), place):
                columns[s] |= bit
        if not few:  # with many rows it is faster to mark the last threshold of each and to go through all of them once
            rows = columns[end - 1]
            for s in range(end - 1, start - 1, -1):
                rows |= columns[s]
                columns[s] = rows


@compiled
def answer_sets(
    block: EncodedRows,
    sets: UIntArray,
    set_starts: IntArray,
    set_columns: IntArray,
    rows_of: UIntArray,
    columns: Columns,
) -> None:
    """Let rows go right at the sets that have their category; those with the same one go together."""
    for f in range(len(set_starts) - 1):
        first, n = set_columns[f], set_columns[f + 1] - set_columns[f]
        if n == 0:
            continue
        for r in range(len(block)):
            rows_of[block[r, f]] |= _ONE << np.uint64(r)
        for r in range(len(block)):
            code = np.uint64(block[r, f])
            rows = columns.dtype.type(rows_of[code])
            if rows == 0:  # an earlier row had the same category
                continue
            rows_of[code] = _ZERO
            start = set_starts[f] + np.int64(code >> _WORD_SHIFT) * n
            own, answers, bit = sets[start : start + n], columns[first : first + n], code & _BIT_MASK
            for s in range(n):
                answers[s] |= rows * columns.dtype.type((own[s] >> bit) & _ONE)
