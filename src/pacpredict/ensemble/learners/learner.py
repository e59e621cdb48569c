"""What training, artifacts and votes need to know of a learner."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pacpredict.core.validate import IntArray, Votes
from pacpredict.ensemble.arrays import Arrays
from pacpredict.ensemble.tables.schema import Rows, Schema

# Rows as a learner takes them: a matrix of features, or a frame for pipelines that choose columns by name.
Prepared = Any


class Trained(NamedTuple):
    """A model, and what is worth knowing about how it came about, such as the settings that a search chose."""

    model: Any
    notes: Mapping[str, Any]


class Voter(Protocol):
    """All m models, ready to vote."""

    def votes(self, prepared: Prepared, n_threads: int = 1) -> Votes:
        """Return the label index of each model for each row (n_rows, n_models)."""

    def arrays(self) -> Arrays:
        """Return what the voter can be restored from."""


class Learner(Protocol):
    """Trains one model at a time and puts m of them together.

    Models see classes 0 to k - 1 of their own subset. `classes` says which label indices these are. A subset with one
    class only has no model, but None: it always votes for that class.
    """

    @property
    def name(self) -> str: ...

    @property
    def suffix(self) -> str:
        """Of the file of one model."""

    @property
    def needs_trust(self) -> bool:
        """Whether files can name code to run, so that only one's own may be loaded."""

    def config(self) -> dict[str, Any]:
        """Describe the learner in JSON, so that the registry can build it again."""

    def prepare(self, schema: Schema, rows: Rows) -> Prepared:
        """Turn canonical rows into what `fit` and `votes` take; the result can be indexed by record."""

    def fit(self, prepared: Prepared, labels: IntArray, schema: Schema, seed: int) -> Trained:
        """Train one model, in one thread; the same arguments give the same model."""

    def dump(self, model: Any) -> bytes:
        """Return the file of a model; the same model gives the same bytes."""

    def load(self, data: bytes) -> Any:
        """Return the model of a file."""

    def voter(
        self, models: Sequence[Any], classes: Sequence[IntArray], n_classes: int, schema: Schema
    ) -> Voter:
        """Put all models together; they vote for label indices below `n_classes`."""

    def restore(self, arrays: Arrays) -> Voter:
        """Return the voter that `arrays` came from."""


def single_thread(params: Mapping[str, Any]) -> dict[str, Any]:
    """Undo each n_jobs that was given: models are trained in parallel, their insides are not."""
    is_given = {name: value is not None for name, value in params.items() if name.split("__")[-1] == "n_jobs"}
    return {name: None for name, given in is_given.items() if given}


def seeded(params: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Set each random_state among the parameters to the seed, so that training again gives the same model."""
    return {name: seed for name in params if name.split("__")[-1] == "random_state"}


def chosen_params(estimator: Any) -> dict[str, Any] | None:
    """Return the parameters that differ from the defaults; None if one cannot be written down in JSON."""
    defaults = type(estimator)().get_params()
    given = estimator.get_params()
    chosen = {name: value for name, value in given.items() if repr(value) != repr(defaults[name])}
    plain = bool, int, float, str, type(None)
    return chosen if all(isinstance(value, plain) for value in chosen.values()) else None


def subset_of(prepared: Prepared, indices: npt.NDArray[np.int64]) -> Prepared:
    """Take records from prepared rows."""
    return prepared.iloc[indices] if hasattr(prepared, "iloc") else prepared[indices]
