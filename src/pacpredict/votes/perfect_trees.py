"""Packed trees filled up until they are perfect, for ensembles of shallow trees; see perfect_kernel."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pacpredict.types import IntArray, Votes
from pacpredict.votes import perfect_kernel as kernel
from pacpredict.votes.perfect_code import MOST_DEPTH, PADDING, TOGETHER
from pacpredict.votes.split_columns import SplitColumns
from pacpredict.votes.tree_kernel import EncodedRows, Models, Values

if TYPE_CHECKING:
    from pacpredict.votes.packed_trees import PackedTrees

# Cells that trees may take for each of their leaves. With 1.9 of them (XGBoost of depth 7, made data) votes took 0.3 to
# 0.8 of the time that columns take alone, with 2.7 (depth 8) 0.8 to 0.9, before they were written out for
# each depth. More was not measured: this is a guess at where filling up begins to make more work than it saves.
_MOST_CELLS_PER_LEAF = 3.0


@dataclass(frozen=True, eq=False, repr=False)
class PerfectTrees:
    """What inner nodes ask and leaves say, model after model, and tree after tree within a model."""

    asked: kernel.Asked  # columns, in cells
    values: Values  # in cells
    depths: IntArray  # (n_models,)
    starts: IntArray  # (n_models + 1) the first cell of each model
    tree_starts: IntArray  # (n_models + 1) its first tree, where models have whole eights
    outputs: IntArray  # of each of these trees the class it counts for
    least_swept: int  # rows from which it is faster to sweep than to walk

    @classmethod
    def of(cls, trees: "PackedTrees", columns: SplitColumns) -> "PerfectTrees | None":
        """Return None for trees that are too deep or too far from perfect, or have too many different splits."""
        if columns.widths is not None or columns.nobody > np.iinfo(np.uint16).max or not len(trees.roots):
            return None
        n_trees = np.diff(trees.tree_starts)
        depths = np.array([own.max(initial=0) for own in np.split(trees.depths, trees.tree_starts[1:-1])])
        n_filled = -(-n_trees // TOGETHER) * TOGETHER
        n_leaves = (len(trees.nodes) + len(trees.roots)) // 2
        if depths.max() > MOST_DEPTH or (n_trees << depths).sum() > _MOST_CELLS_PER_LEAF * n_leaves:
            return None
        starts, tree_starts = _starts(n_filled << depths), _starts(n_filled)
        asked = np.full(starts[-1], columns.nobody, np.uint16)
        values = np.zeros(starts[-1] + PADDING, trees.values.dtype)  # trees that fill up eights add nothing
        outputs = np.zeros(tree_starts[-1], np.int64)
        for depth in np.unique(depths):
            models = np.flatnonzero(depths == depth)
            own = np.concatenate([np.arange(*trees.tree_starts[m : m + 2]) for m in models])
            place = np.concatenate([np.arange(n_trees[m]) for m in models])
            cells = (np.repeat(starts[models], n_trees[models]) + (place << depth))[:, None]
            leaves = _fill(columns, trees.roots[own].astype(np.int64), depth, asked, cells)
            values[cells + np.arange(1 << depth)] = trees.values[trees.value_starts[own, None] + leaves]
            outputs[np.repeat(tree_starts[models], n_trees[models]) + place] = trees.outputs[own]
        return cls(
            asked, values, depths, starts, tree_starts, outputs, least_swept=_least_swept(n_trees, depths)
        )

    def vote(
        self,
        columns: SplitColumns,
        encoded: EncodedRows,
        models: Models,
        chosen: slice,
        sums: Values,
        votes: Votes,
    ) -> None:
        """Fill (n_rows, n_models) votes of the chosen models; see PackedTrees."""
        swept = len(votes) >= self.least_swept
        kernel.vote(
            encoded,
            columns.ranks,
            columns.rank_starts,
            columns.sets,
            columns.set_starts,
            columns.set_columns,
            self.asked,
            self.values,
            self.depths[chosen],
            self.starts[chosen.start : chosen.stop + 1],
            self.tree_starts[chosen.start : chosen.stop + 1],
            self.outputs,
            models.class_starts,
            models.base,
            models.labels,
            models.divisors,
            models.softmax,
            *columns.space(np.uint64 if swept else np.uint8),
            sums,
            True if swept else None,
            votes,
        )


def _starts(sizes: IntArray) -> IntArray:
    return np.append(0, np.cumsum(sizes)).astype(np.int64)


def _fill(
    columns: SplitColumns,
    roots: IntArray,
    depth: int,
    asked: kernel.Asked,
    cells: IntArray,
) -> IntArray:
    """Write what the inner nodes of trees ask, level after level, and return the numbers of their leaves."""
    here = roots[:, None]
    for level in range(depth):
        steps, own = columns.read(here)
        asked[cells + np.arange(1 << level, 2 << level)] = np.where(steps > 0, own, columns.nobody)
        left = here + steps  # a leaf is its own child on both sides
        here = np.stack([left, left + (steps > 0)], axis=2).reshape(len(roots), -1)
    return columns.read(here)[1] - columns.nobody


def _least_swept(n_trees: IntArray, depths: IntArray) -> int:
    """Return how many rows a block needs so that all pass each node once faster than each row the nodes on its way.

    In tenths of a nanosecond a sweep took about 30 for each tree and 5 for each of its cells, a walk 8 for each step:
    measured on full trees of depths 1 to 8.
    """
    n_steps = int((n_trees * depths).sum())
    return int((n_trees * (30 + (5 << depths))).sum()) // (8 * n_steps) + 1 if n_steps else sys.maxsize
