"""Trees in one common form, whatever library grew them, and how they become words of the kernel."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import InvalidModel
from pacpredict.types import FloatArray, IntArray
from pacpredict.votes import tree_kernel as kernel

BoolArray = npt.NDArray[np.bool_]
UIntArray = npt.NDArray[np.uint64]
Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Tree:
    """One tree, node by node; the first is the root.

    A row goes left where x <= threshold. At a categorical split the codes of `exceptions` go one way and all others
    the other way; a missing value follows `missing_left` at either kind.
    """

    left: IntArray  # -1 at a leaf
    right: IntArray
    feature: IntArray
    threshold: FloatArray
    missing_left: BoolArray
    values: npt.NDArray[Any]  # (n_nodes, width), read at leaves only
    output: int  # class that the first value counts for
    others_right: BoolArray | None = None  # where a category goes that is no exception
    exceptions: tuple[IntArray, FloatArray] | None = (
        None  # pairs of node and code; None: no categorical split
    )
    categorical: BoolArray | None = None


@dataclass(frozen=True)
class TreeModel:
    """One classifier: the class with the largest base + sum of leaves wins, the first among equals.

    The sums are computed in the type of `base`, in the order of the trees.
    """

    trees: Sequence[Tree]
    base: npt.NDArray[Any]
    labels: IntArray
    divisor: float = 1.0  # a mean is compared, not a sum: division can make two sums equal
    softmax: bool = False  # float32 probabilities are compared: they, too, can be equal where margins are not

    def relabelled(self, labels: npt.ArrayLike) -> "TreeModel":
        """Return the model with other label indices for its classes."""
        return replace(self, labels=label_indices(labels, len(self.labels)))


@dataclass(frozen=True)
class _Nodes:
    """All nodes of all trees side by side; children and exceptions are numbered across trees."""

    tree: IntArray
    left: IntArray
    right: IntArray
    feature: IntArray
    threshold: FloatArray
    missing_left: BoolArray
    categorical: BoolArray
    others_right: BoolArray
    exception_node: IntArray
    exception_code: FloatArray

    @classmethod
    def of(cls, trees: Sequence[Tree]) -> "_Nodes":
        sizes = np.array([len(tree.left) for tree in trees], dtype=np.int64)
        number = np.repeat(np.arange(len(trees)), sizes)
        start = (np.cumsum(sizes) - sizes)[number]
        left, right = _join([t.left for t in trees], np.int64), _join([t.right for t in trees], np.int64)
        pairs = [(k, t.exceptions) for k, t in enumerate(trees) if t.exceptions is not None]
        first = np.cumsum(sizes) - sizes
        return cls(
            tree=number,
            left=np.where(left < 0, -1, left + start),
            right=np.where(left < 0, -1, right + start),
            feature=_join([t.feature for t in trees], np.int64),
            threshold=_join([t.threshold for t in trees], np.float64),
            missing_left=_join([t.missing_left for t in trees], np.bool_),
            categorical=_join([_flags(t.categorical, len(t.left)) for t in trees], np.bool_),
            others_right=_join([_flags(t.others_right, len(t.left)) for t in trees], np.bool_),
            exception_node=_join([first[k] + nodes for k, (nodes, _) in pairs], np.int64),
            exception_code=_join([codes for _, (_, codes) in pairs], np.float64),
        )

    @property
    def leaf(self) -> BoolArray:
        return self.left < 0


def pack(models: Sequence[TreeModel], n_features: int, *, single: bool) -> Arrays:
    """Return the arrays of PackedTrees for models that take the same features.

    Parameters
    ----------
    models
        at least one; those with a single class need no trees.
    n_features
        the width of a row.
    single
        whether the library rounds rows to float32 before it compares them.
    """
    trees = [tree for model in models for tree in model.trees]
    nodes = _Nodes.of(trees)
    order, roots, depths = _breadth_first(nodes, len(trees))
    cuts, cut_starts, categorical = _cuts(nodes, n_features)
    ranks, sets = _ranks(nodes, cuts, cut_starts, categorical)
    leaf_numbers, leaf_counts = _number_leaves(nodes, order, len(trees))
    widths = np.array([tree.values.shape[1] for tree in trees], dtype=np.int64)
    value_ends = np.cumsum(leaf_counts * widths)
    leaves = order[nodes.leaf[order]]
    return {
        "nodes": _words(nodes, order, np.where(nodes.leaf, kernel.LEAF + leaf_numbers, ranks), n_features),
        "sets": sets,
        "values": _leaf_values(trees, nodes, leaves, models[0].base.dtype),
        "roots": roots,
        "depths": depths,
        "value_starts": value_ends - leaf_counts * widths,
        "outputs": np.array([tree.output for tree in trees], dtype=np.int64),
        "widths": widths,
        "tree_starts": _starts([len(model.trees) for model in models]),
        "class_starts": _starts([len(model.labels) for model in models]),
        "base": np.concatenate([model.base for model in models]),
        "labels": np.concatenate([model.labels for model in models]).astype(np.int16),
        "divisors": np.array([model.divisor for model in models], dtype=np.float64),
        "softmax": np.array([model.softmax for model in models], dtype=np.bool_),
        "cuts": cuts,
        "cut_starts": cut_starts,
        "categorical": categorical,
        "single": np.array(single),
    }


def _breadth_first(nodes: _Nodes, n_trees: int) -> tuple[IntArray, UIntArray, IntArray]:
    """Return all nodes in the order of the words, the place of each root in it, and the depth of each tree.

    Level by level, siblings side by side: the top of a tree, which every row visits, shares a few cache lines.
    """
    sizes = np.bincount(nodes.tree, minlength=n_trees)
    roots = np.cumsum(sizes) - sizes
    depths = np.zeros(n_trees, dtype=np.int64)
    level, levels = roots, [roots]
    while (inner := level[~nodes.leaf[level]]).size:
        level = np.stack([nodes.left[inner], nodes.right[inner]], axis=1).ravel()
        depths[nodes.tree[level]] = len(levels)
        levels.append(level)
        if len(levels) > len(nodes.tree):
            raise InvalidModel("a tree has a node that is its own descendant")
    reached = _join(levels, np.int64)
    order = reached[np.argsort(nodes.tree[reached], kind="stable")]
    # Nodes that pruning left behind are in nobody's reach and are not packed.
    kept = np.bincount(nodes.tree[order], minlength=n_trees)
    return order, (np.cumsum(kept) - kept).astype(np.uint64), depths


def _cuts(nodes: _Nodes, n_features: int) -> tuple[FloatArray, IntArray, BoolArray]:
    """Return the sorted thresholds or known codes of each feature, where they start, and which are categorical."""
    inner = ~nodes.leaf
    if (nodes.feature[inner] >= n_features).any() or (nodes.feature[inner] < 0).any():
        raise InvalidModel(
            f"a tree asks for feature {nodes.feature[inner].max()}, but rows have {n_features}"
        )
    categorical = np.zeros(n_features, dtype=np.bool_)
    categorical[nodes.feature[inner & nodes.categorical]] = True
    numerical = inner & ~nodes.categorical
    if categorical[nodes.feature[numerical]].any():
        raise InvalidModel(
            "a feature is categorical in one model and a number in another; train all on one schema"
        )
    if np.isnan(nodes.threshold[numerical]).any():
        raise InvalidModel("a tree compares with NaN")
    feature = np.concatenate([nodes.feature[numerical], nodes.feature[nodes.exception_node]])
    value = np.concatenate([nodes.threshold[numerical], nodes.exception_code])
    by_feature = np.split(
        value[np.argsort(feature, kind="stable")], np.cumsum(np.bincount(feature, minlength=n_features))
    )
    unique = [np.unique(values) for values in by_feature[:n_features]]
    return _join(unique, np.float64), _starts([len(values) for values in unique]), categorical


def _ranks(
    nodes: _Nodes, cuts: FloatArray, cut_starts: IntArray, categorical: BoolArray
) -> tuple[IntArray, UIntArray]:
    """Return for each inner node the rank of its threshold or the first word of its set, and the sets."""
    ranks = np.zeros(len(nodes.tree), dtype=np.int64)
    sets: list[UIntArray] = []
    n_words = 0
    for f in range(len(categorical)):
        here = np.flatnonzero(~nodes.leaf & (nodes.feature == f))
        known = cuts[cut_starts[f] : cut_starts[f + 1]]
        if not categorical[f]:
            ranks[here] = np.searchsorted(known, nodes.threshold[here])
            continue
        words = _sets(nodes, here, known)
        ranks[here] = n_words + np.arange(len(here)) * words.shape[1]
        n_words += words.size
        sets.append(words.ravel())
    return ranks, _join(sets, np.uint64)


def _sets(nodes: _Nodes, here: IntArray, known: FloatArray) -> UIntArray:
    """Return one row of words per node: a bit for each known code, for all others and for missing; 1 is right."""
    n_bits = len(known) + 2
    bits = np.zeros((len(here), -(-n_bits // 64) * 64), dtype=np.bool_)
    bits[:, :n_bits] = nodes.others_right[here, None]
    mine = nodes.feature[nodes.exception_node] == nodes.feature[here[0]]
    row = np.searchsorted(here, nodes.exception_node[mine])
    bits[row, np.searchsorted(known, nodes.exception_code[mine])] ^= True
    bits[:, len(known) + 1] = ~nodes.missing_left[here]
    return np.packbits(bits, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def _number_leaves(nodes: _Nodes, order: IntArray, n_trees: int) -> tuple[IntArray, IntArray]:
    """Return the number of each leaf within its tree, and how many leaves each tree has."""
    leaves = order[nodes.leaf[order]]
    counts = np.bincount(nodes.tree[leaves], minlength=n_trees)
    numbers = np.zeros(len(nodes.tree), dtype=np.int64)
    numbers[leaves] = np.arange(len(leaves)) - (np.cumsum(counts) - counts)[nodes.tree[leaves]]
    return numbers, counts


def _leaf_values(
    trees: Sequence[Tree], nodes: _Nodes, leaves: IntArray, dtype: npt.DTypeLike
) -> npt.NDArray[Any]:
    sizes = [len(tree.left) for tree in trees]
    starts = _starts(sizes)
    ends = np.searchsorted(nodes.tree[leaves], np.arange(len(trees) + 1))
    parts = [tree.values[leaves[ends[k] : ends[k + 1]] - starts[k]].ravel() for k, tree in enumerate(trees)]
    return _join(parts, dtype)


def _words(nodes: _Nodes, order: IntArray, ranks: IntArray, n_features: int) -> UIntArray:
    place = np.zeros(len(nodes.tree), dtype=np.int64)
    place[order] = np.arange(len(order))
    steps = np.where(nodes.leaf, 0, place[nodes.left] - place)
    # The second half of the columns sends missing values left; a set has a bit for them.
    again = ~nodes.leaf & nodes.missing_left & ~nodes.categorical
    columns = np.where(nodes.leaf, 0, nodes.feature + n_features * again)
    _check_width("nodes in a tree", steps, kernel.STEP_BITS)
    _check_width("features, counted twice,", columns, kernel.COLUMN_BITS)
    _check_width("thresholds of a feature, or words of sets,", ranks[~nodes.leaf], kernel.RANK_BITS - 1)
    is_set = (~nodes.leaf & nodes.categorical).astype(np.uint64)
    words = (
        (is_set << np.uint64(63))
        | (steps.astype(np.uint64) << np.uint64(kernel.STEP_SHIFT))
        | (columns.astype(np.uint64) << np.uint64(kernel.COLUMN_SHIFT))
        | ranks.astype(np.uint64)
    )
    return words[order]


def _check_width(what: str, numbers: IntArray, bits: int) -> None:
    if numbers.size and numbers.max() >= 1 << bits:
        raise InvalidModel(
            f"there are too many {what} to pack: {numbers.max()}, and the most is {2**bits - 1}"
        )


def _starts(counts: Sequence[int]) -> IntArray:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)


def _join(parts: Sequence[npt.NDArray[Any]], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Concatenate what may be nothing at all."""
    return np.concatenate([np.empty(0, dtype), *parts]).astype(dtype, copy=False)


