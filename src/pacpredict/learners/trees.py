"""scikit-learn's forests and histogram gradient boosting: codes as they are, missing values as they are."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pacpredict import npz
from pacpredict.learners.estimators import (
    check_class_weights,
    chosen_params,
    class_weights,
    find_class,
    name_of,
    params_from_json,
    params_to_json,
    settings_of,
    settle,
)
from pacpredict.learners.learner import Learner, Origin, Trained, TrainingSet
from pacpredict.learners.registry import Tune
from pacpredict.npz import Arrays
from pacpredict.tables.schema import Rows, Schema
from pacpredict.types import FloatArray, IntArray
from pacpredict.votes import tree_arrays
from pacpredict.votes.packed_trees import PackedTrees
from pacpredict.votes.trees import TreeModel, constant, pack

KINDS = {
    "random-forest": "sklearn.ensemble.RandomForestClassifier",
    "hist-gradient-boosting": "sklearn.ensemble.HistGradientBoostingClassifier",
    "extra-trees": "sklearn.ensemble.ExtraTreesClassifier",
    "decision-tree": "sklearn.tree.DecisionTreeClassifier",
}
# Leaves of one record make models that disagree; a few records per leaf cost no accuracy on tables.
DEFAULTS: dict[str, dict[str, Any]] = {
    "random-forest": {"n_estimators": 100, "min_samples_leaf": 5},
    "hist-gradient-boosting": {"max_depth": 4, "early_stopping": False},
}
# Settings to choose among for all models alike: larger leaves and flatter trees vary less from subset to subset.
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "random-forest": {"min_samples_leaf": (1, 5, 20, 50), "max_features": (0.3, 1.0)},
    "extra-trees": {"min_samples_leaf": (1, 5, 20, 50), "max_features": (0.3, 1.0)},
    "decision-tree": {"min_samples_leaf": (1, 5, 20, 50, 100)},
    "hist-gradient-boosting": {"max_depth": (2, 3, 4, 6), "learning_rate": (0.03, 0.1)},
}


@dataclass(frozen=True)
class TreesLearner(Learner):
    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    suffix = "npz"
    libraries = ("scikit-learn",)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "TreesLearner":
        name = config["name"]
        return cls(name, params_from_json(config.get("params", cls.defaults(name))))

    @classmethod
    def of(cls, estimator: Any) -> "TreesLearner | None":
        """Take one of scikit-learn's classifiers of trees, not a subclass that may decide otherwise."""
        name = name_of(estimator, KINDS)
        params = None if name is None else chosen_params(estimator)
        return None if name is None or params is None else cls(name, params)

    @classmethod
    def defaults(cls, name: str) -> dict[str, Any]:
        return dict(DEFAULTS.get(name, {}))

    def check_labels(self, labels: Sequence[Hashable]) -> None:
        check_class_weights(self.params, labels)

    def config(self) -> dict[str, Any]:
        return {"name": self.name, "params": params_to_json(self.params)}

    def origin(self) -> Origin:
        if self.params.keys() >= self.defaults(self.name).keys():
            return Origin(self.name, dict(self.params))
        return Origin(find_class(KINDS[self.name])(**self.params))

    def candidates(self, tune: Tune, seed: int) -> list[Learner]:
        others = settings_of(GRIDS.get(self.name, {}), tune, seed)
        return [self, *(replace(self, params={**self.params, **setting}) for setting in others)]

    def prepare(self, schema: Schema, rows: Rows) -> FloatArray:
        return schema.features(rows)

    def fit(self, records: TrainingSet, schema: Schema, seed: int) -> Trained:
        from pacpredict.votes.pack_sklearn import read_sklearn  # noqa: PLC0415  # scikit-learn, which votes do not need

        model = settle(
            find_class(KINDS[self.name])(**self.params), seed, class_weights(self.params), records.names
        )
        if self.name == "hist-gradient-boosting" and "categorical_features" not in self.params:
            model.set_params(categorical_features=_few_categories(records.prepared, schema, model.max_bins))
        model.fit(records.prepared, records.labels, sample_weight=records.weights)
        return Trained(read_sklearn(model, np.arange(len(model.classes_))), params_to_json(self.params))

    def dump(self, model: TreeModel) -> bytes:
        return npz.to_bytes(tree_arrays.to_arrays(model))

    def load(self, data: bytes) -> TreeModel:
        return tree_arrays.from_arrays(npz.from_bytes(data))

    def voter(
        self,
        models: Sequence[TreeModel | None],
        classes: Sequence[IntArray],
        n_classes: int,  # noqa: ARG002  # packed trees carry their labels
        schema: Schema,
    ) -> PackedTrees:
        trees = [
            constant(own, np.float64) if model is None else model.relabelled(own)
            for model, own in zip(models, classes, strict=True)
        ]
        single = self.name != "hist-gradient-boosting"  # forests round rows to float32 before they compare
        return PackedTrees(**pack(trees, schema.n_features, single=single))

    def restore(self, arrays: Arrays) -> PackedTrees:
        return PackedTrees.from_arrays(arrays)


def _few_categories(prepared: FloatArray, schema: Schema, most: int) -> list[bool]:
    """Say which features gradient boosting can split by sets of categories in this subset; others are numbers."""
    few = [0 < n <= most for n in schema.feature_categories]
    return [is_few and bool((~np.isnan(prepared[:, j])).any()) for j, is_few in enumerate(few)]
