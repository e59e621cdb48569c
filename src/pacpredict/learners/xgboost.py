"""XGBoost, the paper's learner for tables: native categories and missing values, settings searched on the subset."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pacpredict import defaults
from pacpredict.exceptions import MissingExtra
from pacpredict.learners.estimators import (
    ClassWeights,
    by_code,
    check_class_weights,
    chosen_params,
    params_from_json,
    params_to_json,
    settings_of,
)
from pacpredict.learners.learner import Learner, Origin, Trained, TrainingSet
from pacpredict.learners.registry import TUNES, Tune
from pacpredict.npz import Arrays
from pacpredict.tables.schema import Rows, Schema
from pacpredict.types import FloatArray, IntArray
from pacpredict.votes.pack_xgboost import read_xgboost
from pacpredict.votes.packed_trees import PackedTrees
from pacpredict.votes.trees import constant, pack

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
class XGBoostLearner(Learner):
    """Parameters are those of XGBClassifier, and class_weight as scikit-learn's classifiers have it."""

    params: Mapping[str, Any] = field(default_factory=lambda: dict(DEFAULTS))
    tune: Tune = defaults.TUNE
    name = "xgboost"
    suffix = "ubj"
    libraries = ("scikit-learn", "xgboost")
    tunes = TUNES

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "XGBoostLearner":
        return cls(params_from_json(config.get("params", DEFAULTS)), config.get("tune", defaults.TUNE))

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

    @classmethod
    def defaults(cls, name: str) -> dict[str, Any]:  # noqa: ARG003  # there is one name
        return dict(DEFAULTS)

    def require(self) -> None:
        library()

    def check_labels(self, labels: Sequence[Hashable]) -> None:
        check_class_weights(self.params, labels)

    def config(self) -> dict[str, Any]:
        return {"name": self.name, "params": params_to_json(self.params), "tune": self.tune}

    def origin(self) -> Origin:
        if self.params.keys() >= DEFAULTS.keys():
            return Origin(self.name, dict(self.params))
        return Origin(library().XGBClassifier(**self.params))

    def candidates(self, tune: Tune, seed: int) -> list[Learner]:
        from pacpredict.learners.search import GRID, TREES  # noqa: PLC0415  # scikit-learn, which votes do not need

        others = settings_of({**GRID, "n_estimators": TREES}, tune, seed)
        return [self, *(replace(self, params={**self.params, **setting}) for setting in others)]

    def prepare(self, schema: Schema, rows: Rows) -> FloatArray:
        return schema.features(rows)

    def fit(self, records: TrainingSet, schema: Schema, seed: int) -> Trained:
        types = feature_types(schema)
        params = {name: value for name, value in self.params.items() if name != "class_weight"}
        weighted = records._replace(weights=_weights(records, self.params.get("class_weight")))
        if self.tune != "none":
            from pacpredict.learners.search import search  # noqa: PLC0415  # scikit-learn, which votes do not need

            params |= search(weighted, types, params, seed, self.tune)
        own = {"random_state": seed, "n_jobs": 1, "feature_types": types, "enable_categorical": True}
        model = library().XGBClassifier(**{"tree_method": "hist", **params, **own})
        model.fit(weighted.prepared, weighted.labels, sample_weight=weighted.weights)
        notes = params_to_json({**self.params, **params})
        return Trained(bytes(model.get_booster().save_raw("ubj")), notes)

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


def _weights(records: TrainingSet, class_weight: ClassWeights | str | None) -> FloatArray | None:
    """Return what each record counts, with the weight of its class."""
    if class_weight is None:
        return records.weights
    from sklearn.utils.class_weight import compute_sample_weight  # noqa: PLC0415

    own = class_weight if isinstance(class_weight, str) else by_code(class_weight, records.names)
    of_class = np.asarray(compute_sample_weight(own, records.labels), np.float64)
    return of_class if records.weights is None else of_class * records.weights


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
