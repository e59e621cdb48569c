"""Rows to be asked about, as files have them."""

import shlex
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pacpredict.cli.columns import print_warnings
from pacpredict.exceptions import InvalidInput

if TYPE_CHECKING:
    from pacpredict.artifact.artifact import Artifact

Columns = dict[str, Sequence[Any]]


def read_columns(path: Path) -> Columns:
    """Return the columns of a file or folder: texts of a CSV file, values of others. Say what is left out."""
    from pacpredict.rows.folders import left_out  # noqa: PLC0415
    from pacpredict.rows.read import holds_whole_values, read_whole  # noqa: PLC0415
    from pacpredict.tables.csv_files import is_csv, read_texts  # noqa: PLC0415

    if path.is_dir():
        print_warnings(left_out(path))
    if holds_whole_values(path):
        return {**read_whole(path)}
    if is_csv(path):
        return {**read_texts(path)}
    from pacpredict.tables.read import read_table  # noqa: PLC0415  # pandas takes time to import

    table = read_table(path)
    return {name: table[name] for name in table.columns}


def choose_features(given: Columns, kept: Collection[str] | None, artifact: "Artifact") -> Columns:
    """Choose the columns that are asked about, and say which are not; None where there is no answer to keep any in."""
    from pacpredict.rows.folders import IMAGE  # noqa: PLC0415
    from pacpredict.rows.images import ImageSchema  # noqa: PLC0415
    from pacpredict.rows.texts import TextSchema  # noqa: PLC0415
    from pacpredict.tables.csv_files import check_only_name  # noqa: PLC0415
    from pacpredict.tables.schema import Schema  # noqa: PLC0415

    if isinstance(artifact.schema, ImageSchema) and IMAGE in given:
        return {artifact.schema.column: given[IMAGE], **given}  # a folder has no other name for its images
    if isinstance(artifact.schema, TextSchema):
        check_only_name(list(given), artifact.schema.column)
    if not isinstance(artifact.schema, Schema):
        return given  # of which the schema takes the column that it knows
    features = {column.name for column in artifact.schema.columns}
    source = artifact.manifest.get("source") or {}
    # What the table was trained with, and not from: the target, the persons, weights, and what was dropped.
    known = {source.get("target"), source.get("person"), source.get("weights"), *source.get("drop", ())}
    others = [name for name in given if name not in features and name not in (kept or ())]
    strange = [name for name in others if name not in known]
    if strange and features <= given.keys():
        advice = (
            "leave out what is no feature"
            if kept is None
            else f"--keep {shlex.quote(','.join(strange))} carries what is no feature into the answer"
        )
        raise InvalidInput(f"the model has no column {', '.join(map(repr, strange))}; {advice}")
    if others and not strange:
        names = ", ".join(map(repr, others))
        print(f"not looked at, since models do not learn from it: column {names}", file=sys.stderr)
    return {name: column for name, column in given.items() if name in features or name in strange}


def with_missing(columns: Columns, texts: Sequence[str]) -> Columns:
    """Take cells of a CSV file that are empty, or have one of these texts, as missing."""
    from pacpredict.tables.values import codes_by_column  # noqa: PLC0415

    none = {name: {"", *codes} for name, codes in codes_by_column(texts, columns).items()}
    return {
        name: [None if isinstance(cell, str) and cell in none[name] else cell for cell in column]
        if isinstance(column, list)
        else column
        for name, column in columns.items()
    }
