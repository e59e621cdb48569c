"""Numbers of the command line: as people write them, with what argparse expects where they are wrong."""

from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Literal, TypeVar

from pacpredict import written
from pacpredict.exceptions import InvalidInput

ONE_PER_CORE = -1  # as joblib counts
_HIGHEST_PORT = 2**16 - 1

X = TypeVar("X")


def real(text: str) -> float:
    """Return the float nearest to the number that is written."""
    return _read(written.real, text)


def odds_limit(text: str) -> float | Literal["auto"] | None:
    """Return a limit on odds: a number, `auto` for what goes with the total, or None for no limit."""
    name = text.strip().lower()
    return None if name == "none" else "auto" if name == "auto" else real(text)


def count(text: str) -> int:
    """Return a whole number, which may be written as 1e6."""
    return _read(written.count, text)


def jobs(text: str) -> int:
    """Return how many may run at a time."""
    number = count(text)
    if number < 1 and number != ONE_PER_CORE:
        raise ArgumentTypeError(
            f"so many at a time, 1 or more, or {ONE_PER_CORE} for one per core; got {text}"
        )
    return number


def port(text: str) -> int:
    """Return a number that a network port can have."""
    number = count(text)
    if not 0 <= number <= _HIGHEST_PORT:
        raise ArgumentTypeError(f"a port is a number from 0 to {_HIGHEST_PORT}, not {text}")
    return number


def _read(read: Callable[[str], X], text: str) -> X:
    try:
        return read(text)
    except InvalidInput as problem:
        raise ArgumentTypeError(str(problem)) from problem
