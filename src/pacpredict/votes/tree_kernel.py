"""The walk through packed trees: one kernel for every library whose trees we can pack.

A node is one 64-bit word, so that a step costs one load and eight nodes share a cache line:

    bit 63       the split is a set of categories, not a threshold
    bits 41-62   distance from this node to its left child; the right child is next to it; 0 at a leaf
    bits 28-40   column of the encoded row that is compared
    bits 0-27    rank of the threshold, or first word of the set, or LEAF + number of the leaf within its tree

Rows are encoded before the walk: a number becomes its rank among all thresholds of its feature, so the comparison is
one of integers and exactly that of the library whatever its precision; a category becomes its place among the known.
A leaf compares as a threshold above every rank: whoever is there stays there, and no step asks whether it arrived.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pacpredict.core.compiled import compiled
from pacpredict.types import FloatArray, IntArray, Votes

BoolArray = npt.NDArray[np.bool_]
UIntArray = npt.NDArray[np.uint64]
EncodedRows = npt.NDArray[np.uint32]
Values = npt.NDArray[Any]  # float32 or float64: sums have the precision of the library


class Models(NamedTuple):
    """What the models are that vote, tree after tree and class after class; see PackedTrees."""

    values: Values
    roots: UIntArray
    depths: IntArray
    value_starts: IntArray
    outputs: IntArray
    tree_starts: IntArray
    class_starts: IntArray
    base: Values
    labels: Votes
    divisors: FloatArray
    softmax: BoolArray


STEP_SHIFT, STEP_BITS = 41, 22
COLUMN_SHIFT, COLUMN_BITS = 28, 13
RANK_BITS = 28
LEAF = 1 << 27

# Walkers that advance together, so that the cache misses of one hide behind the steps of the others: the trees of a
# model for a single row, the rows of a block for a single tree, or anything between.
WALKERS = 128
ROWS_PER_BLOCK = WALKERS

# Margins this close may be equal as float32 probabilities; 2^-22 is the widest such gap, the rest is caution.
_NEAR_TIE = 2.0**-18

# Numba turns signed and unsigned operands into floats, and looks for negative indices: all words are unsigned.
_ONE, _ZERO = np.uint64(1), np.uint64(0)
_SET_SHIFT, _STEP_SHIFT, _COLUMN_SHIFT = np.uint64(63), np.uint64(STEP_SHIFT), np.uint64(COLUMN_SHIFT)
_STEP_MASK = np.uint64((1 << STEP_BITS) - 1)
_COLUMN_MASK = np.uint64((1 << COLUMN_BITS) - 1)
_RANK_MASK = np.uint64((1 << RANK_BITS) - 1)
_LEAF = np.uint64(LEAF)
_WORD_SHIFT, _BIT_MASK = np.uint64(6), np.uint64(63)


def read_words(nodes: UIntArray) -> tuple[IntArray, IntArray, IntArray, BoolArray]:
    """Return what words say: distance, column, rank, and whether the split is a set."""
    steps, columns = (nodes >> _STEP_SHIFT) & _STEP_MASK, (nodes >> _COLUMN_SHIFT) & _COLUMN_MASK
    ranks = nodes & _RANK_MASK
    return steps.astype(np.int64), columns.astype(np.int64), ranks.astype(np.int64), nodes >> _SET_SHIFT == 1


def words_of_set(n_codes: IntArray) -> IntArray:
    """Return how many words hold a bit for each known code, one for all others and one for missing."""
    return (n_codes + 1) // 64 + 1


@compiled
def encode(
    rows: FloatArray,
    single: bool,
    cuts: FloatArray,
    cut_starts: IntArray,
    categorical: BoolArray,
    encoded: EncodedRows,
) -> None:
    """Fill (n_rows, 2 * n_features) columns: with the missing to the right, and again with the missing to the left."""
    n_rows, n_features = rows.shape
    for r in range(n_rows):
        for f in range(n_features):
            x = rows[r, f]
            if single:
                x = np.float64(np.float32(x))
                if categorical[f]:
                    x = math.floor(x) if abs(x) < 2.0**31 else x  # XGBoost drops the fraction of a code
            start, end = cut_starts[f], cut_starts[f + 1]
            place = lower_bound(cuts, start, end, x)
            if categorical[f]:
                if math.isnan(x):
                    place = end + 1
                elif place < end and cuts[place] != x:
                    place = end
                encoded[r, f] = place - start
            else:
                missing = math.isnan(x)
                encoded[r, f] = (end if missing else place) - start
                encoded[r, n_features + f] = 0 if missing else place - start


@compiled
def lower_bound(cuts: npt.NDArray[Any], start: int, end: int, x: float) -> int:
    """Return the first place in [start, end) whose cut is at least x, or end."""
    while start < end:
        middle = (start + end) // 2
        if cuts[middle] < x:
            start = middle + 1
        else:
            end = middle
    return start


@compiled
def vote(
    encoded: EncodedRows,
    nodes: UIntArray,
    sets: UIntArray | None,
    widths: IntArray,
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
    at: UIntArray,
    origins: UIntArray,
    sums: Values,
    votes: Votes,
) -> None:
    """Fill (n_rows, n_models) votes; a row's votes never depend on the rows beside it."""
    n_rows, n_models = votes.shape
    for first_row in range(0, n_rows, ROWS_PER_BLOCK):
        size = min(ROWS_PER_BLOCK, n_rows - first_row)
        trees_at_once = WALKERS // size
        _place(origins, first_row, size, encoded.shape[1])
        for m in range(n_models):
            n_classes = class_starts[m + 1] - class_starts[m]
            for c in range(n_classes):
                for r in range(size):
                    sums[c, r] = base[class_starts[m] + c]
            for tree in range(tree_starts[m], tree_starts[m + 1], trees_at_once):
                end = min(tree + trees_at_once, tree_starts[m + 1])
                _walk(encoded, nodes, sets, roots, depths, tree, end, size, at, origins)
                _add(nodes, values, value_starts, outputs, widths, tree, end, size, at, sums)
            for r in range(size):
                chosen = choose(sums, r, n_classes, divisors[m], softmax[m])
                votes[first_row + r, m] = labels[class_starts[m] + chosen]


