"""`predict`: private answers for the rows of a file."""

import math
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pacpredict.cli.command import Command
from pacpredict.cli.options import (
    add_artifact,
    add_force,
    add_json,
    add_ledger,
    add_missing,
    add_other_decode,
    add_trust,
)
from pacpredict.cli.output import output_file
from pacpredict.exceptions import InvalidInput

if TYPE_CHECKING:
    from pacpredict.artifact.artifact import Artifact
    from pacpredict.curator import Answers, Curator

Columns = dict[str, Sequence[Any]]


def _add_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    parser.add_argument(
        "queries",
        type=Path,
        help="CSV (also .gz) or Parquet with the columns of the training data; for images also a folder, .npy or .npz",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="where to write labels, as CSV (default: print them)"
    )
    add_force(parser)
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="COLUMNS",
        help="columns to carry into the answer, such as patient_id,visit; they need not be features",
    )
    add_other_decode(parser)
    add_missing(parser)
    add_ledger(parser)
    add_trust(parser)
    add_json(parser)


def _run(arguments: Namespace) -> None:
    from pacpredict.deployment import Deployment  # noqa: PLC0415  # takes time to import
    from pacpredict.kernels import compile_once  # noqa: PLC0415

    with ExitStack() as stack:
        out: IO[bytes] | None = None
        if arguments.out is not None:
            out = stack.enter_context(output_file(arguments.out, force=arguments.force))
        given = _read(arguments.queries)
        deployment = stack.enter_context(
            Deployment.open(
                arguments.artifact,
                ledger=arguments.ledger,
                anchor=arguments.anchor,
                trust=arguments.trust,
                decode=arguments.decode,
            )
        )
        kept = _keep(given, arguments.keep)
        features = _features(given, kept, deployment.artifact)
        compile_once()
        before = deployment.curator.session.snapshot().sequence
        answers = deployment.ask(_with_missing(features, arguments.missing))
        _write(answers, kept, _summary(answers, deployment.curator), out, as_json=arguments.json)
        _say_what_stays(answers, before, arguments.decode)


def _say_what_stays(answers: "Answers", before: int, decode: str | None) -> None:
    """Say that answers on record are not decoded anew, to whoever compares decoders on one file."""
    repeated = sum(release.sequence <= before for release in answers.releases)
    if decode is not None and repeated:
        print(
            f"{repeated:,} rows were answered before and keep their labels: {decode} decodes new answers only",
            file=sys.stderr,
        )


def _read(path: Path) -> Columns:
    """Return the columns of a file or folder: texts of a CSV file, values of others."""
    from pacpredict.rows.read import holds_whole_values, read_whole  # noqa: PLC0415
    from pacpredict.tables.csv_files import is_csv, read_texts  # noqa: PLC0415

    if holds_whole_values(path):
        return {**read_whole(path)}
    if is_csv(path):
        return {**read_texts(path)}
    from pacpredict.tables.read import read_table  # noqa: PLC0415  # pandas takes time to import

    table = read_table(path)
    return {name: table[name] for name in table.columns}


def _keep(given: Columns, wanted: Sequence[str]) -> Columns:
    """Choose the columns that are carried into the answer."""
    names = [name for text in wanted for name in ([text] if text in given else text.split(","))]
    if absent := [name for name in names if name not in given]:
        raise InvalidInput(f"there is no column {absent[0]!r} to keep; the columns are {', '.join(given)}")
    if taken := [name for name in names if name in ("label", "sequence", "charge_nats")]:
        raise InvalidInput(f"the answer has a column {taken[0]!r} of its own: rename yours to keep it")
    return {name: list(given[name]) for name in names}


def _features(given: Columns, kept: Columns, artifact: "Artifact") -> Columns:
    """Choose the columns that are asked about, and say which are not."""
    from pacpredict.tables.schema import Schema  # noqa: PLC0415

    if not isinstance(artifact.schema, Schema):
        return given  # of which the schema takes the column that it knows, or the only one
    features = {column.name for column in artifact.schema.columns}
    source = artifact.manifest.get("source") or {}
    # What the table was trained with, and not from: the target, the persons, weights, and what was dropped.
    known = {source.get("target"), source.get("person"), source.get("weights"), *source.get("drop", ())}
    others = [name for name in given if name not in features and name not in kept]
    strange = [name for name in others if name not in known]
    if strange and features <= given.keys():
        raise InvalidInput(
            f"the model has no column {', '.join(map(repr, strange))}; "
            f"--keep {shlex.quote(','.join(strange))} carries what is no feature into the answer"
        )
    if others and not strange:
        names = ", ".join(map(repr, others))
        print(f"not looked at, since models do not learn from it: column {names}", file=sys.stderr)
    return {name: column for name, column in given.items() if name in features or name in strange}


def _with_missing(columns: Columns, texts: Sequence[str]) -> Columns:
    """Take cells of a CSV file that are empty, or have one of these texts, as missing."""
    none = {"", *texts}
    return {
        name: [None if isinstance(cell, str) and cell in none else cell for cell in column]
        if isinstance(column, list)
        else column
        for name, column in columns.items()
    }


def _summary(answers: "Answers", curator: "Curator") -> dict[str, float]:
    charges = [release.charge for release in answers.releases]
    spent, budget = curator.session.snapshot().spent_steps, curator.recipe.budget
    return {
        "rows": len(charges),
        "charged_rows": sum(charge > 0 for charge in charges),
        "charge_nats": math.fsum(charges),
        "spent_nats": budget.nats(spent),
        "total_nats": budget.total,
        "rows_left": budget.total_steps - spent,  # at least so many: those on which models agree cost nothing
    }


def _write(
    answers: "Answers", kept: Columns, summary: dict[str, float], out: IO[bytes] | None, *, as_json: bool
) -> None:
    from pacpredict.cli.as_json import print_json  # noqa: PLC0415

    table = _table({**kept, **answers.columns()})
    if out is not None:
        out.write(table.encode())
    elif not as_json:
        print(table, end="")
    if as_json:
        print_json(summary if out is not None else {"labels": _plain(answers), **summary})
    else:
        print(
            f"{summary['rows']:,} rows answered, {summary['charged_rows']:,} of them charged: "
            f"{summary['charge_nats']:.6g} nats; spent by now: {summary['spent_nats']:.6g} of "
            f"{summary['total_nats']:.6g}, which leaves {summary['rows_left']:,} contested rows",
            file=sys.stderr,
        )


def _table(columns: Mapping[str, Sequence[Any]]) -> str:
    import csv  # noqa: PLC0415
    from io import StringIO  # noqa: PLC0415

    from pacpredict.tables.values import is_missing  # noqa: PLC0415

    stream = StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow("" if is_missing(value) else value for value in row)
    return stream.getvalue()


def _plain(answers: "Answers") -> list[Any]:
    """Return the labels as JSON has them; others as text, as in the table."""
    labels = answers.labels.tolist()
    return [label if isinstance(label, bool | int | float | str) else str(label) for label in labels]


PREDICT = Command(
    name="predict",
    summary="answer the rows of a file privately",
    description="Answer the rows of a file, all of them or none, and record what that costs in the artifact's ledger.\n"
    "A row that was answered before gets the same label at no charge.",
    example="pacpredict predict census.pac queries.csv --keep patient_id --out labels.csv",
    add_arguments=_add_arguments,
    run=_run,
)
