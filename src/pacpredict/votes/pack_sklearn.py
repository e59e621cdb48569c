"""Pack scikit-learn's forests, decision trees and histogram gradient boosting."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from pacpredict.exceptions import InvalidModel
from pacpredict.types import FloatArray, IntArray
from pacpredict.votes.packed_trees import PackedTrees
from pacpredict.votes.trees import BoolArray, Tree, TreeModel, constant, label_indices, pack, the_one

_FORESTS = (RandomForestClassifier, ExtraTreesClassifier)
_AVERAGED = (*_FORESTS, DecisionTreeClassifier)


def pack_sklearn(
    estimators: Iterable[Any], classes: Sequence[npt.ArrayLike | None] | None = None
) -> PackedTrees:
    """Return the trees of fitted classifiers that take the same features.

    Parameters
    ----------
    estimators
        RandomForestClassifier, ExtraTreesClassifier and DecisionTreeClassifier, or HistGradientBoostingClassifier
        fitted on numbers, with codes in its categorical columns. Forests are summed in order, as with n_jobs=1. None
        stands for a model that saw one class only and is a constant.
    classes
        per model the label indices that its `classes_` stand for; None, for one model or all, if they are label
        indices themselves. A model with one label is a constant.

    Raises
    ------
    InvalidModel
        if an estimator is of another kind, or does not fit its classes or the other estimators.
    """
    given = list(estimators)
    labels = [None] * len(given) if classes is None else list(classes)
    if len(labels) != len(given):
        raise InvalidModel(f"{len(given)} estimators need as many entries of classes, got {len(labels)}")
    models = [read_sklearn(*pair) for pair in zip(given, labels, strict=True)]
    fitted = [estimator for estimator in given if estimator is not None]
    n_features = the_one("number of features", [estimator.n_features_in_ for estimator in fitted])
    single = the_one("precision", [rounds_rows(estimator) for estimator in fitted])
    return PackedTrees(**pack(models, n_features, single=single))


def rounds_rows(estimator: Any) -> bool:
    """Whether rows are rounded to float32 before they are compared: forests do, gradient boosting does not."""
    return isinstance(estimator, _AVERAGED)


def read_sklearn(estimator: Any, given: npt.ArrayLike | None) -> TreeModel:
    """Return one fitted classifier as trees; see pack_sklearn."""
    own = (
        np.zeros(1, dtype=np.int64) if estimator is None else np.asarray(getattr(estimator, "classes_", None))
    )
    if given is None and estimator is not None:
        given = own
    labels = label_indices(given, len(own) if own.ndim == 1 else 0)
    if len(labels) == 1:
        return constant(labels, np.float64)
    if isinstance(estimator, HistGradientBoostingClassifier):
        return _boosted(estimator, labels)
    if rounds_rows(estimator):
        return _averaged(estimator, labels)
    raise InvalidModel(f"{type(estimator).__name__} cannot be packed")


def _averaged(estimator: Any, labels: IntArray) -> TreeModel:
    members = estimator.estimators_ if isinstance(estimator, _FORESTS) else [estimator]
    trees = [
        Tree(
            left=tree.children_left,
            right=tree.children_right,
            feature=tree.feature,
            threshold=tree.threshold,
            missing_left=tree.missing_go_to_left.astype(np.bool_),
            values=tree.value[:, 0, :],
            output=0,
        )
        for tree in (member.tree_ for member in members)
    ]
    return TreeModel(trees, np.zeros(len(labels)), labels, divisor=float(len(trees)))


def _boosted(estimator: Any, labels: IntArray) -> TreeModel:
    """Read private attributes: scikit-learn shows these trees in no other way."""
    baseline = np.ravel(estimator._baseline_prediction)  # noqa: SLF001
    is_binary = len(labels) == 2
    # Of two classes only the second has trees; it wins where its sum is above 0.
    base = np.array([0.0, *baseline]) if is_binary else baseline.astype(np.float64)
    codes = _Codes(estimator)
    trees = [
        _boosted_tree(predictor, codes, k + is_binary)
        for iteration in estimator._predictors  # noqa: SLF001
        for k, predictor in enumerate(iteration)
    ]
    return TreeModel(trees, base, labels)


class _Codes:
    """How an estimator of gradient boosting sees columns: those with categories first, encoded by their rank."""

    def __init__(self, estimator: Any) -> None:
        categorical = estimator.is_categorical_
        if categorical is None:
            categorical = np.zeros(estimator.n_features_in_, dtype=np.bool_)
        self.columns = np.concatenate([np.flatnonzero(categorical), np.flatnonzero(~categorical)])
        self.known: list[FloatArray] = []
        if categorical.any():
            encoder = estimator._preprocessor.named_transformers_["encoder"]  # noqa: SLF001
            self.known = [_as_codes(categories) for categories in encoder.categories_]

    def exceptions(self, predictor: Any, splits: IntArray) -> tuple[IntArray, FloatArray]:
        """Return the pairs of node and code that go the other way than missing values.

        A category that the estimator never saw is missing to it, so it goes where the missing go.
        """
        nodes = predictor.nodes
        bits = np.unpackbits(
            predictor.raw_left_cat_bitsets.astype("<u4").view(np.uint8), axis=1, bitorder="little"
        )
        pairs: list[tuple[IntArray, FloatArray]] = []
        for split in splits:
            node = nodes[split]
            known = self.known[node["feature_idx"]]
            goes_left = bits[node["bitset_idx"], : len(known)].astype(np.bool_)
            codes = known[goes_left != bool(node["missing_go_to_left"])]
            pairs.append((np.full(len(codes), split), codes))
        return (
            np.concatenate([np.empty(0, np.int64), *(node for node, _ in pairs)]),
            np.concatenate([np.empty(0), *(codes for _, codes in pairs)]),
        )


def _as_codes(categories: npt.NDArray[Any]) -> FloatArray:
    if categories.dtype.kind not in "biuf":
        raise InvalidModel(
            f"categories must be codes, found {categories[0]!r}; replace each category by its number before fitting"
        )
    codes = categories.astype(np.float64)
    return codes[~np.isnan(codes)]


def _boosted_tree(predictor: Any, codes: _Codes, output: int) -> Tree:
    nodes = predictor.nodes
    leaf: BoolArray = nodes["is_leaf"].astype(np.bool_)
    categorical = nodes["is_categorical"].astype(np.bool_) & ~leaf
    missing_left = nodes["missing_go_to_left"].astype(np.bool_)
    return Tree(
        left=np.where(leaf, -1, nodes["left"].astype(np.int64)),
        right=nodes["right"].astype(np.int64),
        feature=codes.columns[np.where(leaf, 0, nodes["feature_idx"])],
        threshold=nodes["num_threshold"],
        missing_left=missing_left,
        values=nodes["value"][:, None],
        output=output,
        categorical=categorical,
        others_right=~missing_left,
        exceptions=codes.exceptions(predictor, np.flatnonzero(categorical)) if categorical.any() else None,
    )
