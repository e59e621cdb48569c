"""What training, artifacts and votes need to know of a learner."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from pacpredict.learners.journal import Journal
from pacpredict.learners.registry import Tune
from pacpredict.npz import Arrays
from pacpredict.rows.kind import RowKind
from pacpredict.types import BoolArray, FloatArray, IntArray, Votes

# Rows as a learner takes them: a matrix of features, or a frame for pipelines that choose columns by name.
Prepared = Any


class TrainingSet(NamedTuple):
    """The records of one subset."""

    prepared: Prepared
    labels: IntArray  # 0 to k - 1, for the classes that the subset has
    names: Sequence[Hashable]  # the owner's labels of these k classes
    weights: FloatArray | None = None  # what each record counts; None: all alike
    units: IntArray | None = None  # of each record whose it is; None: each is another's


class Trained(NamedTuple):
    """A model, and what is worth knowing about how it came about, such as the settings that a search chose."""

    model: Any
    notes: Mapping[str, Any]


class Origin(NamedTuple):
    """What a learner was made from: an estimator or a name, and parameters beside a name."""

    estimator: Any
    params: dict[str, Any] | None = None


class Voter(Protocol):
    """All m models, ready to vote."""

    def votes(self, prepared: Prepared, n_threads: int = 1) -> Votes:
        """Return the label index of each model for each row (n_rows, n_models)."""

    def arrays(self) -> Arrays:
        """Return what the voter can be restored from."""


class Learner(ABC):
    """Trains one model at a time and puts m of them together.

    Models see classes 0 to k - 1 of their own subset. `classes` says which label indices these are. A subset with one
    class only has no model, but None: it always votes for that class.
    """

    name: str
    suffix: str  # of the file of one model
    libraries: tuple[str, ...] = ()  # distributions whose versions can make a difference to a model
    tunes: tuple[Tune, ...] = ("none",)  # the searches for settings that it knows
    takes_weights: bool = True  # whether records can count more or less than others
    together: int = 1  # how many models `fit_together` trains in one go; 1: each is trained by `fit`

    @property
    def title(self) -> str:
        """What people are told that models are."""
        return self.name

    @property
    def takes(self) -> tuple[RowKind, ...]:
        """The kinds of rows that it learns from; schemas and rows below are of these."""
        return ("table",)

    @property
    def needs_trust(self) -> bool:
        """Whether files can name code to run, so that only one's own may be loaded."""
        return False

    @property
    def needs_gpu(self) -> bool:
        """Whether models are trained on a GPU."""
        return False

    @classmethod
    @abstractmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Build the learner that `config` described; without `params` it has its default parameters."""

    @classmethod
    def of(cls, estimator: Any) -> Self | None:  # noqa: ARG003
        """Take an estimator that a user brings, or leave it to other learners."""
        return None

    @classmethod
    def defaults(cls, name: str) -> dict[str, Any]:  # noqa: ARG003
        """Return the parameters of a learner that is asked for by its name alone."""
        return {}

    def require(self) -> None:  # noqa: B027  # most need nothing
        """Raise MissingExtra if a package is missing that training needs; stored models vote without it."""

    def require_device(self) -> None:  # noqa: B027  # most compute on any machine
        """Raise DeviceUnavailable if models shall be trained on something that this machine has not."""

    def check_labels(self, labels: Sequence[Hashable]) -> None:  # noqa: B027  # most have no such parameters
        """Raise InvalidInput if parameters name labels that there are not."""

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """Describe the learner in JSON, so that the registry can build it again."""

    def origin(self) -> Origin:
        """Return what makes this learner again; only of one that can train."""
        return Origin(self.name)

    def trainer(self, stored: Iterable[bytes | None]) -> "Learner":  # noqa: ARG002
        """Return a learner of an artifact able to train again, given the files of its models."""
        return self

    def candidates(self, tune: Tune, seed: int) -> "list[Learner]":  # noqa: ARG002
        """Return learners of this kind to choose among: itself and, if `tune` asks for a search, other settings."""
        return [self]

    @abstractmethod
    def prepare(self, schema: Any, rows: Any) -> Prepared:
        """Turn canonical rows into what `fit` and `votes` take; the result can be indexed by record."""

    @abstractmethod
    def fit(self, records: TrainingSet, schema: Any, seed: int) -> Trained:
        """Train one model, in one thread; the same arguments give the same model."""

    def fit_resumably(self, records: TrainingSet, schema: Any, seed: int, journal: Journal) -> Trained:  # noqa: ARG002
        """Do what `fit` does; learners whose models take long go on from the journal, and keep it."""
        return self.fit(records, schema, seed)

    def fit_together(
        self, records: TrainingSet, members: BoolArray, schema: Any, seeds: Sequence[int]
    ) -> list[Trained]:
        """Train a model on each of several subsets (n_subsets, n_records) of all records, in one thread.

        Labels are indices of all classes. Each model is a function of its own subset and seed; the last bits of it may
        depend on its place in the block, so that blocks are always the same.
        """
        raise NotImplementedError

    def files(self) -> Mapping[str, Path]:
        """Return files that all models need; an artifact keeps them under these names."""
        return {}

    def located(self, folder: Path) -> "Learner":  # noqa: ARG002
        """Return the learner of an artifact that keeps its files in this folder."""
        return self

    @abstractmethod
    def dump(self, model: Any) -> bytes:
        """Return the file of a model; the same model gives the same bytes."""

    @abstractmethod
    def load(self, data: bytes) -> Any:
        """Return the model of a file."""

    @abstractmethod
    def voter(self, models: Sequence[Any], classes: Sequence[IntArray], n_classes: int, schema: Any) -> Voter:
        """Put all models together; they vote for label indices below `n_classes`."""

    @abstractmethod
    def restore(self, arrays: Arrays) -> Voter:
        """Return the voter that `arrays` came from."""


def subset_of(prepared: Prepared, indices: npt.NDArray[np.int64]) -> Prepared:
    """Take records from prepared rows."""
    return prepared.iloc[indices] if hasattr(prepared, "iloc") else prepared[indices]
