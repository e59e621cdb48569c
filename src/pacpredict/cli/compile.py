"""`compile`: have the numerical kernels ready before somebody waits for them."""

import time
from argparse import ArgumentParser, Namespace

from pacpredict.cli.as_json import print_json
from pacpredict.cli.command import Command
from pacpredict.cli.options import add_json


def _run(arguments: Namespace) -> None:
    from pacpredict.kernels import compile_once  # noqa: PLC0415  # takes time to import

    began = time.perf_counter()
    was_needed = compile_once()
    seconds = round(time.perf_counter() - began, 1)
    if arguments.json:
        print_json({"compiled": was_needed, "seconds": seconds})
    else:
        print(f"compiled in {seconds} s" if was_needed else "everything was compiled before")


def _add_arguments(parser: ArgumentParser) -> None:
    add_json(parser)


COMPILE = Command(
    name="compile",
    summary="compile the numerical kernels now, once per installation",
    description="Compile all numerical kernels, so that no command has to. `fit`, `predict` and `serve` do it when\n"
    "they are first used; in an image or on a new machine, do it beforehand, as the user that will answer.",
    example="pacpredict compile",
    add_arguments=_add_arguments,
    run=_run,
)
