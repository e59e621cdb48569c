"""What a check of a self-test came to."""

from typing import NamedTuple

# How often all statistical checks together alarm about an honest mechanism, at most, and how often one of them does.
FALSE_ALARM = 1e-3
CHECK_ALARM = FALSE_ALARM / 8


class CheckResult(NamedTuple):
    """A statement, and whether what was seen contradicts it."""

    check: str
    statement: str
    holds: bool | None  # None: it was not checked
    seen: str  # in words
    p_value: float | None = None  # of statistical checks
    noticeable: str = ""  # how large a breach would have been noticed with a chance of 95%
