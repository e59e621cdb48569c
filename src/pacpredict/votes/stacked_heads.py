"""The votes of all heads, as exact sums: the same whatever the batch, the threads or the machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import InvalidFeatures, InvalidModel
from pacpredict.features.exact import round_columns
from pacpredict.types import FloatArray, IntArray, Votes

Single = npt.NDArray[np.float32]

# Scores that are held at a time: 8 MiB of doubles.
_SCORES_AT_ONCE = 2**20


class HeadModel(NamedTuple):
    """Of two classes the score of the second, compared with zero; otherwise one score for each class it has seen."""

    weights: Single  # (d, s), rounded to the bits that exact sums allow
    biases: FloatArray  # (s,)

    @classmethod
    def of(cls, weights: FloatArray, biases: FloatArray) -> "HeadModel":
        return cls(round_columns(weights), np.asarray(biases, np.float64))


@dataclass(frozen=True, eq=False, repr=False)
class StackedHeads:
    """m heads side by side."""

    weights: Single  # (d, n_models * n_scores)
    biases: FloatArray  # (n_models, n_scores); infinite where a head has seen one class only, or never saw a class

    @classmethod
    def of(
        cls, models: Sequence[HeadModel | None], classes: Sequence[IntArray], n_classes: int
    ) -> "StackedHeads":
        known = [model for model in models if model is not None]
        width = len(known[0].weights) if known else 1
        n_scores = 1 if n_classes == 2 else n_classes
        weights = np.zeros((width, len(models), n_scores), np.float32)
        biases = np.full((len(models), n_scores), -np.inf)
        for i, (model, own) in enumerate(zip(models, classes, strict=True)):
            if model is None:
                biases[i] = np.where(np.arange(n_classes)[-n_scores:] == own[0], np.inf, -np.inf)
            else:
                columns = slice(None) if n_scores == 1 else own
                weights[:, i, columns], biases[i, columns] = model
        return cls(weights.reshape(width, -1), biases)

    @property
    def n_models(self) -> int:
        return len(self.biases)

    def __repr__(self) -> str:
        return f"StackedHeads(n_models={self.n_models}, n_features={len(self.weights)})"

    def votes(self, prepared: Any, n_threads: int = 1) -> Votes:  # noqa: ARG002  # linear algebra has its own
        """Return the label index of each head for each row (n_rows, n_models)."""
        if prepared.shape[1] != len(self.weights):
            raise InvalidFeatures(
                f"the features have {prepared.shape[1]:,} numbers, and the heads were trained on {len(self.weights):,}"
            )
        size = max(1, _SCORES_AT_ONCE // self.biases.size)
        parts = [
            self._votes(self.scores(prepared[at : at + size])) for at in range(0, prepared.shape[0], size)
        ]
        return np.concatenate(parts)

    def scores(self, prepared: Any) -> FloatArray:
        """Return the sums of features times weights (n_rows, n_models * n_scores), without any rounding."""
        if isinstance(prepared, np.ndarray):
            return np.asarray(prepared.astype(np.float64) @ self._doubles)
        # Of sparse rows only the weights of their own features are made doubles.
        starts = prepared.indptr
        rows = (slice(starts[i], starts[i + 1]) for i in range(prepared.shape[0]))
        return np.array(
            [
                prepared.data[r].astype(np.float64) @ self.weights[prepared.indices[r]].astype(np.float64)
                for r in rows
            ]
        )

    def _votes(self, scores: FloatArray) -> Votes:
        if self.biases.shape[1] == 1:
            return (scores > -self.biases[:, 0]).astype(np.int16)
        summed = scores.reshape(len(scores), *self.biases.shape) + self.biases
        return summed.argmax(axis=2).astype(np.int16)

    @cached_property
    def _doubles(self) -> FloatArray:
        return self.weights.astype(np.float64)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {"weights": self.weights, "biases": self.biases}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> "StackedHeads":
        try:
            weights, biases = np.asarray(arrays["weights"]), np.asarray(arrays["biases"])
        except KeyError as missing:
            raise InvalidModel(f"stacked heads lack {missing}; is this another file?") from missing
        fits = (
            weights.dtype == np.float32
            and biases.dtype == np.float64
            and (weights.ndim, biases.ndim) == (2, 2)
            and weights.shape[1] == biases.size
        )
        if not fits:
            raise InvalidModel("stacked heads whose arrays do not fit together; the file is damaged")
        return cls(weights, biases)