@compiled
def _place(origins: UIntArray, first_row: int, size: int, n_columns: int) -> None:
    """Say where the encoded row of each walker starts: the rows of the block, again for every tree."""
    r = 0
    for i in range(len(origins)):
        origins[i] = (first_row + r) * n_columns
        r = r + 1 if r + 1 < size else 0


@compiled
def _walk(
    encoded: EncodedRows,
    nodes: UIntArray,
    sets: UIntArray | None,
    roots: UIntArray,
    depths: IntArray,
    first_tree: int,
    end_tree: int,
    size: int,
    at: UIntArray,
    origins: UIntArray,
) -> None:
    """Bring one walker for each pair of tree and row from the root to its leaf, all a step at a time."""
    flat = encoded.reshape(-1)
    end = _ZERO
    depth = 0
    for t in range(first_tree, end_tree):
        depth = max(depth, depths[t])
        for _ in range(size):
            at[end] = roots[t]
            end += _ONE
    arrived = _ZERO
    for _ in range(depth):
        for i in range(arrived, end):
            at[i] += _step(nodes, sets, flat, origins[i], at[i])
        while arrived < end and (nodes[at[arrived]] & _LEAF) != _ZERO:
            arrived += _ONE


@compiled
def _step(
    nodes: UIntArray, sets: UIntArray | None, flat: EncodedRows, origin: np.uint64, at: np.uint64
) -> np.uint64:
    """Return how far the child is that a row goes to: 0 at a leaf."""
    node = nodes[at]
    value = np.uint64(flat[origin + ((node >> _COLUMN_SHIFT) & _COLUMN_MASK)])
    rank = node & _RANK_MASK
    # Without sets this branch is not compiled, and then the loop around it is one of vector instructions.
    if sets is not None and node >> _SET_SHIFT:
        right = (sets[rank + (value >> _WORD_SHIFT)] >> (value & _BIT_MASK)) & _ONE
        return ((node >> _STEP_SHIFT) & _STEP_MASK) + right
    return (node >> _STEP_SHIFT) + np.uint64(value > rank)


@compiled
def _add(
    nodes: UIntArray,
    values: Values,
    value_starts: IntArray,
    outputs: IntArray,
    widths: IntArray,
    first_tree: int,
    end_tree: int,
    size: int,
    at: UIntArray,
    sums: Values,
) -> None:
    """Add what the leaves say, tree after tree: the order decides the last bit."""
    walker = _ZERO
    for t in range(first_tree, end_tree):
        width = np.uint64(widths[t])
        output = np.uint64(outputs[t])
        for j in range(width):
            start = np.uint64(value_starts[t]) + j
            for r in range(size):
                leaf = (nodes[at[walker + np.uint64(r)]] & _RANK_MASK) - _LEAF
                sums[output + j, r] += values[start + leaf * width]
        walker += np.uint64(size)


@compiled
def choose(sums: Values, r: int, n_classes: int, divisor: float, softmax: bool) -> int:
    """Return the first class with the largest score."""
    best = 0
    for c in range(1, n_classes):
        if sums[c, r] / divisor > sums[best, r] / divisor:
            best = c
    if softmax:
        for c in range(best):
            if sums[best, r] - sums[c, r] < _NEAR_TIE:
                return _first_probable(sums, r, n_classes, best)
    return best


@compiled
def _first_probable(sums: Values, r: int, n_classes: int, best: int) -> int:
    """Return the first class with the largest softmax in float32: different margins may have one probability."""
    total = 0.0
    for c in range(n_classes):
        total += math.exp(np.float32(sums[c, r] - sums[best, r]))
    largest = np.float32(1) / np.float32(total)
    for c in range(best):
        if math.exp(np.float32(sums[c, r] - sums[best, r])) / np.float32(total) >= largest:
            return c
    return best
