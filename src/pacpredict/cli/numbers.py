"""Numbers as people write them: 1e6, 1_000_000, 1/128, 2**-32, 2^-32. Read exactly; nothing is evaluated."""

import re
from argparse import ArgumentTypeError
from fractions import Fraction

_DIGITS = r"[0-9]+(?:_[0-9]+)*"
_PLAIN = rf"(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})"
_NUMBER = re.compile(rf"[+-]?{_PLAIN}(?:[eE][+-]?[0-9]{{1,4}})?")
_RATIO = re.compile(rf"([+-]?{_PLAIN})/({_PLAIN})")
# Exponents have at most four digits: floats end at 2**1024, and no input should take long to read.
_POWER = re.compile(rf"([+-]?{_PLAIN})(?:\*\*|\^)([+-]?[0-9]{{1,4}})")
_LONGEST = 60


def real(text: str) -> float:
    """Return the float nearest to the number that is written."""
    try:
        return float(_exact(text))
    except OverflowError as problem:
        raise ArgumentTypeError(f"{text!r} is too large") from problem


def count(text: str) -> int:
    """Return a whole number, which may be written as 1e6."""
    number = _exact(text)
    if number.denominator != 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number")
    return number.numerator


def _exact(text: str) -> Fraction:
    written = text.strip()
    try:
        if len(written) <= _LONGEST:
            if _NUMBER.fullmatch(written):
                return Fraction(written)
            if ratio := _RATIO.fullmatch(written):
                return Fraction(ratio[1]) / Fraction(ratio[2])
            if power := _POWER.fullmatch(written):
                return Fraction(Fraction(power[1]) ** int(power[2]))
    except ZeroDivisionError as problem:
        raise ArgumentTypeError(f"{text!r} divides by zero") from problem
    raise ArgumentTypeError(f"{text!r} is not a number; write it like 0.25, 1e6, 1_000_000, 1/128 or 2**-32")
