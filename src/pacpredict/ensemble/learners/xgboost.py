"""XGBoost, the paper's learner for tables: native categories and missing values, settings searched on the subset."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pacpredict.core.validate import FloatArray, IntArray
from pacpredict.ensemble.arrays import Arrays
from pacpredict.ensemble.learners.learner import Trained, chosen_params
from pacpredict.ensemble.learners.search import Tune, search
from pacpredict.ensemble.tables.schema import Rows, Schema
from pacpredict.ensemble.votes.pack_xgboost import read_xgboost
from pacpredict.ensemble.votes.packed_trees import PackedTrees
from pacpredict.ensemble.votes.trees import constant, pack
from pacpredict.exceptions import MissingExtra

# Without a search: the setting that searches on census income chose most often.
DEFAULTS = {"max_depth": 4, "learning_rate": 0.1, "n_estimators": 200}
# What XGBClassifier chooses by itself, from the number of classes that a subset has.
_OBJECTIVES = (None, "binary:logistic", "multi:softprob", "multi:softmax")
_PACKABLE = {
    "booster": (None, "gbtree"),
    "multi_strategy": (None, "one_output_per_tree"),
    "objective": _OBJECTIVES,
}


@dataclass(frozen=True)
class XGBoostLearner:
    params: Mapping[str, Any] = field(default_factory=lambda: dict(DEFAULTS))
    tune: Tune = "none"
    name = "xgboost"
    suffix = "ubj"
    needs_trust = False

    @classmethod
    def of(cls, estimator: Any) -> "XGBoostLearner | None":
        """Take an XGBClassifier whose trees can be packed."""
        if type(estimator).__name__ != "XGBClassifier" or type(estimator).__module__ != "xgboost.sklearn":
            return None
        params = chosen_params(estimator)
        if params is None or "missing" in params:
            return None
        packable = all(params.get(name) in values for name, values in _PACKABLE.items())
        return cls({name: params[name] for name in params if name != "objective"}) if packable else None

    def config(self) -> dict[str, Any]:
        return {"name": self.name, "params": dict(self.params), "tune": self.tune}

    def prepare(self, schema: Schema, rows: Rows) -> FloatArray:
        return schema.features(rows)

    def fit(self, prepared: FloatArray, labels: IntArray, schema: Schema, seed: int) -> Trained:
        types = feature_types(schema)
        params = dict(self.params)
        if self.tune != "none":
            params |= search(prepared, labels, types, params, seed, self.tune)
        own = {"random_state": seed, "n_jobs": 1, "feature_types": types, "enable_categorical": True}
        model = library().XGBClassifier(**{"tree_method": "hist", **params, **own})
        model.fit(prepared, labels)
        return Trained(bytes(model.get_booster().save_raw("ubj")), params)

    def dump(self, model: bytes) -> bytes:
        return model

    def load(self, data: bytes) -> bytes:
        return data

    def voter(
        self,
        models: Sequence[bytes | None],
        classes: Sequence[IntArray],
        n_classes: int,  # noqa: ARG002  # packed trees carry their labels
        schema: Schema,
    ) -> PackedTrees:
        trees = [
            constant(own, np.float32) if model is None else read_xgboost(model, own)
            for model, own in zip(models, classes, strict=True)
        ]
        return PackedTrees(**pack(trees, schema.n_features, single=True))

    def restore(self, arrays: Arrays) -> PackedTrees:
        return PackedTrees.from_arrays(arrays)


def feature_types(schema: Schema) -> list[str]:
    """Say which features are codes of categories ("c") and which are quantities ("q")."""
    return ["c" if n_categories else "q" for n_categories in schema.feature_categories]


def library() -> Any:
    """Import XGBoost, which is needed to train; the trained models vote without it."""
    try:
        import xgboost  # noqa: PLC0415  # an extra
    except ImportError as problem:
        raise MissingExtra("xgboost", "the learner xgboost") from problem
    return xgboost
