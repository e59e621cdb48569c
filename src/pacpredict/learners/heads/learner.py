"""`heads`: linear heads on frozen public features of images or texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pacpredict import npz
from pacpredict.exceptions import InvalidInput, InvalidModel
from pacpredict.features.cache import default_folder
from pacpredict.features.compute import Progress
from pacpredict.features.given import FeatureMaker, StoredFeatures, feature_maker, name_features
from pacpredict.features.words import Words
from pacpredict.learners.heads.logistic import fit_logistic
from pacpredict.learners.heads.problem import Features, Problem
from pacpredict.learners.heads.ridge import fit_ridge
from pacpredict.learners.heads.words import fit_words
from pacpredict.learners.learner import Learner, Origin, Trained, TrainingSet
from pacpredict.npz import Arrays
from pacpredict.rows.kind import AnyRows, AnySchema, RowKind
from pacpredict.types import BoolArray, FloatArray, IntArray
from pacpredict.votes.stacked_heads import HeadModel, StackedHeads

Head = Literal["logistic", "ridge"]
HEADS: tuple[Head, ...] = ("logistic", "ridge")

# Measured on images of CIFAR-10 and texts of IMDb: with more, heads of different subsets agree more often, and from
# about ten times this on they are less accurate.
_PENALTIES = {"logistic": 0.03, "ridge": 0.1}
_WORD_PENALTIES = {True: 3e-4, False: 3e-6}  # with and without idf
# Few: further ones bring the loss down on the subset, and hardly on anything else.
_STEPS = 6


@dataclass
class Heads(Learner):
    """Trains the heads of eight subsets at a time; each is a function of its own subset alone, and of public features.

    Parameters
    ----------
    features
        A name ("lite2", "potion", "lite2+resnet50": features/named.py lists them), a file in ONNX, a function of one
        image or text, a list of these; or "tfidf" or "hashing" for texts.
    head
        "logistic" or "ridge".
    penalty
        On squared slopes, beside the mean loss of a record; by default what did well on public data.
    steps
        Of conjugate gradients, for logistic heads.
    cache
        The folder in which features of training data are kept, for the next fit; None keeps none.
    n_threads
        That compute features.
    """

    features: Any
    head: Head = "logistic"
    penalty: float | None = None
    steps: int | None = None
    cache: Path | None = field(default_factory=default_folder)
    n_threads: int = 1
    name = "heads"
    suffix = "npz"
    libraries = ("scikit-learn", "scipy", "onnxruntime", "pillow", "tokenizers")
    together = 8

    def __post_init__(self) -> None:
        if self.head not in HEADS:
            raise InvalidInput(f"a head is one of {', '.join(HEADS)}, got {self.head!r:.50}")
        if self.penalty is not None and not 0 < self.penalty < float("inf"):
            raise InvalidInput(f"the penalty must be a positive number, got {self.penalty!r:.50}")
        if self.steps is not None and not 1 <= self.steps <= 1000:
            raise InvalidInput(f"steps are from 1 to 1000, got {self.steps!r:.50}")
        if isinstance(self.features, StoredFeatures):
            return  # its files may not be known as yet
        if isinstance(self._maker, Words) and self.head == "ridge":
            raise InvalidInput(f"{self.features} has too many features for ridge heads: choose logistic ones")

    @property
    def title(self) -> str:
        return f"{self.name} on {name_features(self.config()['params']['features'])}"

    @property
    def takes(self) -> tuple[RowKind, ...]:
        return self._maker.takes

    @property
    def needs_trust(self) -> bool:
        """Whether the features are those of a function that an artifact only names."""
        return self._maker.needs_trust

    @property
    def keeps_features(self) -> bool:
        """Whether features go into a cache; words are counted faster than they would be found there."""
        return self.cache is not None and not isinstance(self._maker, Words)

    def config(self) -> dict[str, Any]:
        stored = self.features.configs if isinstance(self.features, StoredFeatures) else self._maker.config()
        params = {"features": stored, "head": self.head, "penalty": self.penalty, "steps": self.steps}
        return {"name": self.name, "params": params}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "Heads":
        """Build it from what a user asks for by name, or from what an artifact says; that lacks files as yet."""
        params = dict(config.get("params", {}))
        if "features" not in params:
            raise InvalidInput("heads need features: --features tfidf, or params={'features': ...} in Python")
        if unknown := params.keys() - {"features", "head", "penalty", "steps", "cache", "n_threads"}:
            raise InvalidInput(f"heads have no parameter {', '.join(sorted(unknown))}")
        stored = params["features"]
        if isinstance(stored, list) and all(isinstance(one, Mapping) for one in stored):
            params |= {"features": StoredFeatures(stored), "cache": None}
        return cls(**params)

    def origin(self) -> Origin:
        return Origin(self)

    def files(self) -> Mapping[str, Path]:
        """Return what an artifact must keep beside the models: the extractors."""
        return self._maker.files()

    def located(self, folder: Path) -> "Heads":
        """Return the learner of an artifact that keeps its extractors in this folder."""
        return replace(self, features=StoredFeatures(self.config()["params"]["features"], folder))

    def prepare(self, schema: AnySchema, rows: AnyRows, progress: Progress | None = None) -> Features:
        """Compute features, or find them in the cache; those of the last rows are at hand."""
        last = self._last  # looked at once: other threads prepare rows of their own
        if last is None or last[0] is not rows:
            self._last = last = rows, self._maker(schema.digests(rows), rows, progress)
        return last[1]

    def sight(self) -> list[dict[str, Any]]:
        """Describe the features by what decides them; where this is equal, either learner may compute them for both.

        By the files that are there: those of an artifact may not be what it says.
        """
        return self._maker.config()

    def fit(self, records: TrainingSet, schema: AnySchema, seed: int) -> Trained:
        (trained,) = self.fit_together(records, np.ones((1, len(records.labels)), np.bool_), schema, [seed])
        return trained

    def fit_together(
        self,
        records: TrainingSet,
        members: BoolArray,
        schema: AnySchema,  # noqa: ARG002  # features say all
        seeds: Sequence[int],  # noqa: ARG002  # nothing is random
    ) -> list[Trained]:
        weights = members.astype(np.float32)
        if records.weights is not None:
            weights *= records.weights.astype(np.float32)
        labels = np.array(
            records.labels, np.int64
        )  # another process has them read-only, which kernels tell apart
        problem = Problem(records.prepared, labels, weights, len(records.names))
        slopes, biases = self._solve(problem)
        notes = {"head": self.head, "penalty": self._penalty}
        return [Trained(self._model(problem, i, slopes[i], biases[i]), notes) for i in range(problem.n_heads)]

    def dump(self, model: HeadModel) -> bytes:
        return npz.to_bytes(model._asdict())

    def load(self, data: bytes) -> HeadModel:
        stored = npz.from_bytes(data)
        if set(stored) != set(HeadModel._fields):
            raise InvalidModel(f"a head has {HeadModel._fields}, this file {sorted(stored)}")
        return HeadModel(**stored)

    def voter(
        self,
        models: Sequence[HeadModel | None],
        classes: Sequence[IntArray],
        n_classes: int,
        schema: AnySchema,  # noqa: ARG002  # features say all
    ) -> StackedHeads:
        return StackedHeads.of(models, classes, n_classes)

    def restore(self, arrays: Arrays) -> StackedHeads:
        return StackedHeads.from_arrays(arrays)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in {"_maker", "_last"}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._last = None

    @cached_property
    def _maker(self) -> FeatureMaker:
        return feature_maker(self.features, self.cache, self.n_threads)

    @cached_property
    def _last(self) -> tuple[AnyRows, Features] | None:
        return None

    @property
    def _penalty(self) -> float:
        if self.penalty is not None:
            return self.penalty
        return _WORD_PENALTIES[self._maker.idf] if isinstance(self._maker, Words) else _PENALTIES[self.head]

    def _solve(self, problem: Problem) -> tuple[FloatArray, FloatArray]:
        if isinstance(self._maker, Words):
            return fit_words(problem, self._penalty, self.steps or _STEPS, idf=self._maker.idf)
        if self.head == "ridge":
            return fit_ridge(problem, self._penalty)
        return fit_logistic(problem, self._penalty, self.steps or _STEPS)

    @staticmethod
    def _model(problem: Problem, i: int, weights: FloatArray, biases: FloatArray) -> HeadModel:
        if problem.n_scores == 1:
            return HeadModel.of(weights, biases)
        seen = problem.present[i]  # what a head has never seen it does not vote for
        return HeadModel.of(weights[:, seen], biases[seen])
