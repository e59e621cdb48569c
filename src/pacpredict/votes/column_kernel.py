"""The way through trees whose splits are columns: nothing is compared on it, every answer is there already.

Few splits are distinct: models that saw overlapping halves of one table cut it in the same places. Each distinct split
is a column of the rows that vote together, a word whose bit r says whether row r goes right. A node is 32 bits, so
that sixteen share a cache line:

    bits 18-31   distance from this node to its left child; the right child is next to it; 0 at a leaf
    bits 0-17    the column that is asked, or at a leaf `first_leaf` + the number of the leaf within its tree

Columns from `first_leaf` on are 0 throughout: whoever is at a leaf stays there, and no step asks whether it arrived.
Numbers, categories and missing values are all the same here. Few rows walk, in blocks of 8 whose columns are bytes that
stay in the nearest cache; many are swept through the trees, 64 at a time. Nobody is swept through leaves, so that a
sweep has words of its own, 64 bits for each inner node:

    bits 27-63   place of the right child; inner nodes of a tree have the first places, from 0, and leaves those behind
    bits 18-26   place of the left child
    bits 0-17    the column that is asked
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pacpredict.core.compiled import compiled, compiled_into_callers
from pacpredict.types import FloatArray, IntArray, Votes
from pacpredict.votes.column_answers import Columns, answer_numbers, answer_sets
from pacpredict.votes.tree_kernel import BoolArray, EncodedRows, Models, UIntArray, Values, choose

Words = npt.NDArray[np.uint32]

STEP_SHIFT, STEP_BITS = 18, 14
COLUMN_BITS = 18
LEFT_SHIFT, PLACE_BITS = COLUMN_BITS, 9
RIGHT_SHIFT = LEFT_SHIFT + PLACE_BITS

# A byte numbers the leaf of a row in a sweep.
MOST_SWEPT_LEAVES = 256
MOST_SWEPT_NODES = 2 * MOST_SWEPT_LEAVES - 1
SWEEP_SPACE = MOST_SWEPT_NODES + 7  # leaves are numbered in whole eights

_ONE, _ZERO, _ALL = np.uint64(1), np.uint64(0), np.uint64(2**64 - 1)
_STEP_SHIFT, _COLUMN_MASK = np.uint32(STEP_SHIFT), np.uint32((1 << COLUMN_BITS) - 1)
_ASKED_MASK, _PLACE_MASK = np.uint64((1 << COLUMN_BITS) - 1), np.uint64((1 << PLACE_BITS) - 1)
_LEFT_SHIFT, _RIGHT_SHIFT = np.uint64(LEFT_SHIFT), np.uint64(RIGHT_SHIFT)
_TWO, _THREE, _FOUR, _FIVE, _SIX, _SEVEN = (np.uint64(n) for n in range(2, 8))
_SIXTEEN, _BYTE = np.uint64(16), np.uint64(0xFF)

# Of every byte, its eight bits as eight bytes of 0 or 1.
_SPREAD = np.unpackbits(np.arange(256, dtype=np.uint8), bitorder="little").view(np.uint64)


class Splits(NamedTuple):
    """What is asked of a row; see SplitColumns."""

    ranks: npt.NDArray[np.uint32]
    rank_starts: IntArray
    sets: UIntArray
    set_starts: IntArray
    set_columns: IntArray


class Nodes(NamedTuple):
    """The nodes of all trees; see SplitColumns."""

    words: Words
    swept: UIntArray
    swept_starts: IntArray


class Space(NamedTuple):
    """Arrays for one block of rows after the other; `columns` and `rows_of` begin with zeros."""

    columns: Columns  # bytes for blocks of 8, words for blocks of 64
    rows_of: UIntArray  # by code of a category
    leaves: UIntArray  # (8,) a byte for each row of a sweep
    sums: Values  # (n_classes, n_rows)


@compiled
def vote(
    encoded: EncodedRows,
    ranks: npt.NDArray[np.uint32],
    rank_starts: IntArray,
    sets: UIntArray,
    set_starts: IntArray,
    set_columns: IntArray,
    words: Words,
    swept: UIntArray,
    swept_starts: IntArray,
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
    masks: UIntArray | None,
    leaves: UIntArray,
    sums: Values,
    votes: Votes,
) -> None:
    """Fill (n_rows, n_models) votes; a row's votes never depend on the rows beside it.

    Tuples are made here: Numba takes microseconds to look at one that a caller gives, and no time to make one.
    """
    splits = Splits(ranks, rank_starts, sets, set_starts, set_columns)
    nodes = Nodes(words, swept, swept_starts)
    trees = values, roots, depths, value_starts, outputs
    models = Models(*trees, tree_starts, class_starts, base, labels, divisors, softmax)
    space = Space(columns, rows_of, leaves, sums)
    rows_at_once = 8 * columns.itemsize
    for first_row in range(0, len(encoded), rows_at_once):
        block = encoded[first_row : first_row + rows_at_once]
        answer(block, splits, columns, rows_of)
        for m in range(votes.shape[1]):
            _add_up(nodes, models, widths, m, len(block), set_columns[-1], space, masks)
            chosen = votes[first_row : first_row + len(block)]
            choose_labels(class_starts, labels, divisors, softmax, m, sums, chosen)


@compiled_into_callers
def answer(block: EncodedRows, splits: Splits, columns: Columns, rows_of: UIntArray) -> None:
    """Compute all columns of a block of rows."""
    columns[: splits.set_columns[-1]] = 0
    answer_numbers(block, splits.ranks, splits.rank_starts, columns)
    answer_sets(block, splits.sets, splits.set_starts, splits.set_columns, rows_of, columns)


@compiled_into_callers
def _add_up(
    nodes: Nodes,
    models: Models,
    widths: IntArray | None,
    m: int,
    size: int,
    first_leaf: int,
    space: Space,
    masks: UIntArray | None,
) -> None:
    """Compute the scores that model m gives to each of a block of rows."""
    start = models.class_starts[m]
    for c in range(models.class_starts[m + 1] - start):
        for r in range(size):
            space.sums[c, r] = models.base[start + c]
    if masks is None:  # known when this is compiled: one of the two is left out
        _walk(nodes, models, widths, m, size, first_leaf, space)
    else:
        _sweep(nodes, models, widths, m, size, space, masks)


@compiled_into_callers
def choose_labels(
    class_starts: IntArray,
    labels: Votes,
    divisors: FloatArray,
    softmax: BoolArray,
    m: int,
    sums: Values,
    votes: Votes,
) -> None:
    """Write the votes of model m, by its scores."""
    start = class_starts[m]
    n_classes = class_starts[m + 1] - start
    for r in range(len(votes)):
        votes[r, m] = labels[start + choose(sums, r, n_classes, divisors[m], softmax[m])]


@compiled
def _walk(
    nodes: Nodes,
    models: Models,
    widths: IntArray | None,
    m: int,
    size: int,
    first_leaf: int,
    space: Space,
) -> None:
    """Bring row after row from root to leaf, in four trees at a time: while one waits for memory, others go on."""
    columns, words, roots, depths = space.columns, nodes.words, models.roots, models.depths
    first, end = np.uint64(models.tree_starts[m]), np.uint64(models.tree_starts[m + 1])
    last = end - _ONE
    for t1 in range(first, end, np.uint64(4)):
        t2, t3, t4 = min(t1 + _ONE, last), min(t1 + np.uint64(2), last), min(t1 + np.uint64(3), last)
        depth = max(depths[t1], depths[t2], depths[t3], depths[t4])
        for r in range(np.uint64(size)):
            at1, at2, at3, at4 = roots[t1], roots[t2], roots[t3], roots[t4]
            for _ in range(depth):
                at1 += _step(columns, words, at1, r)
                at2 += _step(columns, words, at2, r)
                at3 += _step(columns, words, at3, r)
                at4 += _step(columns, words, at4, r)
            _add(_leaf(words, at1, first_leaf), models, widths, t1, r, space.sums)
            if t2 > t1:
                _add(_leaf(words, at2, first_leaf), models, widths, t2, r, space.sums)
            if t3 > t2:
                _add(_leaf(words, at3, first_leaf), models, widths, t3, r, space.sums)
            if t4 > t3:
                _add(_leaf(words, at4, first_leaf), models, widths, t4, r, space.sums)


@compiled_into_callers
def _step(columns: Columns, words: Words, at: np.uint64, r: int) -> np.uint64:
    """Return how far the child is that row r goes to: 0 at a leaf."""
    word = words[at]
    right = (np.uint64(columns[word & _COLUMN_MASK]) >> np.uint64(r)) & _ONE
    return np.uint64(word >> _STEP_SHIFT) + right


@compiled_into_callers
def _leaf(words: Words, at: np.uint64, first_leaf: int) -> np.uint64:
    return np.uint64(words[at] & _COLUMN_MASK) - np.uint64(first_leaf)


@compiled
def _sweep(
    nodes: Nodes,
    models: Models,
    widths: IntArray | None,
    m: int,
    size: int,
    space: Space,
    masks: UIntArray,
) -> None:
    """Divide all rows at every node, parents before children, until each is at its leaf."""
    leaves, n_rows = space.leaves, np.uint64(size)
    numbers = leaves.view(np.uint8)
    for t in range(np.uint64(models.tree_starts[m]), np.uint64(models.tree_starts[m + 1])):
        first, end = np.uint64(nodes.swept_starts[t]), np.uint64(nodes.swept_starts[t + _ONE])
        masks[_ZERO] = _ALL >> (np.uint64(64) - n_rows)
        _divide(space.columns, nodes.swept, first, end - first, masks)
        _number(masks, end - first, n_rows, leaves)
        if widths is None:
            _add_each(numbers, models, t, n_rows, space.sums)
        else:
            for r in range(n_rows):
                _add(np.uint64(numbers[r]), models, widths, t, r, space.sums)


@compiled_into_callers
def _divide(
    columns: Columns, swept: UIntArray, first: np.uint64, n_inner: np.uint64, masks: UIntArray
) -> None:
    """Send the rows at each inner node to its children."""
    for j in range(n_inner):
        word, here = swept[first + j], masks[j]
        right = np.uint64(columns[word & _ASKED_MASK])
        masks[(word >> _LEFT_SHIFT) & _PLACE_MASK] = here & ~right
        masks[word >> _RIGHT_SHIFT] = here & right


@compiled_into_callers
def _number(masks: UIntArray, n_inner: np.uint64, n_rows: np.uint64, leaves: UIntArray) -> None:
    """Write the number of each row's leaf into its byte.

    Loops whose ends depend on the tree would cost more than what they do, so they are written out.
    """
    d0, d1, d2, d3, d4, d5, d6, d7 = _find_digits(masks, n_inner)
    for b in range((n_rows + _SEVEN) >> _THREE):
        leaves[b] = _spread(d0, b, 0) | _spread(d1, b, 1) | _spread(d2, b, 2) | _spread(d3, b, 3)
    if n_inner >= _SIXTEEN:
        for b in range((n_rows + _SEVEN) >> _THREE):
            leaves[b] |= _spread(d4, b, 4) | _spread(d5, b, 5) | _spread(d6, b, 6) | _spread(d7, b, 7)


@compiled_into_callers
def _spread(rows: np.uint64, b: int | np.uint64, digit: int) -> np.uint64:
    """Give eight rows a byte each, with this digit where they have it."""
    return _SPREAD[(rows >> (b << _THREE)) & _BYTE] << np.uint64(digit)


@compiled_into_callers
def _find_digits(masks: UIntArray, n_inner: np.uint64) -> tuple[np.uint64, ...]:
    """Return the rows whose leaf has each binary digit in its number."""
    for i in range(_SEVEN):  # as if there were leaves in whole eights
        masks[_TWO * n_inner + _ONE + i] = _ZERO
    d0 = d1 = d2 = d3 = d4 = d5 = d6 = d7 = _ZERO
    for eight in range((n_inner >> _THREE) + _ONE):
        at = n_inner + (eight << _THREE)
        m1, m2, m3, m4 = masks[at + _ONE], masks[at + _TWO], masks[at + _THREE], masks[at + _FOUR]
        m5, m6, m7 = masks[at + _FIVE], masks[at + _SIX], masks[at + _SEVEN]
        high = m4 | m5 | m6 | m7
        any_of = masks[at] | m1 | m2 | m3 | high
        d0 |= m1 | m3 | m5 | m7
        d1 |= m2 | m3 | m6 | m7
        d2 |= high
        d3 |= any_of & (_ZERO - (eight & _ONE))
        d4 |= any_of & (_ZERO - ((eight >> _ONE) & _ONE))
        d5 |= any_of & (_ZERO - ((eight >> _TWO) & _ONE))
        d6 |= any_of & (_ZERO - ((eight >> _THREE) & _ONE))
        d7 |= any_of & (_ZERO - ((eight >> _FOUR) & _ONE))
    return d0, d1, d2, d3, d4, d5, d6, d7


@compiled_into_callers
def _add_each(
    numbers: npt.NDArray[np.uint8], models: Models, t: int | np.uint64, n_rows: np.uint64, sums: Values
) -> None:
    """Add what the leaf of each row says, one number, to its sum."""
    start, own = np.uint64(models.value_starts[t]), sums[np.uint64(models.outputs[t])]
    for r in range(n_rows):
        own[r] += models.values[start + np.uint64(numbers[r])]


@compiled_into_callers
def _add(
    leaf: np.uint64, models: Models, widths: IntArray | None, t: int | np.uint64, r: int, sums: Values
) -> None:
    """Add what the leaf of tree t says to the sums of row r; the order of trees decides the last bit."""
    start, output = np.uint64(models.value_starts[t]), np.uint64(models.outputs[t])
    if widths is None:
        sums[output, r] += models.values[start + leaf]
    else:
        width = np.uint64(widths[t])
        for j in range(width):
            sums[output + j, r] += models.values[start + leaf * width + j]
