"""scikit-learn's forests and histogram gradient boosting: codes as they are, missing values as they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from pacpredict.core.validate import FloatArray, IntArray
from pacpredict.ensemble import arrays as npz
from pacpredict.ensemble.arrays import Arrays
from pacpredict.ensemble.learners.learner import Trained, chosen_params, seeded, single_thread
from pacpredict.ensemble.tables.schema import Rows, Schema
from pacpredict.ensemble.votes import tree_arrays
from pacpredict.ensemble.votes.pack_sklearn import read_sklearn, rounds_rows
from pacpredict.ensemble.votes.packed_trees import PackedTrees
from pacpredict.ensemble.votes.trees import TreeModel, constant, pack

KINDS = {
    "random-forest": RandomForestClassifier,
    "hist-gradient-boosting": HistGradientBoostingClassifier,
    "extra-trees": ExtraTreesClassifier,
    "decision-tree": DecisionTreeClassifier,
}
# Leaves of one record make models that disagree; a few records per leaf cost no accuracy on tables.
DEFAULTS: dict[str, dict[str, Any]] = {
    "random-forest": {"n_estimators": 100, "min_samples_leaf": 5},
    "hist-gradient-boosting": {"max_depth": 4, "early_stopping": False},
}


@dataclass(frozen=True)
class TreesLearner:
    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    suffix = "npz"
    needs_trust = False

    @classmethod
    def of(cls, estimator: Any) -> "TreesLearner | None":
        """Take one of scikit-learn's classifiers of trees, not a subclass that may decide otherwise."""
        names = [name for name, kind in KINDS.items() if type(estimator) is kind]
        params = chosen_params(estimator) if names else None
        return None if params is None else cls(names[0], params)

    def config(self) -> dict[str, Any]:
        return {"name": self.name, "params": dict(self.params)}

    def prepare(self, schema: Schema, rows: Rows) -> FloatArray:
        return schema.features(rows)

    def fit(self, prepared: FloatArray, labels: IntArray, schema: Schema, seed: int) -> Trained:
        model = KINDS[self.name](**self.params)
        every = model.get_params()
        model.set_params(**single_thread(every), **seeded(every, seed))
        if self.name == "hist-gradient-boosting" and "categorical_features" not in self.params:
            model.set_params(categorical_features=_few_categories(prepared, schema, model.max_bins))
        model.fit(prepared, labels)
        return Trained(read_sklearn(model, np.arange(len(model.classes_))), dict(self.params))

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
        single = rounds_rows(KINDS[self.name]())
        return PackedTrees(**pack(trees, schema.n_features, single=single))

    def restore(self, arrays: Arrays) -> PackedTrees:
        return PackedTrees.from_arrays(arrays)


def _few_categories(prepared: FloatArray, schema: Schema, most: int) -> list[bool]:
    """Say which features gradient boosting can split by sets of categories in this subset; others are numbers."""
    few = [0 < n <= most for n in schema.feature_categories]
    return [is_few and bool((~np.isnan(prepared[:, j])).any()) for j, is_few in enumerate(few)]
