"""`ledger ...`: the history of a deployment, for its owner and for auditors."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from pacpredict.cli.as_json import print_json
from pacpredict.cli.command import Command
from pacpredict.cli.numbers import count
from pacpredict.cli.options import (
    add_anchor,
    add_artifact,
    add_force,
    add_json,
    add_ledger,
    add_ledger_password,
    open_deployment,
)
from pacpredict.cli.output import check_file, check_outside
from pacpredict.cli.table import print_table

if TYPE_CHECKING:
    from pacpredict.ledger.home import Home
    from pacpredict.ledger.sql import Link


def _home(arguments: Namespace) -> "Home":
    from pacpredict.artifact.artifact import Artifact  # noqa: PLC0415  # takes time to import
    from pacpredict.deployment import home_of  # noqa: PLC0415

    return home_of(Artifact.open(arguments.artifact))


def _chain(text: str) -> bytes:
    try:
        chain = bytes.fromhex(text)
    except ValueError:
        chain = b""
    if len(chain) != 32:
        raise ArgumentTypeError(
            f"{text!r:.80} is no chain: it has 64 digits from 0 to f, as `report` prints them"
        )
    return chain


def _add_verify_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    parser.add_argument(
        "--contains",
        type=_chain,
        metavar="CHAIN",
        help="a chain that was written down earlier, as from a report: the history must go through it",
    )
    add_ledger(parser)
    add_json(parser)


def _run_verify(arguments: Namespace) -> None:
    with open_deployment(arguments) as deployment:
        found = deployment.verify()
        earlier = None if arguments.contains is None else deployment.releases_at(arguments.contains)
    if arguments.json:
        print_json({**found._asdict(), "contains_after": earlier})
        return
    rows = [
        ("releases, numbered and chained without a gap", f"{found.releases:,}"),
        ("of which contested, replayed to the same belief", f"{found.contested:,}"),
        ("spent, as all records say", f"{found.spent_nats:.6g} of {found.total_nats:.6g} nats"),
    ]
    if earlier is not None:
        rows.append(("the chain that was written down is that after", f"{earlier:,} releases"))
    print_table("The ledger says what happened", (), rows)
    print(f"\nchain {found.chain}")


def _add_export_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    parser.add_argument("file", type=Path, help="where to write: a name that ends in .csv or .parquet")
    add_force(parser)
    add_ledger(parser)
    add_json(parser)


def _run_export(arguments: Namespace) -> None:
    check_file(arguments.file, force=arguments.force)
    with open_deployment(arguments) as deployment:
        n = deployment.export(arguments.file)
    if arguments.json:
        print_json({"releases": n})
    else:
        print(f"{n:,} releases written to {arguments.file}")


def _add_move_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    parser.add_argument("url", help="postgresql://user@host/database, a database of its own")
    add_ledger_password(parser)
    add_anchor(parser)
    add_json(parser)


def _run_move(arguments: Namespace) -> None:
    location = _home(arguments).move_to(arguments.url, arguments.anchor)
    if arguments.json:
        print_json({"location": location})
    else:
        print(f"the history is at {location} now; the ledger in the artifact refuses further use")


def _add_moved_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    _add_sequence(parser)
    add_ledger(parser)
    add_json(parser)


def _run_moved(arguments: Namespace) -> None:
    link = _home(arguments).moved(arguments.ledger, arguments.anchor, arguments.sequence)
    _print_link(arguments, link, "the artifact goes on with the ledger where it is now, at release {:,}")


def _add_backup_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    parser.add_argument("file", type=Path, help="where to write; a new file")
    add_ledger(parser)
    add_json(parser)


def _run_backup(arguments: Namespace) -> None:
    check_outside(arguments.file)
    with open_deployment(arguments) as deployment:
        link = deployment.back_up(arguments.file)
    _print_link(arguments, link, f"{arguments.file} holds the history up to release {{:,}}")


def _add_restore_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    parser.add_argument("file", type=Path, help="what `ledger backup` wrote")
    _add_sequence(parser)
    add_anchor(parser)
    add_json(parser)


def _run_restore(arguments: Namespace) -> None:
    link = _home(arguments).restore(arguments.file, arguments.anchor, arguments.sequence)
    _print_link(arguments, link, "the ledger is back, with {:,} releases")


def _add_sequence(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--sequence",
        type=count,
        metavar="N",
        help="the highest number that an answer ever carried, if the witness in the artifact, or the anchor, is lost",
    )


def _print_link(arguments: Namespace, link: "Link", text: str) -> None:
    if arguments.json:
        print_json({"releases": link.sequence, "chain": link.chain.hex()})
    else:
        print(text.format(link.sequence))


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

MOVED = Command(
    name="ledger moved",
    summary="say that an artifact or its ledger is at another place now",
    description="An artifact notices that its ledger is a copy, as after a restore or on another disk, and refuses:\n"
    "two copies would spend the budget twice. Say with this that nothing goes on at the old place. The ledger\n"
    "must hold all that was ever shown. Also for a database that failed over to a standby.",
    example="pacpredict ledger moved census.pac",
    add_arguments=_add_moved_arguments,
    run=_run_moved,
)

BACKUP = Command(
    name="ledger backup",
    summary="write the ledger to a file that can be kept",
    description="Write the whole history to a new file, also while it is in use, and with what is still in the\n"
    "database's log. The copy cannot be continued by accident; `ledger restore` brings it back.",
    example="pacpredict ledger backup census.pac ledger.backup",
    add_arguments=_add_backup_arguments,
    run=_run_backup,
)

RESTORE = Command(
    name="ledger restore",
    summary="put a backup into the place of a lost ledger",
    description="Bring a lost or damaged ledger in the artifact back from a backup. Only one that holds every release\n"
    "that was ever shown is taken: what an older one lacks was released all the same.",
    example="pacpredict ledger restore census.pac ledger.backup",
    add_arguments=_add_restore_arguments,
    run=_run_restore,
)
