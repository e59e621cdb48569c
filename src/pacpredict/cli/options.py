"""Options that several commands share."""

from argparse import ArgumentParser
from pathlib import Path


def add_artifact(parser: ArgumentParser) -> None:
    parser.add_argument("artifact", type=Path, help="the directory that `pacpredict fit` made")


def add_json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_jobs(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--jobs", type=int, default=-1, metavar="N", help="models trained at a time (default: one per core)"
    )


def add_missing(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--missing",
        action="append",
        default=[],
        metavar="TEXT",
        help="a value that means missing, such as '?'; may be repeated (an empty cell always does)",
    )


def add_ledger(parser: ArgumentParser) -> None:
    parser.add_argument("--ledger", metavar="URL", help="where the ledger is, if not in the artifact")


def add_trust(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--trust",
        action="store_true",
        help="load models that skops stored, whose files can name code to run; for artifacts of your own",
    )
