"""A student: one model, trained on private labels of public rows and on nothing else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pacpredict.distill.labels import Targets
from pacpredict.exceptions import InvalidInput, PacPredictError
from pacpredict.features.compute import Progress
from pacpredict.learners.anything import EstimatorLearner
from pacpredict.learners.estimators import chosen_params, find_class, params_to_json
from pacpredict.learners.heads.learner import Heads
from pacpredict.learners.learner import Learner, Prepared, TrainingSet, subset_of
from pacpredict.learners.linear import KINDS as LINEAR
from pacpredict.learners.linear import LinearLearner
from pacpredict.learners.registry import learner_for, learner_from
from pacpredict.learners.trees import KINDS as TREES
from pacpredict.learners.trees import TreesLearner
from pacpredict.rows.infer import IN_WORDS
from pacpredict.rows.kind import AnyRows, AnySchema, RowKind
from pacpredict.tables.classes import Classes
from pacpredict.types import IntArray

# A classifier of scikit-learn may be named by where it is.
_SKLEARN = "sklearn."

# Where features are kept and how many threads compute them is nothing of the student, and of nobody's business.
NOT_ON_CARDS = {"cache", "n_threads"}

# By which a student of each kind of rows can be trained.
_LEARNERS: dict[RowKind, str] = {
    "table": "a learner of tables, such as xgboost",
    "image": "heads with features of images (--features lite2), or wide-resnet",
    "text": "heads with features of texts (--features tfidf), or bert-small",
}


class Student(NamedTuple):
    learner: Learner
    schema: AnySchema  # of the public rows
    classes: Classes  # of the deployment
    own: IntArray  # those that the student knows, as indices of these
    model: Any
    notes: Mapping[str, Any]

    def predict(self, rows: AnyRows) -> IntArray:
        """Return indices of the classes, for rows of the student's schema."""
        prepared = self.learner.prepare(self.schema, rows)
        voter = self.learner.voter([self.model], [self.own], len(self.classes), self.schema)
        return np.asarray(voter.votes(prepared)[:, 0], np.int64)


class Ground(NamedTuple):
    """The rows that were asked, ready for a learner; prepared once for all students of a learning curve."""

    schema: AnySchema
    prepared: Prepared

    @classmethod
    def of(
        cls, learner: Learner, schema: AnySchema, rows: AnyRows, progress: Progress | None = None
    ) -> "Ground":
        if isinstance(learner, Heads) and progress is not None:
            return cls(schema, learner.prepare(schema, rows, progress))
        return cls(schema, learner.prepare(schema, rows))


def student_named(name: str, params: Mapping[str, Any] | None = None) -> Learner:
    """Return what trains a student: a learner by its name, or a classifier of scikit-learn by where it is.

    The name may come from a card that somebody else wrote, so nothing but a class of estimators is called.
    """
    if not name.startswith(_SKLEARN):
        return student_of(learner_from(name, params))
    from sklearn.base import BaseEstimator  # noqa: PLC0415  # takes a second

    try:
        found = find_class(name)
        if not (isinstance(found, type) and issubclass(found, BaseEstimator)):
            raise InvalidInput(f"{name} is no estimator of scikit-learn")
        estimator = found(**(params or {}))
    except (ImportError, AttributeError, TypeError) as problem:
        raise InvalidInput(f"{name} cannot be made: {problem}") from problem
    return student_of(estimator)


def describe(given: Any, params: Mapping[str, Any] | None) -> tuple[str, dict[str, Any] | None]:
    """Return how a card names what a student is trained by: `student_named` makes the same of it, if it is a name."""
    if isinstance(given, str):
        plain = {
            name: str(value) if isinstance(value, Path) else value
            for name, value in (params or {}).items()
            if name not in NOT_ON_CARDS
        }
        return given, plain or None
    kind = type(given)
    chosen = chosen_params(given) if hasattr(given, "get_params") else None
    if chosen is None or not kind.__module__.startswith(_SKLEARN):
        return kind.__name__, None
    return f"{kind.__module__}.{kind.__qualname__}", params_to_json(chosen) or None


def student_of(given: Any) -> Learner:
    """Return a learner whose models can be published in the format of their own library.

    Models of scikit-learn that an ensemble packs into arrays stay what they are in a student.
    """
    learner = learner_for(given)
    if isinstance(learner, LinearLearner):
        model = find_class(LINEAR[learner.name])(**learner.params)
        return EstimatorLearner(_standardised(model) if learner.standardise else model, takes_frames=False)
    if isinstance(learner, TreesLearner):
        return EstimatorLearner(find_class(TREES[learner.name])(**learner.params), takes_frames=False)
    if isinstance(learner, EstimatorLearner):
        return EstimatorLearner(learner.estimator, takes_frames=False)
    return learner


def check_student(learner: Learner, kind: RowKind, *, soft: bool) -> None:
    """Refuse what a learner cannot do, before anything is paid for."""
    if kind not in learner.takes:
        taken = " or ".join(IN_WORDS[one] for one in learner.takes)
        raise InvalidInput(
            f"a student by {learner.name} learns from {taken}, and this deployment answers {IN_WORDS[kind]}: choose "
            f"{_LEARNERS[kind]}"
        )
    if soft and not learner.takes_weights:
        raise InvalidInput(
            f"soft targets are weights, which {learner.name} does not take: leave them out, or choose another learner"
        )


def train_student(
    learner: Learner, ground: Ground, classes: Classes, targets: Targets, *, seed: int
) -> Student:
    """Train on the targets; the same arguments give the same student.

    A learner that takes no weights gets records of light classes several times instead. Where one holds records out to
    know when to stop, all copies of a record are: its labels are private ones, too, and there are no others.
    """
    own, labels = np.unique(targets.labels, return_inverse=True)
    records, weights = targets.records, targets.weights
    uniform = bool((weights == weights[0]).all())
    if not uniform and not learner.takes_weights:
        drawn = _repeated(labels, np.random.default_rng(seed))
        records, labels, uniform = records[drawn], labels[drawn], True
    names = [classes.values[i] for i in own]
    chosen = subset_of(ground.prepared, records)
    training = TrainingSet(chosen, labels.astype(np.int64), names, None if uniform else weights, records)
    try:
        trained = learner.fit(training, ground.schema, seed)
    except PacPredictError:
        raise
    except Exception as problem:  # of a library, about its parameters or the rows
        raise InvalidInput(
            f"the student cannot be trained by {learner.name}: {problem}. All labels stay on record: with other "
            "settings, or by another learner, they cost nothing again"
        ) from problem
    return Student(learner, ground.schema, classes, own, trained.model, trained.notes)


def _repeated(labels: IntArray, generator: np.random.Generator) -> IntArray:
    """Return records as often as the class of the largest number needs them: whole rounds, and a random part of one."""
    counts = np.bincount(labels)
    drawn = []
    for label, count in enumerate(counts):
        mine = np.flatnonzero(labels == label)
        rounds, rest = divmod(int(counts.max()), int(count))
        drawn.append(np.concatenate([np.tile(mine, rounds), generator.choice(mine, rest, replace=False)]))
    return np.sort(np.concatenate(drawn))


def _standardised(model: Any) -> Any:
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415  # takes time to import
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    return make_pipeline(StandardScaler(), model)
