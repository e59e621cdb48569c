"""Pack XGBoost classifiers: boosters in, PackedTrees out. XGBoost itself is needed only to have boosters."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pacpredict.core.compiled import compiled
from pacpredict.exceptions import InvalidModel
from pacpredict.types import IntArray
from pacpredict.votes import ubjson
from pacpredict.votes.packed_trees import PackedTrees
from pacpredict.votes.trees import Tree, TreeModel, constant, label_indices, pack, the_one

if TYPE_CHECKING:
    from xgboost import Booster

# The largest float32 margin whose probability is not above 1/2: XGBoost computes 1 / (expf(-margin) + 1 + 1e-16) in
# float32, and expf(-margin) + 1 still rounds to 2 here.
_EVEN_MARGIN = np.float32(1.5 * 2.0**-24)

_OBJECTIVES = ("binary:logistic", "multi:softprob", "multi:softmax")


def pack_xgboost(
    boosters: "Iterable[Booster | None]", classes: Sequence[npt.ArrayLike | None] | None = None
) -> PackedTrees:
    """Return the trees of classifiers that take the same features.

    Parameters
    ----------
    boosters
        gbtree boosters with objective binary:logistic, multi:softprob or multi:softmax. All their trees count, as in
        Booster.predict; slice a booster that stopped early to its best iterations. None stands for a model that saw
        one class only and is a constant.
    classes
        per model the label indices that its own classes 0, 1, ... stand for; None, for one model or all, if they are
        the labels. A model with one label is a constant, whatever its trees say.

    Raises
    ------
    InvalidModel
        if a booster is of another kind, or does not fit its classes or the other boosters.
    """
    raw = [None if booster is None else bytes(booster.save_raw("ubj")) for booster in boosters]
    labels = [None] * len(raw) if classes is None else list(classes)
    if len(labels) != len(raw):
        raise InvalidModel(f"{len(raw)} boosters need as many entries of classes, got {len(labels)}")
    documents = [None if ubj is None else _document(ubj) for ubj in raw]
    n_features = the_one("number of features", [_n_features(d) for d in documents if d is not None])
    models = [_model(*pair) for pair in zip(documents, labels, strict=True)]
    return PackedTrees(**pack(models, n_features, single=True))


def read_xgboost(ubj: bytes, classes: npt.ArrayLike) -> TreeModel:
    """Return one stored booster as trees; `classes` are the label indices that its own classes stand for."""
    return _model(_document(ubj), classes)


def _document(ubj: bytes) -> dict[str, Any]:
    learner: dict[str, Any] = ubjson.parse(ubj)["learner"]
    return learner


def _n_features(learner: dict[str, Any]) -> int:
    return int(learner["learner_model_param"]["num_feature"])


def _model(learner: dict[str, Any] | None, given: npt.ArrayLike | None) -> TreeModel:
    n_classes = 1 if learner is None else _n_classes(learner)
    labels = label_indices(given, n_classes)
    if learner is None or len(labels) == 1:
        return constant(labels, np.float32)
    objective = learner["objective"]["name"]
    booster = learner["gradient_booster"]
    if objective not in _OBJECTIVES or booster["name"] != "gbtree":
        raise InvalidModel(
            f"only gbtree boosters with an objective among {', '.join(_OBJECTIVES)} can be packed, "
            f"got {booster['name']} with {objective}"
        )
    is_binary = objective == "binary:logistic"
    trees = [
        _tree(tree, 1 if is_binary else int(output))
        for tree, output in zip(booster["model"]["trees"], booster["model"]["tree_info"], strict=True)
    ]
    base = _base_score(learner["learner_model_param"]["base_score"], n_classes, is_binary=is_binary)
    return TreeModel(trees, base, labels, softmax=objective == "multi:softprob")


def _n_classes(learner: dict[str, Any]) -> int:
    return max(2, int(learner["learner_model_param"]["num_class"]))


def _base_score(text: str, n_classes: int, *, is_binary: bool) -> npt.NDArray[np.float32]:
    """Return the margins before any tree: XGBoost 3.1 and later write one per class, earlier ones one number."""
    scores = np.array([float(part) for part in text.strip("[]").split(",")], dtype=np.float32)
    if is_binary:
        return np.array([_EVEN_MARGIN, margin(scores[0])], dtype=np.float32)
    return np.array(np.broadcast_to(scores, n_classes))


@compiled
def margin(probability: np.float32) -> float:
    """Compute as XGBoost does: compiled, it is the same logf, where NumPy's may differ in the last bit."""
    return -math.log(np.float32(1) / probability - np.float32(1))


def _tree(tree: dict[str, Any], output: int) -> Tree:
    if int(tree["tree_param"]["size_leaf_vector"]) > 1:
        raise InvalidModel("trees with vectors at their leaves (multi_strategy) cannot be packed")
    left = np.asarray(tree["left_children"], dtype=np.int64)
    conditions = np.asarray(tree["split_conditions"], dtype=np.float32)  # at a leaf, its value
    categorical = np.asarray(tree["split_type"], dtype=np.bool_)
    if not np.isfinite(conditions[~categorical]).all():
        raise InvalidModel("a booster has a threshold or leaf that is not finite")
    return Tree(
        left=left,
        right=np.asarray(tree["right_children"], dtype=np.int64),
        feature=np.asarray(tree["split_indices"], dtype=np.int64),
        # XGBoost goes left where x < condition; among float32, that is x <= the one before it.
        threshold=np.nextafter(conditions, np.float32(-np.inf)).astype(np.float64),
        missing_left=np.asarray(tree["default_left"], dtype=np.bool_),
        values=conditions[:, None],
        output=output,
        categorical=categorical,
        exceptions=_categories(tree),
    )


def _categories(tree: dict[str, Any]) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """Return the pairs of node and code that go right; every other code, also one never seen, goes left."""
    nodes, sizes = (
        np.asarray(tree[name], dtype=np.int64) for name in ("categories_nodes", "categories_sizes")
    )
    return np.repeat(nodes, sizes), np.asarray(tree["categories"], dtype=np.float64)
