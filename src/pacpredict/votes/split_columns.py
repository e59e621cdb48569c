"""The distinct splits of packed trees as columns, for ensembles that have few enough of them; see column_kernel."""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pacpredict.types import IntArray, Votes
from pacpredict.votes import column_kernel as kernel
from pacpredict.votes.tree_kernel import (
    LEAF,
    RANK_BITS,
    BoolArray,
    EncodedRows,
    Models,
    UIntArray,
    Values,
    read_words,
    words_of_set,
)


@dataclass(frozen=True, eq=False, repr=False)
class SplitColumns:
    """How rows become columns, and the nodes that ask for them, each at the place of the word it was made of.

    First come the thresholds, by encoded column and rank, then the sets of each feature.
    """

    words: kernel.Words  # the nodes that column_kernel describes
    ranks: npt.NDArray[np.uint32]  # of thresholds,
    rank_starts: IntArray  # (2 * n_features + 1) by encoded column
    sets: UIntArray  # distinct ones of each feature: the first words of all, then the second of all
    set_starts: IntArray  # (n_features + 1)
    set_columns: IntArray  # (n_features + 1) the first column of the sets of each feature
    swept: UIntArray  # the inner nodes again, for sweeps
    swept_starts: IntArray  # (n_trees + 1) the first of each tree
    widths: IntArray | None  # values at each leaf of a tree; None if there is one throughout
    least_swept: int  # rows from which it is faster to sweep than to walk
    n_leaves: int  # of the largest tree
    n_codes: int  # of the largest feature, with those for other and missing categories

    @classmethod
    def of(
        cls,
        nodes: UIntArray,
        sets: UIntArray,
        roots: UIntArray,
        depths: IntArray,
        widths: IntArray,
        cut_starts: IntArray,
    ) -> "SplitColumns | None":
        """Return None if there are too many distinct splits, or too large trees, for 32 bits a node."""
        steps, asked, ranks, is_set = read_words(nodes)
        inner, sizes = steps > 0, np.diff(np.append(roots.astype(np.int64), len(nodes)))
        n_features = len(cut_starts) - 1
        columns, thresholds = np.zeros(len(nodes), np.int64), inner & ~is_set
        keys, columns[thresholds] = np.unique(
            asked[thresholds] << RANK_BITS | ranks[thresholds], return_inverse=True
        )
        set_columns, distinct = [len(keys)], []
        for f, n_words in enumerate(words_of_set(np.diff(cut_starts)).tolist()):
            here = np.flatnonzero(is_set & (asked == f))
            own = sets[ranks[here, None] + np.arange(n_words)]
            own, which = np.unique(own, axis=0, return_inverse=True)
            columns[here] = set_columns[-1] + which.ravel()  # NumPy 2.0 gives it a second axis
            set_columns.append(set_columns[-1] + len(own))
            distinct.append(own.T.ravel())
        leaves = ranks[~inner] - LEAF
        columns[~inner] = set_columns[-1] + leaves
        if columns.max(initial=0) >= 1 << kernel.COLUMN_BITS or steps.max(initial=0) >= 1 << kernel.STEP_BITS:
            return None
        return cls(
            words=(steps << kernel.STEP_SHIFT | columns).astype(np.uint32),
            ranks=(keys & ((1 << RANK_BITS) - 1)).astype(np.uint32),
            rank_starts=np.searchsorted(keys >> RANK_BITS, np.arange(2 * n_features + 1)).astype(np.int64),
            sets=np.concatenate([np.empty(0, np.uint64), *distinct]),
            set_starts=np.cumsum([0, *map(len, distinct)], dtype=np.int64),
            set_columns=np.array(set_columns, dtype=np.int64),
            swept=_swept(columns, steps, inner, roots),
            swept_starts=np.append(0, np.cumsum(sizes // 2)),
            widths=None if (widths == 1).all() else widths,
            least_swept=_least_swept(sizes, depths),
            n_leaves=int(leaves.max(initial=0)) + 1,
            n_codes=int(np.diff(cut_starts).max(initial=0)) + 2,
        )

    @property
    def nobody(self) -> int:
        """The first column behind all splits: no row goes right there."""
        return int(self.set_columns[-1])

    def read(self, places: IntArray) -> tuple[IntArray, IntArray]:
        """Return of nodes how far their left child is, 0 for leaves, and the column, which numbers leaves."""
        words = self.words[places].astype(np.int64)
        return words >> kernel.STEP_SHIFT, words & ((1 << kernel.COLUMN_BITS) - 1)

    def space(self, dtype: npt.DTypeLike) -> tuple[npt.NDArray[Any], UIntArray]:
        """Return zeros for the columns of a block of rows, and for the rows of each category."""
        return np.zeros(self.nobody + self.n_leaves, dtype), np.zeros(self.n_codes, np.uint64)

    def vote(self, encoded: EncodedRows, models: Models, sums: Values, votes: Votes) -> None:
        """Fill (n_rows, n_models) votes; see PackedTrees."""
        swept = len(votes) >= self.least_swept
        kernel.vote(
            encoded,
            self.ranks,
            self.rank_starts,
            self.sets,
            self.set_starts,
            self.set_columns,
            self.words,
            self.swept,
            self.swept_starts,
            self.widths,
            *models,
            *self.space(np.uint64 if swept else np.uint8),
            np.empty(kernel.SWEEP_SPACE, np.uint64) if swept else None,
            np.empty(8, np.uint64),
            sums,
            votes,
        )


def _swept(columns: IntArray, steps: IntArray, inner: BoolArray, roots: UIntArray) -> UIntArray:
    """Return the words of a sweep; in trees that are too large for one, places may not fit and are not used."""
    sizes = np.diff(np.append(roots.astype(np.int64), len(inner)))
    tree = np.repeat(np.arange(len(sizes)), sizes)
    places = np.empty(len(inner), np.int64)
    places[np.lexsort((~inner, tree))] = np.arange(len(inner)) - np.repeat(roots.astype(np.int64), sizes)
    left = np.flatnonzero(inner) + steps[inner]
    return (
        columns[inner] | places[left] << kernel.LEFT_SHIFT | places[left + 1] << kernel.RIGHT_SHIFT
    ).astype(np.uint64)


def _least_swept(sizes: IntArray, depths: IntArray) -> int:
    """Return how many rows a block needs so that all pass each node once faster than each row the nodes on its way.

    In quarters of a nanosecond a sweep took 6 for each node and 3 for each row in each tree, a walk 4 for each step,
    measured with XGBoost and histogram gradient boosting.
    """
    gain = int(4 * depths.sum() - 3 * len(depths))
    if gain <= 0 or sizes.max() > kernel.MOST_SWEPT_NODES:
        return sys.maxsize
    return int(6 * sizes.sum()) // gain + 1