def _flags(given: BoolArray | None, size: int) -> BoolArray:
    return np.zeros(size, dtype=np.bool_) if given is None else given


def constant(labels: IntArray, dtype: npt.DTypeLike) -> TreeModel:
    """Return a model that saw one class only."""
    return TreeModel((), np.zeros(1, dtype), labels)


def label_indices(given: npt.ArrayLike | None, n_classes: int) -> IntArray:
    """Return the labels that a model's classes stand for; one label is enough to make it a constant."""
    labels = np.arange(n_classes) if given is None else np.asarray(given)
    if labels.ndim != 1 or labels.dtype.kind not in "biu" or (labels < 0).any():
        raise InvalidModel(
            f"classes of a model must be label indices from 0, got {given!r}; say by `classes` which labels they are"
        )
    if len(labels) not in {1, n_classes} or len(set(labels.tolist())) != len(labels):
        raise InvalidModel(f"a model of {n_classes} classes needs as many different labels, got {given!r}")
    return labels.astype(np.int64)


def the_one(what: str, values: Sequence[Any]) -> Any:
    """Return what all models must share."""
    if len(set(values)) != 1:
        found = ", ".join(map(str, sorted(set(values)))) or "none: at least one model must not be a constant"
        raise InvalidModel(f"all models must have the same {what}, found {found}")
    return values[0]
