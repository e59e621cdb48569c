"""Is a student what its card says? Compare files, ledger, labels and promise, and perhaps train it again."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pacpredict.deployment import Deployment
from pacpredict.distill.card import Settings, history_of, labels_part, promise_of
from pacpredict.distill.columns import PublicRows
from pacpredict.distill.folder import is_styled_otherwise, labels_file, read_card, read_labels
from pacpredict.distill.formats import LABELS, PROGRAM, files_of, is_program
from pacpredict.distill.labels import Labels, Targets
from pacpredict.distill.questions import at_random, in_order
from pacpredict.distill.run import choose, curve_of, gather, voters_for
from pacpredict.distill.student import Ground, Student, student_named, train_student
from pacpredict.exceptions import InvalidInput, LedgerError, NothingToLearn, PacPredictError, StudentRefuted
from pacpredict.learners.learner import Learner
from pacpredict.training.fit import no_progress
from pacpredict.types import IntArray

# Of nothing that a deployment knows: the word of whoever made the card.
_NEVER = ("name of the deployment", "date", "version of pacpredict")
_BY_ROWS = (
    "which row each label was given to",
    "model and student.json",
    "learner and how it was trained",
    "notes",
)
_BY_VOTES = ("which rows were asked", "seed", "number of public rows")

# Rows whose order is drawn again from their number alone; what a card says may be any number.
_MOST_ROWS = 10**8


class Checked(NamedTuple):
    """What was found to be true, and what was not looked into."""

    folder: str
    files: int  # have the hashes of the card, and there are no others
    releases: int  # of the ledger were replayed, to the hash of the card
    labels: int  # are those of the ledger
    kept: int  # are those that the filter keeps
    trained_again: bool  # to the same bytes
    not_checked: tuple[str, ...]  # of what the card says


def verify_student(deployment: Deployment, path: Path, public: PublicRows | None = None) -> Checked:
    """Check a folder against its deployment; with the public rows, the student is trained again.

    Raises
    ------
    StudentRefuted
        with the first thing that is not as the card says.
    LedgerDamaged
        if the ledger itself is not what was written.
    """
    card = read_card(path)
    if card["history"].get("deployment") != deployment.artifact.identity:
        raise StudentRefuted(
            f"{path} is a student of another deployment: {card['history'].get('deployment')!r:.100}"
        )
    if not is_program(deployment.artifact.schema.kind, (path / PROGRAM).read_bytes()):
        raise StudentRefuted(f"{path / PROGRAM} is no program that pacpredict writes for such rows")
    deployment.verify()
    settings, labels = Settings(**card["settings"]), _labels(deployment, path, card)
    _compare("history", history_of(deployment, labels), card["history"])
    _compare("promise", promise_of(deployment) | {"name": card["promise"]["name"]}, card["promise"])
    targets = _targets(deployment, path, settings, labels)
    counted = labels_part(deployment, labels, targets.kept, card["labels"]["public_rows"])
    _compare("labels", counted, card["labels"])
    _check_curve(deployment, settings, labels, card["curve"])
    is_order_known = _check_order_by_number(settings, labels, card["labels"]["public_rows"])
    if public is not None:
        _train_again(deployment, path, card, settings, labels, targets, public)
    not_checked = (
        *(("accuracy",) if card["evaluation"] is not None else ()),
        *_NEVER,
        *(("style of card.html, which is not of this version",) if is_styled_otherwise(path, card) else ()),
        *(() if public is not None else _BY_ROWS),
        *(() if public is not None or is_order_known else _BY_VOTES),
    )
    return Checked(
        *(str(path), len(card["files"]), card["history"]["releases"], len(labels), int(targets.kept.sum())),
        trained_again=public is not None,
        not_checked=not_checked,
    )


def _labels(deployment: Deployment, path: Path, card: Mapping[str, Any]) -> Labels:
    stated = read_labels(path)
    n_public = card["labels"]["public_rows"]
    if np.unique(stated.rows).size < stated.rows.size:
        raise StudentRefuted(f"{path / LABELS} has a row more than once")
    if not ((stated.rows >= 0) & (stated.rows < n_public)).all():
        raise StudentRefuted(f"{path / LABELS} has rows that are not among {n_public:,} public ones")
    try:
        labels = gather(
            deployment, stated.rows, stated.sequences.tolist(), [mark["rows"] for mark in card["curve"]]
        )
    except LedgerError as problem:
        raise StudentRefuted(f"{path} rests on answers that the ledger does not have: {problem}") from problem
    names = deployment.artifact.classes.values
    if [str(names[label]) for label in labels.labels] != stated.labels:
        raise StudentRefuted(f"the labels of {path} are not those of the ledger")
    return labels


def _targets(deployment: Deployment, path: Path, settings: Settings, labels: Labels) -> Targets:
    classes = deployment.artifact.classes
    refuted = StudentRefuted(
        f"the filter {settings.filter} does not keep the labels that {path} says it kept"
    )
    try:
        targets = choose(labels, len(labels), settings, len(classes))
    except NothingToLearn as problem:
        raise refuted from problem
    if not np.array_equal(targets.kept, read_labels(path).kept):
        raise refuted
    if (path / LABELS).read_bytes() != labels_file(labels, targets.kept, classes.values):
        raise StudentRefuted(f"{path / LABELS} is not written as pacpredict writes it")
    return targets


def _compare(what: str, computed: Mapping[str, Any], stated: Mapping[str, Any]) -> None:
    for name in sorted(computed.keys() | stated.keys()):
        own, said = computed.get(name), stated.get(name)
        if _as_text(own) != _as_text(said) or (name in computed) is not (name in stated):
            raise StudentRefuted(
                f"the card says of the {what} that {name} is {said!r:.100}; it is {own!r:.100}"
            )


def _as_text(value: Any) -> str:
    """Return JSON, in which 1, 1.0 and true are different, as they are for readers."""
    return json.dumps(value, sort_keys=True)


def _check_curve(
    deployment: Deployment, settings: Settings, labels: Labels, stated: list[dict[str, Any]]
) -> None:
    """Compare what a learning curve counts; accuracies are nothing that the ledger knows."""
    counted = [mark._asdict() for mark in curve_of(deployment, labels, settings)]
    if len(counted) != len(stated):
        raise StudentRefuted(f"the learning curve has {len(counted)} points, not {len(stated)}")
    for mark, said in zip(counted, stated, strict=True):
        accuracy = said["accuracy"] if mark["kept"] else None
        _compare(f"learning curve at {mark['rows']:,} rows", mark | {"accuracy": accuracy}, said)


def _check_order_by_number(settings: Settings, labels: Labels, n_public: int) -> bool:
    """Compare an order that is drawn at random with the one of its seed; False where other things decide it."""
    if settings.order != "random" or n_public > _MOST_ROWS:
        return False
    _check_first(labels, at_random(n_public, settings.seed), settings)
    return True


def _check_first(labels: Labels, order: IntArray, settings: Settings) -> None:
    if not np.array_equal(labels.rows, order[: len(labels)]):
        raise StudentRefuted(
            f"the rows that were asked are not the first {len(labels):,} of {len(order):,} in the order "
            f"{settings.order}, by the seed {settings.seed}"
        )


def _train_again(
    deployment: Deployment,
    path: Path,
    card: Mapping[str, Any],
    settings: Settings,
    labels: Labels,
    targets: Targets,
    public: PublicRows,
) -> None:
    if len(public) != card["labels"]["public_rows"]:
        raise StudentRefuted(
            f"the student was made of {card['labels']['public_rows']:,} public rows, not {len(public):,}"
        )
    digests = deployment.artifact.schema.digests(public.asked.take(labels.rows))
    known = deployment.curator.session.recall(set(digests)).answers
    if [known[digest].sequence if digest in known else 0 for digest in digests] != labels.sequences.tolist():
        raise StudentRefuted("these are not the public rows that the labels were given to")
    try:
        learner = student_named(settings.learner, settings.params)
    except InvalidInput as problem:
        raise StudentRefuted(f"{path} cannot be trained again as its card says: {problem}") from problem
    voters = voters_for(deployment, learner)
    order, _ = in_order(voters, public.asked, settings.order, settings.seed, no_progress)
    _check_first(labels, order, settings)
    ground = partial(Ground.of, learner, public.schema, public.rows.take(labels.rows))
    student = _trained(deployment, learner, settings, targets, ground)
    _compare("student", {"notes": student.notes}, {"notes": card["notes"]})
    files = files_of(student)
    if card["files"].keys() != files.keys() | {LABELS}:
        foreign = sorted(card["files"].keys() ^ (files.keys() | {LABELS}))
        raise StudentRefuted(f"{path / foreign[0]}: such a student has other files")
    for name in files.keys() - {PROGRAM}:  # which may be an earlier one
        if (path / name).read_bytes() != files[name]:
            raise StudentRefuted(
                f"training again gives another {name}: it was made otherwise, or with other versions of libraries"
            )


def _trained(
    deployment: Deployment,
    learner: Learner,
    settings: Settings,
    targets: Targets,
    prepare: Callable[[], Ground],
) -> Student:
    try:
        return train_student(learner, prepare(), deployment.artifact.classes, targets, seed=settings.seed)
    except Exception as problem:  # also of a library, about parameters that only a card could have
        if isinstance(problem, PacPredictError) and not isinstance(problem, InvalidInput):
            raise
        raise StudentRefuted(f"what the card says cannot be trained: {problem}") from problem
