"""`ledger verify`, `ledger export` and `ledger move`: the history of a deployment, for its owner and for auditors."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from pacpredict.cli.as_json import print_json
from pacpredict.cli.command import Command
from pacpredict.cli.options import add_artifact, add_json, add_ledger
from pacpredict.cli.table import print_table

if TYPE_CHECKING:
    from pacpredict.ensemble.artifact.artifact import Artifact
    from pacpredict.ledger.witness import WitnessedLedger


def _open(arguments: Namespace) -> "tuple[Artifact, WitnessedLedger]":
    from pacpredict.ensemble.artifact.artifact import Artifact  # noqa: PLC0415  # takes time to import
    from pacpredict.ledger.home import open_ledger  # noqa: PLC0415

    artifact = Artifact.open(arguments.artifact)
    return artifact, open_ledger(artifact.path, artifact.identity, arguments.ledger)


def _add_verify_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    add_ledger(parser)
    add_json(parser)


def _run_verify(arguments: Namespace) -> None:
    from pacpredict.core.belief import Belief  # noqa: PLC0415  # NumPy takes time to import
    from pacpredict.ledger.verify import verify  # noqa: PLC0415

    artifact, ledger = _open(arguments)
    recipe = artifact.recipe
    with ledger:
        found = verify(ledger.ledger, len(artifact.classes), recipe.budget, Belief.uniform(recipe.n_models))
    if arguments.json:
        print_json(found._asdict())
        return
    rows = [
        ("releases, numbered and chained without a gap", f"{found.releases:,}"),
        ("of which contested, replayed to the same belief", f"{found.contested:,}"),
        ("spent, as all records say", f"{found.spent_nats:.6g} of {found.total_nats:.6g} nats"),
        ("chain", found.chain[:16]),
    ]
    print_table("The ledger says what happened", (), rows)


def _add_export_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    parser.add_argument("file", type=Path, help="where to write: a name that ends in .csv or .parquet")
    add_ledger(parser)
    add_json(parser)


def _run_export(arguments: Namespace) -> None:
    from pacpredict.ledger.export import export  # noqa: PLC0415  # takes time to import

    artifact, ledger = _open(arguments)
    with ledger:
        n = export(ledger.ledger, arguments.file, artifact.recipe.budget, artifact.classes.values.__getitem__)
    if arguments.json:
        print_json({"releases": n})
    else:
        print(f"{n:,} releases written to {arguments.file}")


def _add_move_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    parser.add_argument(
        "url", help="postgresql://user@host/database, a database of its own; PGPASSWORD is heeded"
    )
    add_json(parser)


def _run_move(arguments: Namespace) -> None:
    from pacpredict.ensemble.artifact.artifact import Artifact  # noqa: PLC0415  # takes time to import
    from pacpredict.ledger.home import move_to  # noqa: PLC0415

    artifact = Artifact.open(arguments.artifact)
    location = move_to(artifact.path, artifact.identity, arguments.url)
    if arguments.json:
        print_json({"location": location})
    else:
        print(f"the history is at {location} now; the ledger in the artifact refuses further use")


VERIFY = Command(
    name="ledger verify",
    summary="replay a ledger's chain, spending and belief, and compare every bit",
    description="Check that no record is missing or changed, that the spending adds up, and that replaying all\n"
    "releases gives the belief that is on record, bit for bit. Nobody has to wait meanwhile.",
    example="pacpredict ledger verify census.pac",
    add_arguments=_add_verify_arguments,
    run=_run_verify,
)

EXPORT = Command(
    name="ledger export",
    summary="write what was answered to a CSV or Parquet file",
    description="Write a row for each release: number, time, client, request id, digest of the query, label,\n"
    "charge, spent by then, chain. Votes, noisy numbers and beliefs stay inside.",
    example="pacpredict ledger export census.pac releases.csv",
    add_arguments=_add_export_arguments,
    run=_run_export,
)

MOVE = Command(
    name="ledger move",
    summary="take a deployment's ledger from SQLite to PostgreSQL",
    description="Copy the ledger of an artifact to a PostgreSQL database and continue there. The old one refuses\n"
    "further use. Interrupted, do it again.",
    example="pacpredict ledger move census.pac postgresql://owner@db.example.org/census",
    add_arguments=_add_move_arguments,
    run=_run_move,
)
