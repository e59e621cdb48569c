"""Budgets and days as pages for people write them."""

import math
from datetime import datetime


def power(budget: float) -> str:
    """Return nats as a power of two, in which the paper writes budgets."""
    exponent = math.log2(budget)
    return f"2^{exponent:g} nats" if exponent.is_integer() else f"{budget:.6g} nats (2^{exponent:.2f})"


def day(moment: datetime) -> str:
    return f"{moment.day} {moment:%B %Y}"
