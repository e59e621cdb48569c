"""Is a student what its card says? Compare files, ledger, labels and promise, and perhaps train it again."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pacpredict.deployment import Deployment
from pacpredict.distill.card import Settings, history_of, promise_of
from pacpredict.distill.folder import read_card, read_labels
from pacpredict.distill.formats import files_of
from pacpredict.distill.labels import Labels
from pacpredict.distill.run import choose, gather
from pacpredict.distill.student import Ground, student_named, train_student
from pacpredict.exceptions import LedgerError, StudentRefuted
from pacpredict.rows.kind import AnyRows


class Checked(NamedTuple):
    """What was found to be true."""

    folder: str
    files: int  # have the hashes of the card
    releases: int  # of the ledger were replayed, to the hash of the card
    labels: int  # are those of the ledger
    kept: int  # are those that the filter keeps
    trained_again: bool  # to the same bytes


def verify_student(deployment: Deployment, path: Path, rows: AnyRows | None = None) -> Checked:
    """Check a folder against its deployment; with the public rows, the student is trained again.

    Raises
    ------
    StudentRefuted
        with the first thing that is not as the card says.
    LedgerDamaged
        if the ledger itself is not what was written.
    """
    card = read_card(path)
    if card["history"]["deployment"] != deployment.artifact.identity:
        raise StudentRefuted(f"{path} is a student of another deployment: {card['history']['deployment']}")
    deployment.verify()
    settings, labels = Settings(**card["settings"]), _labels(deployment, path)
    _compare("history", history_of(deployment, labels), card["history"])
    _compare("promise", promise_of(deployment) | {"name": card["promise"]["name"]}, card["promise"])
    targets = choose(labels, len(labels), settings, len(deployment.artifact.classes))
    if not np.array_equal(targets.kept, read_labels(path).kept):
        raise StudentRefuted(
            f"the filter {settings.filter} does not keep the labels that {path} says it kept"
        )
    if int(targets.kept.sum()) != card["labels"]["kept"] or len(labels) != card["labels"]["asked"]:
        raise StudentRefuted(f"the card of {path} does not count the labels that were asked and kept")
    if rows is not None:
        _train_again(deployment, path, card, settings, labels, rows)
    return Checked(
        *(str(path), len(card["files"]), card["history"]["releases"], len(labels), int(targets.kept.sum())),
        trained_again=rows is not None,
    )


def _labels(deployment: Deployment, path: Path) -> Labels:
    stated = read_labels(path)
    try:
        labels = gather(deployment, stated.rows, stated.sequences.tolist())
    except LedgerError as problem:
        raise StudentRefuted(f"{path} rests on answers that the ledger does not have: {problem}") from problem
    names = deployment.artifact.classes.values
    if [str(names[label]) for label in labels.labels] != stated.labels:
        raise StudentRefuted(f"the labels of {path} are not those of the ledger")
    return labels


def _compare(what: str, computed: dict[str, Any], stated: dict[str, Any]) -> None:
    for name, value in computed.items():
        if stated.get(name) != value:
            raise StudentRefuted(
                f"the card says of the {what} that {name} is {stated.get(name)!r:.100}; it is {value!r:.100}"
            )


def _train_again(
    deployment: Deployment,
    path: Path,
    card: dict[str, Any],
    settings: Settings,
    labels: Labels,
    rows: AnyRows,
) -> None:
    artifact = deployment.artifact
    if len(rows) != card["labels"]["public_rows"]:
        raise StudentRefuted(
            f"the student was made of {card['labels']['public_rows']:,} public rows, not {len(rows):,}"
        )
    asked = rows.take(labels.rows)
    known = deployment.curator.session.recall(set(artifact.schema.digests(asked))).answers
    sequences = [
        known[digest].sequence if digest in known else 0 for digest in artifact.schema.digests(asked)
    ]
    if sequences != labels.sequences.tolist():
        raise StudentRefuted("these are not the public rows that the labels were given to")
    learner = student_named(settings.learner, settings.params)
    ground = Ground.of(learner, artifact.schema, asked)
    targets = choose(labels, len(labels), settings, len(artifact.classes))
    student = train_student(learner, ground, artifact.classes, targets, seed=settings.seed)
    for name, data in files_of(student).items():
        if (path / name).read_bytes() != data:
            raise StudentRefuted(
                f"training again gives another {name}: it was made otherwise, or with other versions of libraries"
            )
