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
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pacpredict.distill.form import check_form
from pacpredict.distill.formats import LABELS, Files
from pacpredict.distill.labels import Labels
from pacpredict.distill.page import render
from pacpredict.distill.words import markdown
from pacpredict.exceptions import InvalidArtifact, StudentRefuted
from pacpredict.files import as_json, read_json, sha256_of, sync_directory, write_whole
from pacpredict.types import BoolArray, IntArray

CARD, PAGE = "card.json", "card.html"
# All that can stand between these is how a page looks: no element begins without the sign that is left out.
_STYLE = re.compile(rb"<style>[^<]*</style>")
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
    return {"card.md": markdown(card).encode(), PAGE: render(card).encode()}


def read_card(path: Path) -> dict[str, Any]:
    """Return the card of a folder whose files are those that it names, and in which there is nothing else."""
    if not (path / CARD).is_file():
        raise StudentRefuted(f"{path} is no folder of a student: it has no {CARD}")
    found = _files_in(path)
    try:
        card = read_json(path / CARD)
    except InvalidArtifact as problem:
        raise StudentRefuted(f"{path}: {problem}") from problem
    check_form(path, card)
    written = _written(path, card)
    expected = {
        **card["files"],
        **{name: hashlib.sha256(data).hexdigest() for name, data in written.items()},
    }
    for name in sorted(found | expected.keys()):
        if name not in found:
            raise StudentRefuted(f"{path / name} is missing")
        if name not in expected:
            raise StudentRefuted(f"{path / name} does not belong to the student")
        if sha256_of(path / name) != expected[name] and not (
            name == PAGE and _is_restyled((path / name).read_bytes(), written[name])
        ):
            raise StudentRefuted(f"{path / name} is not what the card says: it was changed")
    return card


def _files_in(path: Path) -> set[str]:
    """Name the files of a folder. Links are refused: what they lead to was not looked at, and can change."""
    files: set[str] = set()
    folders: set[str] = set()
    for entry in path.rglob("*"):
        name = entry.relative_to(path).as_posix()
        if entry.is_symlink() or not (entry.is_file() or entry.is_dir()):
            raise StudentRefuted(f"{path / name} does not belong to the student: it is a link, or no file")
        (files if entry.is_file() else folders).add(name)
    for folder in sorted(folders):
        if not any(name.startswith(f"{folder}/") for name in files):
            raise StudentRefuted(f"{path / folder} does not belong to the student: it is an empty folder")
    return files


def is_styled_otherwise(path: Path, card: Mapping[str, Any]) -> bool:
    """Tell whether the page of a folder that was read looks otherwise than it would be written now."""
    return (path / PAGE).read_bytes() != cards(card)[PAGE]


def _is_restyled(found: bytes, written: bytes) -> bool:
    """Tell whether a page differs in its style alone, which has changed between versions."""
    return _STYLE.split(found, maxsplit=1) == _STYLE.split(written, maxsplit=1)


def _written(path: Path, card: Mapping[str, Any]) -> Files:
    """Return what the files with the card must be: they say nothing but what was read, and each of it once."""
    try:
        return {CARD: as_json(card), **cards(card)}
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
        raise StudentRefuted(f"{path / CARD} is no card that this pacpredict reads: {problem!r}") from problem


def read_labels(path: Path) -> Stated:
    """Return what the file of labels says; whoever believes it compares it with the ledger."""
    try:
        with (path / LABELS).open(newline="", encoding="utf-8") as file:
            header, *lines = csv.reader(file)
        if header != _COLUMNS:
            raise StudentRefuted(f"{path / LABELS} cannot be read: its columns are {header!r:.100}")
        rows, sequences, labels, kept = zip(*lines, strict=True)
        return Stated(
            np.array(rows, np.int64),
            np.array(sequences, np.int64),
            list(labels),
            np.array(kept, np.int64) == 1,
        )
    except (OSError, OverflowError, ValueError, csv.Error) as problem:
        raise StudentRefuted(f"{path / LABELS} cannot be read: {problem}") from problem
