"""Any other classifier of scikit-learn's interface, pipelines included: trained as it is, asked one after another."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from pacpredict.exceptions import InvalidModel
from pacpredict.learners import skops_files
from pacpredict.learners.estimators import (
    ClassWeights,
    check_class_weights,
    class_weights,
    params_from_json,
    params_to_json,
    seeded,
    settle,
)
from pacpredict.learners.learner import Learner, Origin, Prepared, Trained, TrainingSet, subset_of
from pacpredict.npz import Arrays
from pacpredict.tables.schema import Rows, Schema
from pacpredict.types import IntArray, Votes
from pacpredict.votes.expansion import Expansion

# The step before a bare estimator, by which stored models are known to have one.
_FILLING = "missing values"


class EstimatorLearner(Learner):
    """Pipelines, and what is built around one, get a frame of a table with names; other estimators get numbers.

    A bare estimator gets one column per category. A missing number is the mean of the subset, with a flag if the subset
    has such. A pipeline that cannot take a row votes for the most frequent class of its subset.
    """

    name = "estimator"
    suffix = "skops"
    libraries = ("scikit-learn", "skops")
    needs_trust = True

    def __init__(
        self,
        estimator: Any,
        *,
        takes_frames: bool | None = None,
        weights: Mapping[str, ClassWeights] | None = None,
    ) -> None:
        self.estimator = estimator  # None when only stored models are asked
        self.takes_frames = _chooses_columns(estimator) if takes_frames is None else takes_frames
        # By label, of all classes; a stored model has them by code, of its own classes.
        self.class_weights = class_weights(estimator.get_params()) if weights is None else weights

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "EstimatorLearner":
        # The first release had no weights by label.
        weights = params_from_json(config.get("class_weights", {}))
        return cls(None, takes_frames=bool(config["takes_frames"]), weights=weights)

    @property
    def takes_weights(self) -> bool:  # type: ignore[override]  # read only
        return _weights_name(self.estimator) is not None

    def check_labels(self, labels: Sequence[Hashable]) -> None:
        check_class_weights(self.class_weights, labels)

    def config(self) -> dict[str, Any]:
        kind = type(self.estimator)
        return {
            "name": self.name,
            "takes_frames": self.takes_frames,
            "class": f"{kind.__module__}.{kind.__qualname__}",
            "repr": repr(self.estimator),
            "class_weights": params_to_json(self.class_weights),
        }

    def origin(self) -> Origin:
        return Origin(self.estimator)

    def trainer(self, stored: Iterable[bytes | None]) -> "EstimatorLearner":
        """Take the estimator from a stored model; its seed, its classes' weights and nothing else are its own."""
        model = self.load(next(data for data in stored if data is not None))
        estimator = clone(
            model[-1] if isinstance(model, Pipeline) and _FILLING in model.named_steps else model
        )
        estimator.set_params(**seeded(estimator.get_params(), None), **self.class_weights)
        return EstimatorLearner(estimator, takes_frames=self.takes_frames, weights=self.class_weights)

    def prepare(self, schema: Schema, rows: Rows) -> Prepared:
        if schema.is_named and self.takes_frames:
            return schema.frame(rows)
        return Expansion(schema.feature_categories).without_flags(schema.features(rows))

    def fit(self, records: TrainingSet, schema: Schema, seed: int) -> Trained:  # noqa: ARG002
        model = settle(clone(self.estimator), seed, self.class_weights, records.names)
        if not hasattr(records.prepared, "iloc"):
            filling = SimpleImputer(add_indicator=True, keep_empty_features=True)
            model = Pipeline([(_FILLING, filling), ("estimator", model)])
        weights = {} if records.weights is None else {str(_weights_name(model)): records.weights}
        model.fit(records.prepared, records.labels, **weights)
        model.usual_class_ = int(np.bincount(records.labels).argmax())
        return Trained(model, {})

    def dump(self, model: Any) -> bytes:
        return skops_files.dumps(model)

    def load(self, data: bytes) -> Any:
        """Load what the caller has decided to trust."""
        return skops_files.loads(data)

    def voter(
        self,
        models: Sequence[Any],
        classes: Sequence[IntArray],
        n_classes: int,  # noqa: ARG002  # the classes of each model are enough
        schema: Schema,  # noqa: ARG002
    ) -> "Loop":
        return Loop(models, classes)

    def restore(self, arrays: Arrays) -> "Loop":
        raise InvalidModel(f"the models of a loop are stored one by one, not as {sorted(arrays)}")


class Loop:
    """Asks each model in turn."""

    def __init__(self, models: Sequence[Any], classes: Sequence[IntArray]) -> None:
        self._models = list(models)
        self._classes = [np.asarray(own, np.int16) for own in classes]

    def votes(self, prepared: Prepared, n_threads: int = 1) -> Votes:  # noqa: ARG002  # predict has threads of its own
        votes = np.empty((len(prepared), len(self._models)), dtype=np.int16)
        for i, (model, own) in enumerate(zip(self._models, self._classes, strict=True)):
            votes[:, i] = own[0] if model is None else own[self._ask(model, prepared)]
        return votes

    def arrays(self) -> Arrays:
        return {}

    @staticmethod
    def _ask(model: Any, prepared: Prepared) -> IntArray:
        """Return codes of the model's own classes.

        A model may raise for what its subset did not have: an unknown category, a missing value. Whether one does must
        not show but in its vote.
        """
        try:
            return np.asarray(model.predict(prepared), np.int64)
        except (TypeError, ValueError):
            if len(prepared) == 1:
                return np.array([model.usual_class_])
        return np.concatenate(
            [Loop._ask(model, subset_of(prepared, np.array([i]))) for i in range(len(prepared))]
        )


def _chooses_columns(estimator: Any) -> bool:
    """Tell whether columns may be chosen by their names somewhere inside."""
    parts = [estimator, *estimator.get_params().values()]
    return any(isinstance(part, Pipeline | ColumnTransformer) for part in parts)


def _weights_name(estimator: Any) -> str | None:
    """Return what `fit` calls the weights of records, None if it takes none; a pipeline hands them to its last step."""
    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        inner = _weights_name(last)
        return None if inner is None else f"{step}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None
