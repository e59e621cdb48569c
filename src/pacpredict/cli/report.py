"""`report`: two printed pages for a privacy officer."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from pacpredict.cli.command import Command
from pacpredict.cli.options import add_artifact, add_force, add_json, add_ledger, open_deployment
from pacpredict.cli.output import output_file


def _add_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="the page to write, such as report.html"
    )
    add_force(parser)
    parser.add_argument(
        "--no-verify",
        dest="verify",
        action="store_false",
        help="do not replay the whole history first; the page says so",
    )
    add_ledger(parser)
    add_json(parser)


def _run(arguments: Namespace) -> None:
    from pacpredict.cli.as_json import print_json  # noqa: PLC0415
    from pacpredict.kernels import compile_once  # noqa: PLC0415
    from pacpredict.report.facts import gather  # noqa: PLC0415
    from pacpredict.report.page import render  # noqa: PLC0415

    with output_file(arguments.out, force=arguments.force) as out:
        if arguments.verify:
            compile_once()
        with open_deployment(arguments) as deployment:
            found = gather(deployment, verify=arguments.verify)
        out.write(render(found).encode())
    if arguments.json:
        print_json(found.to_json())
    else:
        print(f"{arguments.out} says what {arguments.artifact.name} promises, has spent and has revealed")


REPORT = Command(
    name="report",
    summary="write two pages for a privacy officer",
    description="Write a page that can be printed and kept: what is protected and what is not, what attacks can\n"
    "achieve, what was spent over time, what that has revealed, and how to check all of it.",
    example="pacpredict report census.pac --out report.html",
    add_arguments=_add_arguments,
    run=_run,
)
