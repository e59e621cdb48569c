"""From a deployment and public rows to a student that may be published."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pacpredict import defaults
from pacpredict.core.filters import check_alpha, check_filter
from pacpredict.deployment import Deployment
from pacpredict.distill import questions as asking
from pacpredict.distill.card import Mark, Settings, card_of
from pacpredict.distill.columns import PublicRows
from pacpredict.distill.folder import labels_file, write_folder
from pacpredict.distill.formats import LABELS, check_format, files_of
from pacpredict.distill.labels import Labels, Targets, check_filter_of, default_filter, last_of, targets_of
from pacpredict.distill.questions import Order, Progress, Questions
from pacpredict.distill.student import (
    Ground,
    Student,
    check_student,
    describe,
    student_named,
    student_of,
    train_student,
)
from pacpredict.exceptions import InvalidInput, NothingToLearn
from pacpredict.learners.heads.learner import Heads
from pacpredict.learners.learner import Learner
from pacpredict.rows.kind import AnyRows, AnySchema, RowKind
from pacpredict.training.ensemble import Ensemble
from pacpredict.types import IntArray

ALPHA = 0.01  # the paper's


# Gives, for each part of the work by its name, a function that is told how far that is.
Stages = Callable[[str], AbstractContextManager[Progress]]


class Exam(NamedTuple):
    """Rows with known labels, which should be public, to see how well a student does."""

    rows: AnyRows  # of the student's schema
    truth: IntArray


@dataclass(frozen=True)
class Options:
    """What to ask and what to make of it.

    Parameters
    ----------
    learner, params
        A name of a learner with parameters beside its defaults, the dotted path of a classifier of scikit-learn, or an
        estimator.
    filter, alpha
        Which labels are kept: "corrected" (the default for argmax), "paper", or "bayesian" (that for map and sample).
    queries
        Ask no more rows than so many.
    until_success
        Ask until what others have spent, with a step for each row on which models differ, reaches the budget of this
        success of membership inference. What others spend meanwhile comes on top.
    order, seed
        "random" or "active": those first on which most models agree. The seed is public.
    soft, balanced
        Learn every label that models give to a kept row, by its posterior; let all classes weigh the same.
    curve
        Numbers of rows after which it is told how a student does.
    """

    learner: Any = defaults.LEARNER
    params: dict[str, Any] | None = None
    filter: str | None = None
    alpha: float = ALPHA
    queries: int | None = None
    until_success: float | None = None
    order: Order = "random"
    seed: int = 0
    soft: bool = False
    balanced: bool = False
    curve: tuple[int, ...] = ()

    def settings(self, deployment: Deployment) -> Settings:
        """Decide what is left open; raises before anything is paid for."""
        decoder = deployment.decoder
        chosen = default_filter(decoder) if self.filter is None else check_filter(self.filter)
        check_filter_of(chosen, decoder)
        check_alpha(self.alpha)
        if self.queries is not None and self.queries < 1:
            raise InvalidInput(f"at least one row must be asked, got {self.queries}")
        if any(end < 1 for end in self.curve):
            raise InvalidInput("a learning curve has numbers of rows from 1 on")
        name, params = describe(self.learner, self.params)
        return Settings(name, params, chosen, self.alpha, self.order, self.seed, self.soft, self.balanced)

    def trainer(self, kind: RowKind) -> Learner:
        """Return what trains the student on rows of a kind; raises before anything is paid for."""
        is_name = isinstance(self.learner, str)
        learner = student_named(self.learner, self.params) if is_name else student_of(self.learner)
        learner.require()
        learner.require_device()
        check_format(learner)
        check_student(learner, kind, soft=self.soft)
        return learner


class Distilled(NamedTuple):
    student: Student
    card: dict[str, Any]


def plan(
    deployment: Deployment, rows: AnyRows, options: Options, learner: Learner, stages: Stages
) -> Questions:
    """Settle what is asked, at what cost; nothing is charged."""
    with stages("votes") as progress:
        return asking.prepare(
            deployment.curator,
            rows,
            voters=voters_for(deployment, learner),
            differed=partial(differed_in, deployment),
            order=options.order,
            seed=options.seed,
            queries=options.queries,
            progress=progress,
        )


def differed_in(deployment: Deployment, sequences: Collection[int]) -> set[int]:
    """Tell on which releases models differed, by a replay of the ledger: what was charged does not tell."""
    if not sequences:
        return set()
    labels = deployment.weigh(sequences, {max(sequences)}).labels
    return {sequence for sequence in sequences if labels[sequence].votes is not None}


def voters_for(deployment: Deployment, learner: Learner) -> Ensemble:
    """Return the models of a deployment, to vote on the rows of a student.

    Features that the student's learner shares with the deployment are computed by it, which keeps them: they are the
    most work, and are needed again to train the student.
    """
    voters = deployment.curator.ensemble
    theirs = voters.learner
    if isinstance(learner, Heads) and isinstance(theirs, Heads) and learner.sight() == theirs.sight():
        return voters.seeing_by(learner)
    return voters


def distill(
    deployment: Deployment,
    public: PublicRows,
    options: Options,
    out: Path,
    stages: Stages,
    tested: Exam | None = None,
) -> Distilled:
    """Ask, choose, train and write; interrupted, the same call goes on where it was."""
    artifact = deployment.artifact
    settings, learner = options.settings(deployment), options.trainer(artifact.schema.kind)
    prior = artifact.space.priors["membership"]
    planned = asking.limit_to(
        plan(deployment, public.asked, options, learner, stages),
        artifact.recipe.budget,
        options.until_success,
        prior,
    )
    # Before anything is paid for: features of the student's own may fail.
    ground = _ground(learner, public.schema, public.rows.take(planned.rows), stages)
    with stages("answers") as progress:
        releases = asking.ask(deployment.curator, planned, progress)
    sequences = [release.sequence for release in releases]
    labels = gather(deployment, planned.rows, sequences, options.curve)
    targets = choose(labels, len(labels), settings, len(artifact.classes))
    student = train_student(learner, ground, artifact.classes, targets, seed=settings.seed)
    accuracy = None if tested is None else _accuracy(student, tested)
    marks = curve_of(deployment, labels, settings)
    if tested is not None and marks:
        *earlier, last = marks  # whose student is the one above
        marks = [
            _tested_mark(deployment, labels, mark, settings, learner, ground, tested) for mark in earlier
        ]
        marks.append(last._replace(accuracy=accuracy))
    evaluation = None if tested is None else {"rows": len(tested.rows), "accuracy": accuracy}
    files = files_of(student) | {LABELS: labels_file(labels, targets.kept, artifact.classes.values)}
    card = card_of(deployment, labels, targets, settings, marks, len(public), student.notes, evaluation)
    return Distilled(student, write_folder(out, files, card))


def _ground(learner: Learner, schema: AnySchema, asked: AnyRows, stages: Stages) -> Ground:
    if not isinstance(learner, Heads):
        return Ground.of(learner, schema, asked)
    with stages("features") as progress:
        return Ground.of(learner, schema, asked, progress)


def gather(
    deployment: Deployment, rows: IntArray, sequences: Sequence[int], curve: Sequence[int] = ()
) -> Labels:
    """Weigh the labels of some releases by a replay of the ledger: the same whenever it is done."""
    if not sequences:
        raise NothingToLearn("no row was asked: the budget of the ceiling has room for none")
    ends = sorted({min(end, len(sequences)) for end in (*curve, len(sequences))})
    points = {last_of(sequences, end) for end in ends}
    return Labels.of(rows, sequences, deployment.weigh(set(sequences), points), ends)


def choose(labels: Labels, end: int, settings: Settings, n_classes: int) -> Targets:
    return targets_of(
        *(labels, end, settings.filter, settings.alpha, n_classes),
        soft=settings.soft,
        balanced=settings.balanced,
    )


def curve_of(deployment: Deployment, labels: Labels, settings: Settings) -> list[Mark]:
    """Count what a learning curve has at each of its points; accuracies are added by whoever has rows to test on."""
    ends = sorted(labels.points)
    return [_mark(deployment, labels, end, settings) for end in ends] if len(ends) > 1 else []


def _mark(deployment: Deployment, labels: Labels, end: int, settings: Settings) -> Mark:
    spent = deployment.artifact.recipe.budget.nats(labels.points[end].spent_steps)
    try:
        kept = int(choose(labels, end, settings, len(deployment.artifact.classes)).kept.sum())
    except NothingToLearn:  # as yet
        kept = 0
    return Mark(end, kept, spent, None)


def _tested_mark(
    deployment: Deployment,
    labels: Labels,
    mark: Mark,
    settings: Settings,
    learner: Learner,
    ground: Ground,
    tested: Exam,
) -> Mark:
    if not mark.kept:
        return mark
    classes = deployment.artifact.classes
    targets = choose(labels, mark.rows, settings, len(classes))
    student = train_student(learner, ground, classes, targets, seed=settings.seed)
    return mark._replace(accuracy=_accuracy(student, tested))


def _accuracy(student: Student, tested: Exam) -> float:
    return float((student.predict(tested.rows) == tested.truth).mean())
