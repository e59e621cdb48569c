"""The terminal: parse, call the library, print.

Whatever takes time to import (NumPy, rich) is imported by the command that needs it, so that help is instant.
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from pacpredict.cli import (
    audit,
    completion,
    demo,
    distill,
    evaluate,
    fit,
    keys,
    ledger,
    plan,
    predict,
    report,
    serve,
    show,
)
from pacpredict.cli import compile as compiling
from pacpredict.cli.command import EXIT_REFUSED, Command
from pacpredict.exceptions import PacPredictError

# A new command is a Command in a file of this folder and its name here.
COMMANDS: tuple[Command, ...] = (
    demo.DEMO,
    evaluate.EVALUATE,
    fit.FIT,
    predict.PREDICT,
    serve.SERVE,
    distill.DISTILL,
    keys.MAKE,
    keys.LIST,
    keys.REVOKE,
    show.SHOW,
    report.REPORT,
    audit.AUDIT,
    fit.VERIFY,
    ledger.VERIFY,
    ledger.EXPORT,
    ledger.MOVE,
    ledger.MOVED,
    ledger.BACKUP,
    ledger.RESTORE,
    plan.PLAN,
    plan.BOUNDS,
    compiling.COMPILE,
    completion.COMPLETION,
)

EXIT_FAILED = 1
GROUPS = {
    "keys": "make, list, revoke the keys of a server's clients",
    "ledger": "verify, export, move, back up, restore the history",
}

# What a shell reports of programs that these signals ended.
EXIT_INTERRUPTED = 128 + signal.SIGINT
EXIT_NOBODY_READS = 128 + 13  # SIGPIPE, which not every system knows by name


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    try:
        code = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes once more when it ends; let that go nowhere instead of failing again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_NOBODY_READS
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return code


def _run(argv: Sequence[str] | None) -> int:
    parser = build_parser()
    try:
        arguments = parser.parse_args(argv)
        if arguments.run is None:
            parser.error(f"choose a command: {', '.join(command.name for command in COMMANDS)}")
    except SystemExit as stop:  # argparse has printed help or what is wrong
        return int(stop.code or 0)
    try:
        arguments.run(arguments)
    except PacPredictError as problem:
        _complain(str(problem))
        return EXIT_REFUSED
    except BrokenPipeError:
        raise
    except OSError as problem:  # a full disk, a folder that may not be written
        _complain(_plain(problem))
        return EXIT_FAILED
    return 0


def _complain(message: str) -> None:
    sys.stdout.flush()  # what was printed before comes first, also where both go into one file
    print(_error_line(message), file=sys.stderr)


def build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="pacpredict",
        description="Serve a classifier's predictions with a proof that they hide who was in the training set.",
        epilog="pacpredict COMMAND --help shows an example of each command.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    parser.set_defaults(run=None)
    groups = {"": parser.add_subparsers(title="commands", metavar="COMMAND")}
    for command in COMMANDS:
        group, _, name = command.name.rpartition(
            " "
        )  # "ledger verify" is the command verify of the group ledger
        if group not in groups:
            of_group = groups[""].add_parser(group, help=GROUPS[group], allow_abbrev=False)
            groups[group] = of_group.add_subparsers(title="commands", metavar="COMMAND", required=True)
        own = groups[group].add_parser(
            name,
            help=command.summary,
            description=command.description,
            epilog=f"example:\n  {command.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.add_arguments(own)
        own.set_defaults(run=command.run)
    return parser


class _Parser(argparse.ArgumentParser):
    """Reports a wrong command line in one line, like every other error."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Let each command refuse what it does not know, and point to its own help instead of that of all."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_REFUSED, f"{_error_line(message)} (see {self.prog} --help)\n")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from importlib.metadata import version  # noqa: PLC0415  # reads files; only needed here

        print(f"pacpredict {version('pacpredict')}")
        parser.exit()


def _plain(problem: OSError) -> str:
    """Say which file and what is the matter with it, as a shell would."""
    named = [str(name) for name in (problem.filename, problem.filename2) if name is not None]
    return f"{' -> '.join(named)}: {problem.strerror}" if named and problem.strerror else str(problem)


def _error_line(message: str) -> str:
    return f"pacpredict: error: {' '.join(message.split())}"
