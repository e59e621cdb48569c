"""`predict`: private answers for the rows of a file."""

import math
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pacpredict.cli.command import Command
from pacpredict.cli.options import add_artifact, add_json, add_ledger, add_missing, add_trust
from pacpredict.exceptions import InvalidInput

if TYPE_CHECKING:
    from pacpredict.curator import Answers
    from pacpredict.mechanism.guarantee import Guarantee


def _add_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    parser.add_argument(
        "queries", type=Path, help="CSV (also .gz) or Parquet with the columns of the training data"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="where to write labels, as CSV (default: print them)"
    )
    add_missing(parser)
    add_ledger(parser)
    add_trust(parser)
    add_json(parser)


def _run(arguments: Namespace) -> None:
    import pandas as pd  # noqa: PLC0415  # takes time to import

    from pacpredict.cli.as_json import print_json  # noqa: PLC0415
    from pacpredict.curator import Curator  # noqa: PLC0415
    from pacpredict.ensemble.artifact.files import write_whole  # noqa: PLC0415
    from pacpredict.ensemble.tables.read import read_table  # noqa: PLC0415

    if arguments.out is not None and not arguments.out.absolute().parent.is_dir():
        raise InvalidInput(f"{arguments.out} cannot be written: there is no folder {arguments.out.parent}")
    curator = Curator.open(arguments.artifact, ledger=arguments.ledger, trust=arguments.trust)
    answers = curator.ask(read_table(arguments.queries, arguments.missing, as_text=True))
    table = pd.DataFrame(answers.columns()).to_csv(index=False)
    if arguments.out is not None:
        write_whole(arguments.out, table.encode())
    elif not arguments.json:
        print(table, end="")
    summary = _summary(answers, curator.guarantee())
    if arguments.json:
        print_json(summary if arguments.out is not None else {"labels": _plain(answers), **summary})
    else:
        print(
            f"{summary['rows']:,} rows answered, {summary['charged_rows']:,} of them charged: "
            f"{summary['charge_nats']:.6g} nats; spent by now: {summary['spent_nats']:.6g} of "
            f"{summary['total_nats']:.6g}",
            file=sys.stderr,
        )


def _plain(answers: "Answers") -> list[Any]:
    """Return the labels as JSON has them; others as text, as in the table."""
    labels = answers.labels.tolist()
    return [label if isinstance(label, bool | int | float | str) else str(label) for label in labels]


def _summary(answers: "Answers", guarantee: "Guarantee") -> dict[str, float]:
    charges = [release.charge for release in answers.releases]
    return {
        "rows": len(charges),
        "charged_rows": sum(charge > 0 for charge in charges),
        "charge_nats": math.fsum(charges),
        "spent_nats": guarantee.spent_nats,
        "total_nats": guarantee.total_nats,
    }


PREDICT = Command(
    name="predict",
    summary="answer the rows of a file privately",
    description="Answer the rows of a file, all of them or none, and record what that costs in the artifact's ledger.\n"
    "A row that was answered before gets the same label at no charge.",
    example="pacpredict predict census.pac queries.csv --out labels.csv",
    add_arguments=_add_arguments,
    run=_run,
)
