"""`predict`: private answers for the rows of a file."""

import math
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
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
    add_other_votes,
    add_trust,
)
from pacpredict.cli.output import output_file
from pacpredict.cli.progress import saying_how_to_go_on
from pacpredict.cli.queries import Columns, choose_features, read_columns, with_missing
from pacpredict.exceptions import InvalidInput, InvalidQuery

if TYPE_CHECKING:
    from pacpredict.curator import Answers, Curator


def _add_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    parser.add_argument(
        "queries",
        type=Path,
        help="CSV (also .gz) or Parquet with the columns of the training data; an image, a folder of them, .npy, .npz",
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
    add_other_votes(parser)
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
        given = read_columns(arguments.queries)
        deployment = stack.enter_context(
            Deployment.open(
                arguments.artifact,
                ledger=arguments.ledger,
                anchor=arguments.anchor,
                trust=arguments.trust,
                decode=arguments.decode,
                votes=arguments.votes,
            )
        )
        kept = _keep(given, arguments.keep)
        features = choose_features(given, kept, deployment.artifact)
        compile_once()
        before = deployment.curator.session.snapshot().sequence
        # What was answered is on record, and not charged again.
        with saying_how_to_go_on(), _naming_lines(arguments.queries):
            answers = deployment.ask(with_missing(features, arguments.missing))
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


@contextmanager
def _naming_lines(path: Path) -> Iterator[None]:
    """Say on which line of a CSV file the row is that cannot be answered."""
    from pacpredict.tables.csv_files import is_csv, line_of  # noqa: PLC0415

    try:
        yield
    except InvalidQuery as problem:
        if problem.row is None or path.is_dir() or not is_csv(path):
            raise
        raise InvalidQuery(f"{path}, line {line_of(path, problem.row)}: {problem}", problem.row) from problem


def _keep(given: Columns, wanted: Sequence[str]) -> Columns:
    """Choose the columns that are carried into the answer."""
    names = [name for text in wanted for name in ([text] if text in given else text.split(","))]
    if absent := [name for name in names if name not in given]:
        raise InvalidInput(f"there is no column {absent[0]!r} to keep; the columns are {', '.join(given)}")
    if taken := [name for name in names if name in ("label", "sequence", "charge_nats")]:
        raise InvalidInput(f"the answer has a column {taken[0]!r} of its own: rename yours to keep it")
    return {name: list(given[name]) for name in names}


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
        rows = "1 row" if summary["rows"] == 1 else f"{summary['rows']:,} rows"
        print(
            f"{rows} answered, {summary['charged_rows']:,} of them charged: "
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
