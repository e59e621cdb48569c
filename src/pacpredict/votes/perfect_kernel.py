"""The way through trees that were filled up until they are perfect: of a node nothing is stored but what it asks.

Trees are filled up with nodes that send all rows to the left. Those of one model then have the same depth d, and each
takes 2^d cells of two arrays, which are all that is read on the way:

    asked[start + i]    the column that inner node i asks for; node 1 is the root, 2 i and 2 i + 1 are children of i
    values[start + j]   what leaf j says; the binary digits of j are the ways to the right, the first the highest

Few rows walk, in blocks of 8 whose columns are bytes, through eight trees at a time; models have whole eights of trees.
Many are swept through the trees, 64 at a time: of each level it is found out at once which of them go right, and that
is a digit of the leaves of all.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pacpredict.core.compiled import compiled, compiled_into_callers
from pacpredict.types import FloatArray, IntArray, Votes
from pacpredict.votes.column_answers import Columns
from pacpredict.votes.column_kernel import Splits, answer, choose_labels
from pacpredict.votes.perfect_code import TOGETHER, sweep_tree, walk_trees
from pacpredict.votes.tree_kernel import BoolArray, EncodedRows, UIntArray, Values

Asked = npt.NDArray[np.uint16]

_ONE, _TOGETHER = np.uint64(1), np.uint64(TOGETHER)


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
    sums: Values  # (n_classes, ROWS_PER_BLOCK)


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
    sums: Values,
    swept: bool | None,
    votes: Votes,
) -> None:
    """Fill (n_rows, n_models) votes; a row's votes never depend on the rows beside it.

    `swept` is true or None, which are types: of walk and sweep only one is compiled.
    """
    splits = Splits(ranks, rank_starts, sets, set_starts, set_columns)
    trees = Perfect(asked, values, depths, starts, tree_starts, outputs)
    space = Space(columns, rows_of, sums)
    rows_at_once = 8 * columns.itemsize
    for first_row in range(0, len(encoded), rows_at_once):
        block = encoded[first_row : first_row + rows_at_once]
        answer(block, splits, columns, rows_of)
        for m in range(votes.shape[1]):
            start = class_starts[m]
            for c in range(class_starts[m + 1] - start):
                sums[c, :rows_at_once] = base[start + c]  # of rows that are missing, too: sweeps add to them
            if swept is None:
                _walk(trees, m, len(block), space)
            else:
                _sweep(trees, m, len(block), space)
            chosen = votes[first_row : first_row + len(block)]
            choose_labels(class_starts, labels, divisors, softmax, m, sums, chosen)


@compiled
def _walk(trees: Perfect, m: int, size: int, space: Space) -> None:
    """Bring row after row from root to leaf."""
    depth, t = np.uint64(trees.depths[m]), np.uint64(trees.tree_starts[m])
    for start in range(np.uint64(trees.starts[m]), np.uint64(trees.starts[m + 1]), _TOGETHER << depth):
        asked, values, outputs = trees.asked[start:], trees.values[start:], trees.outputs[t:]
        is_one = _are_one(outputs)
        for r in range(np.uint64(size)):
            walk_trees(depth, space.columns, asked, values, space.sums, outputs, is_one, r)
        t += _TOGETHER


@compiled
def _sweep(trees: Perfect, m: int, size: int, space: Space) -> None:
    """Divide all rows at every node."""
    depth, t = np.uint64(trees.depths[m]), np.uint64(trees.tree_starts[m])
    for start in range(np.uint64(trees.starts[m]), np.uint64(trees.starts[m + 1]), _ONE << depth):
        asked, values, output = trees.asked[start:], trees.values[start:], np.uint64(trees.outputs[t])
        sweep_tree(depth, space.columns, asked, values, space.sums, output, np.uint64(size))
        t += _ONE


@compiled_into_callers
def _are_one(outputs: IntArray) -> bool:
    """Tell whether the trees that are walked through together count for one class."""
    is_one = True
    for t in range(1, TOGETHER):
        is_one &= outputs[t] == outputs[0]
    return is_one
