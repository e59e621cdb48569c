"""The votes of all linear models in one matrix product."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import InvalidModel
from pacpredict.types import FloatArray, IntArray, Votes
from pacpredict.votes.expansion import Expansion


class LinearModel(NamedTuple):
    """Scores are weights times expanded features plus biases; the highest wins, the first among equals."""

    weights: FloatArray  # (n_classes, width)
    biases: FloatArray  # (n_classes,)


def read_linear(estimator: Any) -> LinearModel:
    """Return a fitted linear classifier of scikit-learn; of two classes it keeps the second's weights only."""
    weights = np.atleast_2d(np.asarray(estimator.coef_, np.float64))
    biases = np.broadcast_to(np.asarray(estimator.intercept_, np.float64), len(weights))
    if len(weights) == 1:
        return LinearModel(np.vstack([np.zeros_like(weights), weights]), np.append(0.0, biases))
    return LinearModel(weights, biases)


@dataclass(frozen=True, eq=False, repr=False)
class StackedLinear:
    """m models side by side. Of two classes only the difference counts: one column per model instead of two."""

    weights: FloatArray  # (width, n_models * n_columns)
    biases: FloatArray  # (n_models, n_columns); minus infinity where a model never saw the class
    categories: IntArray  # of each feature, 0 for a quantity

    @classmethod
    def of(
        cls,
        models: Sequence[LinearModel | None],
        classes: Sequence[IntArray],
        n_classes: int,
        feature_categories: Sequence[int],
    ) -> "StackedLinear":
        width = Expansion(feature_categories).width
        weights, biases = (
            np.zeros((len(models), n_classes, width)),
            np.full((len(models), n_classes), -np.inf),
        )
        for i, (model, own) in enumerate(zip(models, classes, strict=True)):
            if model is None:
                biases[i, own] = 0.0
            else:
                weights[i, own], biases[i, own] = model.weights, model.biases
        if n_classes == 2:
            weights, biases = weights[:, 1:] - weights[:, :1], biases[:, 1:] - biases[:, :1]
        stacked = np.ascontiguousarray(weights.reshape(-1, width).T)
        return cls(stacked, biases, np.asarray(feature_categories, np.int64))

    @property
    def n_models(self) -> int:
        return len(self.biases)

    def __repr__(self) -> str:
        return f"StackedLinear(n_models={self.n_models}, n_features={len(self.categories)})"

    def __post_init__(self) -> None:
        object.__setattr__(self, "_expand", Expansion(self.categories.tolist()))

    def votes(self, prepared: FloatArray, n_threads: int = 1) -> Votes:  # noqa: ARG002  # BLAS has threads of its own
        """Return the label index of each model for each row (n_rows, n_models)."""
        expand: Expansion = self._expand  # type: ignore[attr-defined]
        size = expand.rows_at_once
        parts = [self._votes(expand(prepared[at : at + size])) for at in range(0, len(prepared), size)]
        return np.concatenate(parts)

    def _votes(self, expanded: FloatArray) -> Votes:
        # Of numbers near the end of float64 a score may be infinite, or undefined. It is a vote all the same, and the
        # same one for the noise and for the answer.
        with np.errstate(over="ignore", invalid="ignore"):
            return self._decide(expanded @ self.weights)

    def _decide(self, scores: FloatArray) -> Votes:
        if self.biases.shape[1] == 1:
            return (scores > -self.biases[:, 0]).astype(np.int16)
        scores = scores.reshape(len(scores), *self.biases.shape) + self.biases
        return scores.argmax(axis=2).astype(np.int16)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {"weights": self.weights, "biases": self.biases, "categories": self.categories}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> "StackedLinear":
        try:
            given = [np.asarray(arrays[name]) for name in ("weights", "biases", "categories")]
        except KeyError as missing:
            raise InvalidModel(f"stacked linear models lack {missing}; is this another file?") from missing
        weights, biases, categories = given
        fits = (
            [array.dtype for array in given] == [np.float64, np.float64, np.int64]
            and [array.ndim for array in given] == [2, 2, 1]
            and (categories >= 0).all()
            and weights.shape == (Expansion(categories.tolist()).width, biases.size)
        )
        if not fits:
            raise InvalidModel("stacked linear models whose arrays do not fit together; the file is damaged")
        return cls(weights, biases, categories)
