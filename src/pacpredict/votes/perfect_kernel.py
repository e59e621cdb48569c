"""The way through trees that were filled up until they are perfect: of a node nothing is stored but what it asks.

Trees are filled up with nodes that send all rows to the left. Those of one model then have the same depth d, and each
takes 2^d cells of two arrays, which are all that is read on the way:

    asked[start + i]    the column that inner node i asks for; node 1 is the root, 2 i and 2 i + 1 are children of i
    values[start + j]   what leaf j says; the binary digits of j are the ways to the right, the first the highest

Few rows walk, in blocks of 8 whose columns are bytes. Many are swept through the trees, 64 at a time: of each level it
is found out at once which of them go right, and that is a digit of the leaves of all. Four trees are always done
together, so that the sum of a row is read and written once for four of its summands; models have whole fours of trees.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pacpredict.core.compiled import compiled, compiled_into_callers
from pacpredict.types import FloatArray, IntArray, Votes
from pacpredict.votes.column_answers import Columns
from pacpredict.votes.column_kernel import Splits, answer, choose_labels, spread
from pacpredict.votes.tree_kernel import BoolArray, EncodedRows, UIntArray, Values

Asked = npt.NDArray[np.uint16]

MOST_DEPTH = 8  # a byte numbers the leaf of a row in a sweep
SWEEP_SPACE = 1 << (MOST_DEPTH - 2)  # rows at each node of the level whose grandchildren are leaves
TOGETHER = 4  # trees

_ZERO, _ONE, _TWO, _THREE, _SEVEN, _EIGHT = (np.uint64(n) for n in (0, 1, 2, 3, 7, 8))
_SIXTEEN, _TWENTY_FOUR, _BYTE = np.uint64(16), np.uint64(24), np.uint64(0xFF)
# Numba's unsigned numbers; a type checker takes what a range gives for int.
Number = int | np.uint64
Four = tuple[Number, Number, Number, Number]

_NOBODY, _EVERYBODY = np.uint64(0), np.uint64(2**64 - 1)


class Perfect(NamedTuple):
    """The trees of all models; see PerfectTrees."""

    asked: Asked
    values: Values
    depths: IntArray
    starts: IntArray
    tree_starts: IntArray
    outputs: IntArray


class Space(NamedTuple):
    """Arrays for one block of rows after the other; `columns` and `rows_of` begin with zeros."""

    columns: Columns  # bytes for blocks of 8, words for blocks of 64
    rows_of: UIntArray  # by code of a category
    digits: UIntArray  # (MOST_DEPTH,) of the numbers of leaves, the highest first
    leaves: UIntArray  # (4 * 8,) a byte for each row of a sweep, of four trees
    sums: Values  # (n_classes, n_rows)


@compiled
def vote(
    encoded: EncodedRows,
    ranks: npt.NDArray[np.uint32],
    rank_starts: IntArray,
    sets: UIntArray,
    set_starts: IntArray,
    set_columns: IntArray,
    asked: Asked,
    values: Values,
    depths: IntArray,
    starts: IntArray,
    tree_starts: IntArray,
    outputs: IntArray,
    class_starts: IntArray,
    base: Values,
    labels: Votes,
    divisors: FloatArray,
    softmax: BoolArray,
    columns: Columns,
    rows_of: UIntArray,
    masks: UIntArray | None,
    digits: UIntArray,
    leaves: UIntArray,
    sums: Values,
    votes: Votes,
) -> None:
    """Fill (n_rows, n_models) votes; a row's votes never depend on the rows beside it."""
    splits = Splits(ranks, rank_starts, sets, set_starts, set_columns)
    trees = Perfect(asked, values, depths, starts, tree_starts, outputs)
    space = Space(columns, rows_of, digits, leaves, sums)
    rows_at_once = 8 * columns.itemsize
    for first_row in range(0, len(encoded), rows_at_once):
        block = encoded[first_row : first_row + rows_at_once]
        answer(block, splits, columns, rows_of)
        for m in range(votes.shape[1]):
            start = class_starts[m]
            for c in range(class_starts[m + 1] - start):
                sums[c, :rows_at_once] = base[
                    start + c
                ]  # of rows that are missing, too: sweeps add to whole eights
            if masks is None:  # known when this is compiled: one of the two is left out
                _walk(trees, m, len(block), space)
            else:
                _sweep(trees, m, len(block), space, masks)
            chosen = votes[first_row : first_row + len(block)]
            choose_labels(class_starts, labels, divisors, softmax, m, sums, chosen)


