"""The way through trees whose splits are columns: nothing is compared on it, every answer is there already.

Few splits are distinct: models that saw overlapping halves of one table cut it in the same places. Each distinct split
is a column of the rows that vote together, a word whose bit r says whether row r goes right. A node is 32 bits, so
that sixteen share a cache line:

    bits 18-31   distance from this node to its left child; the right child is next to it; 0 at a leaf
    bits 0-17    the column that is asked, or at a leaf `first_leaf` + the number of the leaf within its tree

Columns from `first_leaf` on are 0 throughout: whoever is at a leaf stays there, and no step asks whether it arrived.
Numbers, categories and missing values are all the same here. Few rows walk, in blocks of 8 whose columns are bytes that
stay in the nearest cache; many are swept through the trees, 64 at a time.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from pacpredict.core.compiled import compiled, compiled_into_callers
from pacpredict.types import FloatArray, IntArray, Votes
from pacpredict.votes.tree_kernel import BoolArray, EncodedRows, UIntArray, Values, choose, lower_bound

Columns = npt.NDArray[Any]  # uint8 or uint64
Words = npt.NDArray[np.uint32]
Order = npt.NDArray[np.uint16]

STEP_SHIFT, STEP_BITS = 18, 14
COLUMN_BITS = 18

# Trees that a row walks through together, so that the cache misses in one hide behind the steps in the others.
WALKERS = 16

# A byte numbers the leaf of a row in a sweep.
MOST_SWEPT_LEAVES = 256
MOST_SWEPT_NODES = 2 * MOST_SWEPT_LEAVES - 1

_ONE, _ZERO, _ALL = np.uint64(1), np.uint64(0), np.uint64(2**64 - 1)
_STEP_SHIFT, _COLUMN_MASK = np.uint32(STEP_SHIFT), np.uint32((1 << COLUMN_BITS) - 1)
_WORD_SHIFT, _BIT_MASK = np.uint64(6), np.uint64(63)

# To turn eight bits into eight bytes of 0 or 1: each byte gets all bits and keeps its own, which becomes its first.
_EACH, _OWN = np.uint64(0x0101010101010101), np.uint64(0x8040201008040201)
_ALMOST, _SEVEN, _BYTE = np.uint64(0x7F7F7F7F7F7F7F7F), np.uint64(7), np.uint64(0xFF)


@compiled
def vote(
    encoded: EncodedRows,
    ranks: npt.NDArray[np.uint32],
    rank_starts: IntArray,
    sets: UIntArray,
    set_starts: IntArray,
    set_columns: IntArray,
    words: Words,
    order: Order,
    sizes: IntArray,
    widths: IntArray | None,
    values: Values,
    roots: UIntArray,
    depths: IntArray,
    value_starts: IntArray,
    outputs: IntArray,
    tree_starts: IntArray,
    class_starts: IntArray,
    base: Values,
    labels: Votes,
    divisors: FloatArray,
    softmax: BoolArray,
    columns: Columns,
    rows_of: UIntArray,
    walkers: UIntArray | None,
    masks: UIntArray | None,
    leaves: UIntArray,
    sums: Values,
    votes: Votes,
) -> None:
    """Fill (n_rows, n_models) votes; a row's votes never depend on the rows beside it."""
    n_rows, n_models = votes.shape
    first_leaf = set_columns[-1]
    rows_at_once = 8 * columns.itemsize
    for first_row in range(0, n_rows, rows_at_once):
        size = min(rows_at_once, n_rows - first_row)
        block = encoded[first_row : first_row + size]
        columns[:first_leaf] = 0
        _answer_numbers(block, ranks, rank_starts, columns)
        _answer_sets(block, sets, set_starts, set_columns, rows_of, columns)
        for m in range(n_models):
            n_classes = class_starts[m + 1] - class_starts[m]
            for c in range(n_classes):
                for r in range(size):
                    sums[c, r] = base[class_starts[m] + c]
            first, end = tree_starts[m], tree_starts[m + 1]
            # What is None is not compiled.
            if walkers is not None:
                _walk(
                    columns,
                    words,
                    first_leaf,
                    first,
                    end,
                    roots,
                    depths,
                    values,
                    value_starts,
                    outputs,
                    widths,
                    size,
                    walkers,
                    sums,
                )
            if masks is not None:
                _sweep(
                    columns,
                    words,
                    order,
                    first,
                    end,
                    roots,
                    sizes,
                    values,
                    value_starts,
                    outputs,
                    widths,
                    size,
                    masks,
                    leaves,
                    sums,
                )
            for r in range(size):
                chosen = choose(sums, r, n_classes, divisors[m], softmax[m])
                votes[first_row + r, m] = labels[class_starts[m] + chosen]


