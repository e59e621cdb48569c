from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import NamedTuple

EXIT_REFUSED = 2


class Command(NamedTuple):
    """What the terminal knows about one command before it runs."""

    name: str
    summary: str
    description: str
    example: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], None]