@compiled
def _walk(trees: Perfect, m: int, size: int, space: Space) -> None:
    """Bring row after row from root to leaf: while it waits for memory in one of four trees, it goes on in others."""
    columns, asked, depth = space.columns, trees.asked, np.uint64(trees.depths[m])
    n, t = _ONE << depth, np.uint64(trees.tree_starts[m])
    for s1 in range(np.uint64(trees.starts[m]), np.uint64(trees.starts[m + 1]), np.uint64(TOGETHER) * n):
        s2, s3, s4 = s1 + n, s1 + _TWO * n, s1 + _THREE * n
        outputs = _outputs_of(trees, t)
        is_one = _are_one(outputs)
        for r in range(np.uint64(size)):
            at1 = at2 = at3 = at4 = _ONE
            for _ in range(depth):
                at1 = _child(columns, asked, s1, at1, r)
                at2 = _child(columns, asked, s2, at2, r)
                at3 = _child(columns, asked, s3, at3, r)
                at4 = _child(columns, asked, s4, at4, r)
            places = s1 + at1 - n, s2 + at2 - n, s3 + at3 - n, s4 + at4 - n
            _add(places, trees.values, outputs, r, space.sums, is_one)
        t += np.uint64(TOGETHER)


@compiled_into_callers
def _child(columns: Columns, asked: Asked, start: Number, at: np.uint64, r: Number) -> np.uint64:
    return (at << _ONE) + ((np.uint64(columns[asked[start + at]]) >> r) & _ONE)


@compiled
def _sweep(trees: Perfect, m: int, size: int, space: Space, masks: UIntArray) -> None:
    """Divide all rows at every node, parents before children, and add what their leaves say."""
    depth, n_eights = np.uint64(trees.depths[m]), (np.uint64(size) + _SEVEN) >> _THREE
    n, t = _ONE << depth, np.uint64(trees.tree_starts[m])
    for s1 in range(np.uint64(trees.starts[m]), np.uint64(trees.starts[m + 1]), np.uint64(TOGETHER) * n):
        s2, s3, s4 = s1 + n, s1 + _TWO * n, s1 + _THREE * n
        _find(trees.asked, s1, depth, n_eights, space, masks, _ZERO)
        _find(trees.asked, s2, depth, n_eights, space, masks, _EIGHT)
        _find(trees.asked, s3, depth, n_eights, space, masks, _SIXTEEN)
        _find(trees.asked, s4, depth, n_eights, space, masks, _TWENTY_FOUR)
        outputs = _outputs_of(trees, t)
        if _are_one(outputs):  # asked here, and not for every row
            _add_eights(space, trees.values, (s1, s2, s3, s4), outputs, n_eights, True)
        else:
            _add_eights(space, trees.values, (s1, s2, s3, s4), outputs, n_eights, False)
        t += np.uint64(TOGETHER)


@compiled_into_callers
def _add_eights(
    space: Space, values: Values, starts: Four, outputs: Four, n_eights: Number, is_one: bool
) -> None:
    """Add what the leaves of four trees say to the sums of all rows, whose numbers come eight in a word."""
    leaves, (s1, s2, s3, s4) = space.leaves, starts
    for b in range(n_eights):
        w1, w2, w3, w4 = leaves[b], leaves[b + _EIGHT], leaves[b + _SIXTEEN], leaves[b + _TWENTY_FOUR]
        for i in range(8):
            places = s1 + (w1 & _BYTE), s2 + (w2 & _BYTE), s3 + (w3 & _BYTE), s4 + (w4 & _BYTE)
            _add(places, values, outputs, (b << _THREE) + np.uint64(i), space.sums, is_one)
            w1, w2, w3, w4 = w1 >> _EIGHT, w2 >> _EIGHT, w3 >> _EIGHT, w4 >> _EIGHT


