"""The folder of a student: whole, or not there.

student/
  model.*        in the format of its library (or model/, or with extractors/)
  student.json   how rows become what the model takes, and its classes
  predict.py     a program that uses it, without pacpredict
  labels.csv     what was asked and answered: row, number of the release, label, whether it was kept
  card.json      the privacy card for programs, with the SHA-256 of every file above
  card.md, card.html   the same for people
"""

import csv
import hashlib
import io
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pacpredict.distill.card import FORMAT, VERSION
from pacpredict.distill.formats import Files
from pacpredict.distill.labels import Labels
from pacpredict.distill.page import render
from pacpredict.distill.words import markdown
from pacpredict.exceptions import StudentRefuted
from pacpredict.files import as_json, read_json, sha256_of, sync_directory, write_whole
from pacpredict.types import BoolArray, IntArray

CARD, LABELS = "card.json", "labels.csv"
_COLUMNS = ["row", "release", "label", "kept"]


class Stated(NamedTuple):
    """What a folder says that was asked and answered."""

    rows: IntArray
    sequences: IntArray
    labels: list[str]
    kept: BoolArray


def labels_file(labels: Labels, kept: BoolArray, names: Sequence[Any]) -> bytes:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_COLUMNS)
    columns = labels.rows.tolist(), labels.sequences.tolist(), labels.labels.tolist(), kept.tolist()
    for row, sequence, label, is_kept in zip(*columns, strict=True):
        writer.writerow([row, sequence, names[label], int(is_kept)])
    return stream.getvalue().encode()


def write_folder(path: Path, files: Files, card: Mapping[str, Any]) -> dict[str, Any]:
    """Write everything beside the place and move it there at the end; returns the card with the hashes of the files."""
    whole = {
        **card,
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())},
    }
    draft = path.with_name(f"{path.name}.partial")
    shutil.rmtree(draft, ignore_errors=True)  # of a run that was killed
    for name, data in {**files, CARD: as_json(whole), **cards(whole)}.items():
        target = draft / name
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, data)
    os.replace(draft, path)  # noqa: PTH105  # fails if somebody has made the folder meanwhile
    sync_directory(path.absolute().parent)
    return whole


def cards(card: Mapping[str, Any]) -> Files:
    """Return the card as people read it: functions of what programs read."""
    return {"card.md": markdown(card).encode(), "card.html": render(card).encode()}


def read_card(path: Path) -> dict[str, Any]:
    """Return the card of a folder whose files are those that it names."""
    if not (path / CARD).is_file():
        raise StudentRefuted(f"{path} is no folder of a student: it has no {CARD}")
    card = read_json(path / CARD)
    if (card.get("format"), card.get("version")) != (FORMAT, VERSION) or not isinstance(
        card.get("files"), dict
    ):
        raise StudentRefuted(f"{path / CARD} is no card that this pacpredict reads")
    expected = {name: str(digest) for name, digest in card["files"].items()}
    expected |= {name: hashlib.sha256(data).hexdigest() for name, data in cards(card).items()}
    found = {file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()} - {CARD}
    for name in sorted(found | expected.keys()):
        if name not in found:
            raise StudentRefuted(f"{path / name} is missing")
        if name not in expected:
            raise StudentRefuted(f"{path / name} does not belong to the student")
        if sha256_of(path / name) != expected[name]:
            raise StudentRefuted(f"{path / name} is not what the card says: it was changed")
    return card


def read_labels(path: Path) -> Stated:
    with (path / LABELS).open(newline="", encoding="utf-8") as file:
        header, *lines = csv.reader(file)
    if header != _COLUMNS:
        raise StudentRefuted(f"{path / LABELS} cannot be read: its columns are {header}")
    try:
        rows, sequences, labels, kept = zip(*lines, strict=True)
        return Stated(
            np.array(rows, np.int64),
            np.array(sequences, np.int64),
            list(labels),
            np.array(kept, np.int64) == 1,
        )
    except ValueError as problem:
        raise StudentRefuted(f"{path / LABELS} cannot be read: {problem}") from problem
