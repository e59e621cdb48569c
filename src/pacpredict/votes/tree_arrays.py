"""One classifier of trees as named arrays, to be stored in an artifact before all are packed together."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import InvalidModel
from pacpredict.npz import Arrays
from pacpredict.votes.trees import Tree, TreeModel

_PER_NODE = ("left", "right", "feature", "threshold", "missing_left")
_SOMETIMES_PER_NODE = ("others_right", "categorical")  # None in trees without categorical splits


def to_arrays(model: TreeModel) -> Arrays:
    """Lay the trees side by side."""
    trees = model.trees
    arrays: Arrays = {
        "base": model.base,
        "labels": model.labels,
        "divisor": np.array(model.divisor),
        "softmax": np.array(model.softmax),
        "sizes": np.array([len(tree.left) for tree in trees], np.int64),
        "outputs": np.array([tree.output for tree in trees], np.int64),
        "categorical_trees": np.array([tree.exceptions is not None for tree in trees], np.bool_),
        "exception_sizes": np.array([len(_exceptions(tree)[0]) for tree in trees], np.int64),
    }
    if trees:
        arrays["values"] = np.concatenate([tree.values for tree in trees])
        arrays["exception_node"] = np.concatenate([_exceptions(tree)[0] for tree in trees])
        arrays["exception_code"] = np.concatenate([_exceptions(tree)[1] for tree in trees])
        for name in _PER_NODE:
            arrays[name] = np.concatenate([getattr(tree, name) for tree in trees])
        for name in _SOMETIMES_PER_NODE:
            arrays[name] = np.concatenate([_flags(tree, name) for tree in trees])
    return arrays


def from_arrays(arrays: Mapping[str, npt.NDArray[Any]]) -> TreeModel:
    """Return what `to_arrays` laid side by side."""
    try:
        return TreeModel(
            _trees(arrays),
            arrays["base"],
            arrays["labels"],
            divisor=float(arrays["divisor"]),
            softmax=bool(arrays["softmax"]),
        )
    except (KeyError, ValueError, IndexError, TypeError) as problem:
        raise InvalidModel(f"these are not the arrays of a model of trees: {problem!r}") from problem


def _trees(arrays: Mapping[str, npt.NDArray[Any]]) -> Sequence[Tree]:
    sizes = arrays["sizes"]
    if not len(sizes):
        return ()
    ends, pair_ends = np.cumsum(sizes)[:-1], np.cumsum(arrays["exception_sizes"])[:-1]
    per_node = {name: np.split(arrays[name], ends) for name in (*_PER_NODE, *_SOMETIMES_PER_NODE, "values")}
    nodes, codes = (np.split(arrays[name], pair_ends) for name in ("exception_node", "exception_code"))
    trees = []
    for t, categorical in enumerate(arrays["categorical_trees"].tolist()):
        own = {name: parts[t] for name, parts in per_node.items()}
        trees.append(
            Tree(
                **own,
                output=int(arrays["outputs"][t]),
                exceptions=(nodes[t], codes[t]) if categorical else None,
            )
        )
    return trees


def _exceptions(tree: Tree) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    return tree.exceptions or (np.empty(0, np.int64), np.empty(0))


def _flags(tree: Tree, name: str) -> npt.NDArray[np.bool_]:
    given = getattr(tree, name)
    return np.zeros(len(tree.left), np.bool_) if given is None else given
