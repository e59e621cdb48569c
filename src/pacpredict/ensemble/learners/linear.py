"""Linear classifiers of scikit-learn, on expanded features."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.svm import LinearSVC

from pacpredict.core.validate import FloatArray, IntArray
from pacpredict.ensemble import arrays as npz
from pacpredict.ensemble.arrays import Arrays
from pacpredict.ensemble.learners.learner import Trained, chosen_params, seeded, single_thread
from pacpredict.ensemble.tables.schema import Rows, Schema
from pacpredict.ensemble.votes.expansion import Expansion
from pacpredict.ensemble.votes.stacked_linear import LinearModel, StackedLinear, read_linear
from pacpredict.exceptions import InvalidModel

# All of them answer with the class of the highest decision function.
KINDS = {
    "logistic": LogisticRegression,
    "linear-svc": LinearSVC,
    "perceptron": Perceptron,
    "ridge": RidgeClassifier,
    "sgd": SGDClassifier,
}
DEFAULTS: dict[str, dict[str, Any]] = {"logistic": {"max_iter": 1000}}


@dataclass(frozen=True)
class LinearLearner:
    """By name, numbers are standardised on the subset; a user's own estimator sees them as they are."""

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    standardise: bool = True
    suffix = "npz"
    needs_trust = False

    @classmethod
    def of(cls, estimator: Any) -> "LinearLearner | None":
        names = [name for name, kind in KINDS.items() if type(estimator) is kind]
        params = chosen_params(estimator) if names else None
        return None if params is None else cls(names[0], params, standardise=False)

    def config(self) -> dict[str, Any]:
        return {"name": self.name, "params": dict(self.params), "standardise": self.standardise}

    def prepare(self, schema: Schema, rows: Rows) -> FloatArray:
        return schema.features(rows)

    def fit(self, prepared: FloatArray, labels: IntArray, schema: Schema, seed: int) -> Trained:
        expansion = Expansion(schema.feature_categories)
        scale = _Scale.of(expansion(prepared), expansion.n_numbers, standardise=self.standardise)
        model = KINDS[self.name](**self.params)
        every = model.get_params()
        model.set_params(**single_thread(every), **seeded(every, seed))
        model.fit(scale.apply(expansion(prepared)), labels)
        return Trained(scale.fold(read_linear(model)), dict(self.params))

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
