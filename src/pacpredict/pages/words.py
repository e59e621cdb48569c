"""Numbers and days as pages for people write them."""

import math
from datetime import datetime
from decimal import ROUND_CEILING, Decimal


def percent(probability: float) -> str:
    """Return a rate in percent, rounded up as bounds are, with two digits behind the point or two that count."""
    exact = Decimal(repr(probability)).scaleb(2)
    digits = Decimal("0.01") if exact >= 1 or not exact else Decimal(1).scaleb(exact.adjusted() - 1)
    return f"{exact.quantize(digits, rounding=ROUND_CEILING).normalize():f} %"


def factor(limit: float) -> str:
    """Return by which factor odds move at most if their logarithm moves by no more than a limit, rounded up."""
    # One step above the nearest number: how far exp may be off.
    exact = Decimal(repr(math.nextafter(math.exp(limit), math.inf)))
    digits = Decimal(1).scaleb(min(-2, (exact - 1).adjusted() - 1))
    return f"{exact.quantize(digits, rounding=ROUND_CEILING).normalize():,f}"


def power(budget: float) -> str:
    """Return nats as a power of two, in which the paper writes budgets."""
    exponent = math.log2(budget)
    return f"2^{exponent:g} nats" if exponent.is_integer() else f"{budget:.6g} nats (2^{exponent:.2f})"


def day(moment: datetime) -> str:
    return f"{moment.day} {moment:%B %Y}"