@compiled
def _answer_numbers(
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
def _answer_sets(
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


@compiled
def _walk(
    columns: Columns,
    words: Words,
    first_leaf: int,
    first: int,
    end: int,
    roots: UIntArray,
    depths: IntArray,
    values: Values,
    value_starts: IntArray,
    outputs: IntArray,
    widths: IntArray | None,
    size: int,
    walkers: UIntArray,
    sums: Values,
) -> None:
    """Bring row after row from the roots of some trees to its leaves in them."""
    for some in range(np.uint64(first), np.uint64(end), np.uint64(WALKERS)):
        n = min(np.uint64(WALKERS), np.uint64(end) - some)
        for r in range(np.uint64(size)):
            depth = 0
            for i in range(n):
                walkers[i] = roots[some + i]
                depth = max(depth, depths[some + i])
            for _ in range(depth):
                for i in range(n):
                    word = words[walkers[i]]
                    right = (np.uint64(columns[word & _COLUMN_MASK]) >> r) & _ONE
                    walkers[i] += np.uint64(word >> _STEP_SHIFT) + right
            for i in range(n):
                leaf = np.uint64(words[walkers[i]] & _COLUMN_MASK) - np.uint64(first_leaf)
                _add(leaf, values, value_starts, outputs, widths, some + i, r, sums)


@compiled
def _sweep(
    columns: Columns,
    words: Words,
    order: Order,
    first: int,
    end: int,
    roots: UIntArray,
    sizes: IntArray,
    values: Values,
    value_starts: IntArray,
    outputs: IntArray,
    widths: IntArray | None,
    size: int,
    masks: UIntArray,
    leaves: UIntArray,
    sums: Values,
) -> None:
    """Divide all rows at every node, parents before children, until each is at its leaf."""
    numbers = leaves.view(np.uint8)
    for t in range(np.uint64(first), np.uint64(end)):
        n_inner = np.uint64(sizes[t]) >> _ONE
        masks[_ZERO] = _ALL >> np.uint64(64 - size)
        _divide(columns, words, order, roots[t], n_inner, masks)
        _number(order, roots[t] + n_inner, n_inner + _ONE, masks, leaves)
        for r in range(np.uint64(size)):
            _add(np.uint64(numbers[r]), values, value_starts, outputs, widths, t, r, sums)


@compiled_into_callers
def _divide(
    columns: Columns, words: Words, order: Order, root: np.uint64, n_inner: np.uint64, masks: UIntArray
) -> None:
    """Send the rows at each inner node to its children."""
    for j in range(n_inner):
        i = np.uint64(order[root + j])
        word, here = words[root + i], masks[i]
        right, left_child = np.uint64(columns[word & _COLUMN_MASK]), i + np.uint64(word >> _STEP_SHIFT)
        masks[left_child] = here & ~right
        masks[left_child + _ONE] = here & right


@compiled_into_callers
def _number(order: Order, first: np.uint64, n_leaves: np.uint64, masks: UIntArray, leaves: UIntArray) -> None:
    """Write the number of each row's leaf into its byte, one binary digit after the other."""
    own = masks[MOST_SWEPT_NODES:]
    for i in range(n_leaves):
        own[i] = masks[np.uint64(order[first + i])]
    leaves[:] = 0
    digit = _ZERO
    while (n_leaves - _ONE) >> digit != _ZERO:
        rows = _ZERO  # those whose leaf has this digit
        for i in range(n_leaves):
            rows |= own[i] & (_ZERO - ((i >> digit) & _ONE))
        for b in range(8):
            of_eight = (((rows >> np.uint64(8 * b)) & _BYTE) * _EACH) & _OWN
            leaves[b] |= (((of_eight + _ALMOST) >> _SEVEN) & _EACH) << digit
        digit += _ONE


@compiled_into_callers
def _add(
    leaf: np.uint64,
    values: Values,
    value_starts: IntArray,
    outputs: IntArray,
    widths: IntArray | None,
    t: np.uint64,
    r: np.uint64,
    sums: Values,
) -> None:
    """Add what the leaf of tree t says to the sums of row r; the order of trees decides the last bit."""
    start, output = np.uint64(value_starts[t]), np.uint64(outputs[t])
    if widths is None:
        sums[output, r] += values[start + leaf]
    else:
        width = np.uint64(widths[t])
        for j in range(width):
            sums[output + j, r] += values[start + leaf * width + j]
