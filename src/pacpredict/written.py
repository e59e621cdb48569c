"""Numbers as people write them: 1e6, 1_000_000, 1/128, 2**-32, 2^-32, 5 %. Read exactly; nothing is evaluated."""

import re
from fractions import Fraction

from pacpredict.exceptions import InvalidInput
from pacpredict.show import show

_DIGITS = r"[0-9]+(?:_[0-9]+)*"
_PLAIN = rf"(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})"
_NUMBER = re.compile(rf"([+-]?{_PLAIN}(?:[eE][+-]?[0-9]{{1,4}})?)( ?%)?")
_RATIO = re.compile(rf"([+-]?{_PLAIN})/({_PLAIN})")
# Exponents have at most four digits: floats end at 2**1024, and no input should take long to read.
_POWER = re.compile(rf"([+-]?{_PLAIN})(?:\*\*|\^)([+-]?[0-9]{{1,4}})")
_LONGEST = 60


def real(text: str) -> float:
    """Return the float nearest to the number that is written."""
    try:
        return float(_exact(text))
    except OverflowError:
        raise InvalidInput(f"{show(text)} is too large") from None


def count(text: str) -> int:
    """Return a whole number, which may be written as 1e6."""
    number = _exact(text)
    if number.denominator != 1:
        raise InvalidInput(f"{show(text)} is not a whole number")
    return number.numerator


def _exact(text: str) -> Fraction:
    written = text.strip()
    try:
        if len(written) <= _LONGEST:
            if number := _NUMBER.fullmatch(written):
                return Fraction(number[1]) / (100 if number[2] else 1)
            if ratio := _RATIO.fullmatch(written):
                return Fraction(ratio[1]) / Fraction(ratio[2])
            if power := _POWER.fullmatch(written):
                return Fraction(Fraction(power[1]) ** int(power[2]))
    except ZeroDivisionError:
        raise InvalidInput(f"{show(text)} divides by zero") from None
    raise InvalidInput(
        f"{show(text)} is not a number; write it like 0.25, 1e6, 1_000_000, 1/128, 5 % or 2**-32"
    )
