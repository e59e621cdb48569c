"""Linear classifiers of scikit-learn, on expanded features."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pacpredict import npz
from pacpredict.exceptions import InvalidModel
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
from pacpredict.votes.expansion import Expansion
from pacpredict.votes.stacked_linear import LinearModel, StackedLinear, read_linear

# All of them answer with the class of the highest decision function.
KINDS = {
    "logistic": "sklearn.linear_model.LogisticRegression",
    "linear-svc": "sklearn.svm.LinearSVC",
    "perceptron": "sklearn.linear_model.Perceptron",
    "ridge": "sklearn.linear_model.RidgeClassifier",
    "sgd": "sklearn.linear_model.SGDClassifier",
}
DEFAULTS: dict[str, dict[str, Any]] = {"logistic": {"max_iter": 1000}}
# Settings to choose among for all models alike: how strongly weights are kept small.
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "logistic": {"C": (0.001, 0.01, 0.1, 1.0, 10.0)},
    "linear-svc": {"C": (0.001, 0.01, 0.1, 1.0, 10.0)},
    "ridge": {"alpha": (0.1, 1.0, 10.0, 100.0, 1000.0)},
    "sgd": {"alpha": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)},
}


@dataclass(frozen=True)
class LinearLearner(Learner):
    """By name, numbers are standardised on the subset; a user's own estimator sees them as they are."""

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    standardise: bool = True
    suffix = "npz"
    libraries = ("scikit-learn",)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "LinearLearner":
        name = config["name"]
        params = params_from_json(config.get("params", cls.defaults(name)))
        return cls(name, params, standardise=config.get("standardise", True))

    @classmethod
    def of(cls, estimator: Any) -> "LinearLearner | None":
        name = name_of(estimator, KINDS)
        params = None if name is None else chosen_params(estimator)
        return None if name is None or params is None else cls(name, params, standardise=False)

    @classmethod
    def defaults(cls, name: str) -> dict[str, Any]:
        return dict(DEFAULTS.get(name, {}))

    def check_labels(self, labels: Sequence[Hashable]) -> None:
        check_class_weights(self.params, labels)

    def config(self) -> dict[str, Any]:
        return {"name": self.name, "params": params_to_json(self.params), "standardise": self.standardise}

    def origin(self) -> Origin:
        if self.standardise:
            return Origin(self.name, dict(self.params))
        return Origin(find_class(KINDS[self.name])(**self.params))

    def candidates(self, tune: Tune, seed: int) -> list[Learner]:
        others = settings_of(GRIDS.get(self.name, {}), tune, seed)
        return [self, *(replace(self, params={**self.params, **setting}) for setting in others)]

    def prepare(self, schema: Schema, rows: Rows) -> FloatArray:
        return schema.features(rows)

    def fit(self, records: TrainingSet, schema: Schema, seed: int) -> Trained:
        expansion = Expansion(schema.feature_categories)
        features = records.prepared
        scale = _Scale.of(expansion(features), expansion.n_numbers, standardise=self.standardise)
        model = settle(
            find_class(KINDS[self.name])(**self.params), seed, class_weights(self.params), records.names
        )
        model.fit(scale.apply(expansion(features)), records.labels, sample_weight=records.weights)
        return Trained(scale.fold(read_linear(model)), params_to_json(self.params))

    def dump(self, model: LinearModel) -> bytes:
        return npz.to_bytes(model._asdict())

    def load(self, data: bytes) -> LinearModel:
        stored = npz.from_bytes(data)
        if set(stored) != set(LinearModel._fields):
            raise InvalidModel(f"a linear model has {LinearModel._fields}, this file {sorted(stored)}")
        return LinearModel(**stored)

    def voter(
        self,
        models: Sequence[LinearModel | None],
        classes: Sequence[IntArray],
        n_classes: int,
        schema: Schema,
    ) -> StackedLinear:
        return StackedLinear.of(models, classes, n_classes, schema.feature_categories)

    def restore(self, arrays: Arrays) -> StackedLinear:
        return StackedLinear.from_arrays(arrays)


@dataclass(frozen=True)
class _Scale:
    """Standardises the quantities among expanded features; a missing one counts as the mean."""

    mean: FloatArray
    deviation: FloatArray

    @classmethod
    def of(cls, expanded: FloatArray, n: int, *, standardise: bool) -> "_Scale":
        if not standardise:
            return cls(np.zeros(n), np.ones(n))
        values, known = expanded[:, :n], 1.0 - expanded[:, n : 2 * n]
        counts = np.maximum(known.sum(axis=0), 1.0)
        mean = values.sum(axis=0) / counts
        deviation = np.sqrt((known * (values - mean) ** 2).sum(axis=0) / counts)
        # A constant is only centred; its deviation is 0 or, by rounding, next to nothing beside its size.
        return cls(mean, np.where(deviation > 1e-12 * np.abs(mean), deviation, 1.0))

    def apply(self, expanded: FloatArray) -> FloatArray:
        n = len(self.mean)
        known = 1.0 - expanded[:, n : 2 * n]
        expanded[:, :n] = (expanded[:, :n] - self.mean) * known / self.deviation
        return expanded

    def fold(self, model: LinearModel) -> LinearModel:
        """Move it into the weights: w (x - mean) (1 - missing) / deviation is linear in x and missing."""
        n = len(self.mean)
        folded = model.weights.copy()
        folded[:, :n] /= self.deviation
        shift = folded[:, :n] * self.mean
        folded[:, n : 2 * n] += shift
        return LinearModel(folded, model.biases - shift.sum(axis=1))
