"""Any other classifier of scikit-learn's interface, pipelines included: trained as it is, asked one after another."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from pacpredict.core.validate import IntArray, Votes
from pacpredict.ensemble.arrays import Arrays
from pacpredict.ensemble.learners import skops_files
from pacpredict.ensemble.learners.learner import Prepared, Trained, seeded, single_thread
from pacpredict.ensemble.tables.schema import Rows, Schema
from pacpredict.ensemble.votes.expansion import Expansion
from pacpredict.exceptions import InvalidModel, InvalidQuery


class EstimatorLearner:
    """Pipelines, and what is built around one, get a frame of a table with names; other estimators get numbers.

    Where a table has categories, text or missing values, a bare estimator gets one column per category and a flag for
    each number that may be missing.
    """

    name = "estimator"
    suffix = "skops"
    needs_trust = True

    def __init__(self, estimator: Any, *, takes_frames: bool | None = None) -> None:
        self.estimator = estimator  # None when only stored models are asked
        self.takes_frames = _chooses_columns(estimator) if takes_frames is None else takes_frames

    def config(self) -> dict[str, Any]:
        kind = type(self.estimator)
        described = {"class": f"{kind.__module__}.{kind.__qualname__}", "repr": repr(self.estimator)}
        return {"name": self.name, "takes_frames": self.takes_frames, **described}

    def prepare(self, schema: Schema, rows: Rows) -> Prepared:
        if schema.is_named and self.takes_frames:
            return schema.frame(rows)
        features = schema.features(rows)
        may_miss = schema.unknown == "missing" or any(column.has_missing for column in schema.columns)
        is_plain = not may_miss and not any(schema.feature_categories)
        return features if is_plain else Expansion(schema.feature_categories)(features)

    def fit(self, prepared: Prepared, labels: IntArray, schema: Schema, seed: int) -> Trained:  # noqa: ARG002
        model = clone(self.estimator)
        every = model.get_params()
        model.set_params(**single_thread(every), **seeded(every, seed))
        model.fit(prepared, labels)
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
        try:
            return np.asarray(model.predict(prepared), np.int64)
        except (TypeError, ValueError) as problem:
            # The same for every model but for its wording; which of them failed is not said.
            raise InvalidQuery(f"the models cannot answer this query: {problem}") from problem


def _chooses_columns(estimator: Any) -> bool:
    """Tell whether columns may be chosen by their names somewhere inside."""
    parts = [estimator, *estimator.get_params().values()]
    return any(isinstance(part, Pipeline | ColumnTransformer) for part in parts)