@compiled_into_callers
def _find(
    asked: Asked,
    start: Number,
    depth: np.uint64,
    n_eights: Number,
    space: Space,
    masks: UIntArray,
    first: Number,
) -> None:
    """Write the numbers of all rows' leaves in one tree into bytes, from word `first` on."""
    _find_digits(space.columns, asked, start, depth, masks, space.digits)
    for b in range(n_eights):
        numbers = _ZERO
        for level in range(depth):
            numbers = (numbers << _ONE) | spread(space.digits[level], b, 0)
        space.leaves[first + b] = numbers


@compiled_into_callers
def _find_digits(
    columns: Columns,
    asked: Asked,
    start: Number,
    depth: np.uint64,
    masks: UIntArray,
    digits: UIntArray,
) -> None:
    """Find out which rows go right at each level: two levels at a time, after the first if their number is odd."""
    n, level = _ONE, depth & _ONE  # masks of the nodes at this level are filled in
    masks[_ZERO] = _EVERYBODY
    if level:
        right = columns[asked[start + _ONE]]
        masks[_ZERO], masks[_ONE], digits[_ZERO] = ~right, right, right
        n = _TWO
    while level + _TWO < depth:
        upper = lower = _NOBODY
        for back in range(n):  # from the last node on: four grandchildren take the place of nodes behind it
            node = n - _ONE - back
            left, right, left_right, right_right = _split(columns, asked, start, n + node, masks[node])
            at = node << _TWO
            masks[at], masks[at + _ONE] = left ^ left_right, left_right
            masks[at + _TWO], masks[at + _THREE] = right ^ right_right, right_right
            upper, lower = upper | right, lower | left_right | right_right
        digits[level], digits[level + _ONE] = upper, lower
        n, level = n << _TWO, level + _TWO
    if level < depth:  # the last two: nobody asks who is at which leaf
        upper = lower = _NOBODY
        for i in range(n):
            _, right, left_right, right_right = _split(columns, asked, start, n + i, masks[i])
            upper, lower = upper | right, lower | left_right | right_right
        digits[level], digits[level + _ONE] = upper, lower


@compiled_into_callers
def _split(columns: Columns, asked: Asked, start: Number, node: Number, here: Number) -> Four:
    """Return who goes left and right at a node, and who of either goes right below it."""
    right = here & columns[asked[start + node]]
    left, below = here ^ right, start + (node << _ONE)
    return left, right, left & columns[asked[below]], right & columns[asked[below + _ONE]]


@compiled_into_callers
def _outputs_of(trees: Perfect, t: Number) -> Four:
    """Return the classes that four trees count for."""
    o1, o2, o3, o4 = (
        trees.outputs[t],
        trees.outputs[t + _ONE],
        trees.outputs[t + _TWO],
        trees.outputs[t + _THREE],
    )
    return np.uint64(o1), np.uint64(o2), np.uint64(o3), np.uint64(o4)


@compiled_into_callers
def _are_one(outputs: Four) -> bool:
    o1, o2, o3, o4 = outputs
    return (o1 == o2) & (o2 == o3) & (o3 == o4)


@compiled_into_callers
def _add(places: Four, values: Values, outputs: Four, r: Number, sums: Values, is_one: bool) -> None:
    """Add what the leaves of four trees say to the sums of a row, one after the other: order decides the last bit."""
    (p1, p2, p3, p4), (o1, o2, o3, o4) = places, outputs
    if is_one:  # with two classes always
        sums[o1, r] = sums[o1, r] + values[p1] + values[p2] + values[p3] + values[p4]
    else:
        sums[o1, r] += values[p1]
        sums[o2, r] += values[p2]
        sums[o3, r] += values[p3]
        sums[o4, r] += values[p4]
