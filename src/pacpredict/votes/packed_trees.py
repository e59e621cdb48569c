"""The votes of all models of an ensemble of trees, in one call.

    trees = pack_xgboost([model.get_booster() for model in models])     or pack_sklearn(forests)
    votes = trees.votes(rows)                                           (n_rows, n_models) labels

The labels are those of each library's own predict, on every row: comparisons, rounding, order of summation, missing
values, categories and ties are the library's. It is plain arrays; what it was packed from is not needed any more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import InvalidInput, InvalidModel
from pacpredict.types import FloatArray, IntArray, Votes
from pacpredict.votes import tree_kernel as kernel
from pacpredict.votes.perfect_trees import PerfectTrees
from pacpredict.votes.split_columns import SplitColumns
from pacpredict.votes.threads import run_together

BoolArray = npt.NDArray[np.bool_]
UIntArray = npt.NDArray[np.uint64]

# What the kernel was compiled for; the others are int64.
_DTYPES: dict[str, tuple[npt.DTypeLike, ...]] = {
    **dict.fromkeys(("nodes", "sets", "roots"), (np.uint64,)),
    **dict.fromkeys(("values", "base"), (np.float32, np.float64)),
    **dict.fromkeys(("cuts", "divisors"), (np.float64,)),
    **dict.fromkeys(("softmax", "categorical", "single"), (np.bool_,)),
    "labels": (np.int16,),
}


# Ways of a row through a tree that a thread has to do: about half a millisecond's. To begin in another thread takes a
# fifth of one. On census income two threads were slower for 128 rows, 3.3 million ways, and nearly twice as fast for
# twice as many.
LEAST_WALKS, LEAST_PERFECT_WALKS = 100_000, 2_000_000


@dataclass(frozen=True, eq=False, repr=False)
class PackedTrees:
    """Arrays of numbers only: they can be saved with np.savez and loaded without pickles."""

    nodes: UIntArray  # the words that tree_kernel describes
    sets: UIntArray  # bits of categories that go right
    values: npt.NDArray[Any]  # of leaves, in the library's own precision
    roots: UIntArray  # per tree: its first word,
    depths: IntArray  # the longest way to a leaf,
    value_starts: IntArray  # the first of its values,
    outputs: IntArray  # the first class they count for
    widths: IntArray  # and how many each leaf has
    tree_starts: IntArray  # (n_models + 1) trees of each model
    class_starts: IntArray  # (n_models + 1) classes of each model
    base: npt.NDArray[Any]  # per class of each model: its score before any tree
    labels: Votes  # and the label that a vote for it is
    divisors: FloatArray  # per model: what sums are divided by
    softmax: npt.NDArray[np.bool_]  # and whether probabilities are compared, not margins
    cuts: FloatArray  # all thresholds or known codes of each feature, sorted
    cut_starts: IntArray  # (n_features + 1)
    categorical: npt.NDArray[np.bool_]  # (n_features,)
    single: npt.NDArray[np.bool_]  # (): whether rows are rounded to float32

    @cached_property
    def columns(self) -> SplitColumns | None:
        """The faster way to vote. None for ensembles that it does not fit: they vote by the words alone."""
        return SplitColumns.of(self.nodes, self.sets, self.roots, self.depths, self.widths, self.cut_starts)

    @cached_property
    def perfect(self) -> PerfectTrees | None:
        """The fastest way, for shallow trees. None for ensembles that it does not fit."""
        return None if self.columns is None else PerfectTrees.of(self, self.columns)

    def voting_by(self, columns: SplitColumns | None, perfect: PerfectTrees | None = None) -> "PackedTrees":
        """Return the same trees, which vote in another way."""
        other = replace(self)
        vars(other).update(columns=columns, perfect=perfect)  # where cached_property would keep them
        return other

    @property
    def n_models(self) -> int:
        return len(self.divisors)

    @property
    def n_features(self) -> int:
        return len(self.categorical)

    def __repr__(self) -> str:
        return (
            f"PackedTrees(n_models={self.n_models}, n_features={self.n_features}, n_trees={len(self.roots)})"
        )

    def votes(self, rows: npt.ArrayLike, n_threads: int = 1) -> Votes:
        """Return the label that each model gives to each row.

        Parameters
        ----------
        rows
            (n_rows, n_features) or one row (n_features,); NaN is missing, a categorical column holds codes.
        n_threads
            rows, or the models if there are few rows, are split among at most so many threads, each with enough to do;
            the votes are the same.

        Returns
        -------
        (n_rows, n_models) labels, one row also for a single row.

        Raises
        ------
        InvalidInput
            if rows are not numbers or have the wrong number of features.
        """
        x = self._as_rows(rows)
        least = LEAST_WALKS if self.perfect is None else LEAST_PERFECT_WALKS
        n_threads = min(n_threads, len(x) * len(self.roots) // least)
        if n_threads <= 1:
            return self._votes(x, 0, self.n_models)
        if by_rows := len(x) >= 2 * kernel.ROWS_PER_BLOCK:
            ends = np.linspace(0, len(x), n_threads + 1).astype(int)
            jobs = [partial(self._votes, x[a:b], 0, self.n_models) for a, b in pairwise(ends)]
        else:
            ends = np.linspace(0, self.n_models, n_threads + 1).astype(int)
            jobs = [partial(self._votes, x, a, b) for a, b in pairwise(ends)]
        return np.concatenate(run_together(jobs), axis=0 if by_rows else 1)

    def _as_rows(self, rows: npt.ArrayLike) -> FloatArray:
        try:
            x = np.ascontiguousarray(rows, dtype=np.float64)
        except (TypeError, ValueError) as problem:
            raise InvalidInput(f"rows must be numbers; encode categories as codes ({problem})") from problem
        x = x[None, :] if np.ndim(rows) == 1 else x
        if x.ndim != 2 or x.shape[1] != self.n_features:
            raise InvalidInput(f"rows must have shape (n_rows, {self.n_features}), got {np.shape(rows)}")
        return x

    def _votes(self, x: FloatArray, first: int, last: int) -> Votes:
        """Return the votes of the models from `first` to before `last`."""
        votes = np.empty((len(x), last - first), dtype=np.int16)
        encoded = np.empty((len(x), 2 * self.n_features), dtype=np.uint32)
        kernel.encode(x, bool(self.single), self.cuts, self.cut_starts, self.categorical, encoded)
        sums = np.empty((self._most_classes, kernel.ROWS_PER_BLOCK), dtype=self.base.dtype)
        trees = self.values, self.roots, self.depths, self.value_starts, self.outputs
        classes = self.class_starts[first : last + 1], self.base, self.labels
        choice = self.divisors[first:last], self.softmax[first:last]
        models = kernel.Models(*trees, self.tree_starts[first : last + 1], *classes, *choice)
        if self.columns is not None and self.perfect is not None:
            self.perfect.vote(self.columns, encoded, models, slice(first, last), sums, votes)
        elif self.columns is not None:
            self.columns.vote(encoded, models, sums, votes)
        else:
            at, origins = np.empty((2, kernel.WALKERS), dtype=np.uint64)
            sets = self.sets if self.sets.size else None
            kernel.vote(encoded, self.nodes, sets, self.widths, *models, at, origins, sums, votes)
        return votes

    @cached_property
    def _most_classes(self) -> int:
        return int(np.diff(self.class_starts).max())

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays by name, for np.savez."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> "PackedTrees":
        """Return what `arrays` gave.

        Raises
        ------
        InvalidModel
            if an array is missing or of another type, a number in it points outside another, or a category is compared
            as a number: the kernel trusts them.
        """
        names = {field.name for field in fields(cls)}
        if missing := names - set(arrays):
            raise InvalidModel(f"packed trees lack {', '.join(sorted(missing))}; is this another file?")
        trees = cls(**{name: np.asarray(arrays[name]) for name in names})
        _check(trees)
        return trees


def _check(trees: PackedTrees) -> None:
    """Refuse arrays that would lead the kernel outside of them."""
    arrays = trees.arrays()
    for name, array in arrays.items():
        if array.dtype not in _DTYPES.get(name, (np.int64,)) or array.ndim != (name != "single"):
            raise InvalidModel(
                f"packed trees cannot have {name} of type {array.dtype} and shape {array.shape}"
            )
    n_trees, n_models, n_features = len(trees.roots), trees.n_models, trees.n_features
    per_tree = ("depths", "value_starts", "outputs", "widths")
    fits = (
        trees.values.dtype == trees.base.dtype
        and all(len(arrays[name]) == n_trees for name in per_tree)
        and len(trees.softmax) == n_models > 0
        and len(trees.labels) == len(trees.base)
        and _are_starts(trees.tree_starts, n_models, n_trees)
        and _are_starts(trees.class_starts, n_models, len(trees.base), least=1)
        and _are_starts(trees.cut_starts, n_features, len(trees.cuts))
        and _stays_inside(trees)
    )
    if not fits:
        raise InvalidModel("packed trees whose arrays do not fit together; the file is damaged or was edited")


def _are_starts(starts: IntArray, n: int, end: int, least: int = 0) -> bool:
    # Differences wrap around: those of numbers from 0 to the end do not.
    is_between = len(starts) == n + 1 and starts[0] == 0 <= starts.min() and starts[-1] == end == starts.max()
    return bool(is_between and (np.diff(starts) >= least).all())


def _stays_inside(trees: PackedTrees) -> bool:
    """Whether every word of every tree points to words, columns, sets and values that exist."""
    words = trees.nodes
    steps, columns, ranks, is_set = kernel.read_words(words)
    inner = steps > 0
    roots = np.append(trees.roots, np.uint64(len(words))).astype(np.int64)
    if (
        not _are_starts(roots, len(trees.roots), len(words), least=1)
        or (columns >= 2 * trees.n_features).any()
        or (trees.depths >= np.diff(roots)).any()  # or walks go on for ever
    ):
        return False
    tree = np.repeat(np.arange(len(trees.roots)), np.diff(roots))
    right = np.arange(len(words)) + steps + 1
    if (right[inner] >= roots[tree[inner] + 1]).any() or not _are_trees(
        inner, right, tree, roots, trees.depths
    ):
        return False
    n_words = kernel.words_of_set(np.diff(trees.cut_starts)[columns[is_set] % trees.n_features])
    leaves, n_leaves = ranks[~inner] - kernel.LEAF, np.bincount(tree[~inner], minlength=len(trees.roots))
    n_classes = np.repeat(np.diff(trees.class_starts), np.diff(trees.tree_starts))
    return bool(
        (columns[is_set] < trees.n_features).all()
        # Of a category nothing is encoded that a threshold could be compared with: what memory held before would vote.
        and np.array_equal(is_set[inner], trees.categorical[columns[inner] % trees.n_features])
        and (ranks[is_set] + n_words <= len(trees.sets)).all()
        and np.array_equal(
            leaves, np.arange(len(leaves)) - np.repeat(np.cumsum(n_leaves) - n_leaves, n_leaves)
        )
        and (ranks[inner & ~is_set] < kernel.LEAF).all()
        and not is_set[~inner].any()
        and (np.minimum(trees.outputs, np.minimum(trees.widths, trees.value_starts)) >= 0).all()
        # Sums of what is stored could wrap around. Widths are small once the first of these holds.
        and (trees.outputs <= n_classes - trees.widths).all()
        and (trees.value_starts <= len(trees.values) - n_leaves * trees.widths).all()
    )


def _are_trees(inner: BoolArray, right: IntArray, tree: IntArray, roots: IntArray, depths: IntArray) -> bool:
    """Whether each node but a root has one parent, and no way to a leaf is longer than the depth that is told."""
    parents = np.bincount(np.concatenate([right[inner] - 1, right[inner]]), minlength=len(inner))
    parents[roots[:-1]] += 1
    if (parents != 1).any():
        return False
    level, depth = roots[:-1], 0
    while (level := level[inner[level]]).size:
        if (depths[tree[level]] <= depth).any():
            return False
        level, depth = np.concatenate([right[level] - 1, right[level]]), depth + 1
    return True
