"""Rounding with a direction: what is spent or promised rounds up, what is allowed rounds down."""

import math
import sys
from collections.abc import Iterable
from fractions import Fraction


def sum_up(terms: Iterable[float]) -> float:
    """Return the smallest float that is not below the exact sum of finite terms."""
    values = tuple(terms)
    nearest = math.fsum(values)
    return math.nextafter(nearest, math.inf) if _lost(values, nearest) > 0 else nearest


def sum_down(terms: Iterable[float]) -> float:
    """Return the largest float that is not above the exact sum of finite terms."""
    values = tuple(terms)
    nearest = math.fsum(values)
    return math.nextafter(nearest, -math.inf) if _lost(values, nearest) < 0 else nearest


def float_up(exact: Fraction) -> float:
    """Return the smallest float that is not below an exact number of at least 0; infinity if none is."""
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return math.nextafter(nearest, math.inf) if Fraction(nearest) < exact else nearest


def float_down(exact: Fraction) -> float:
    """Return the largest float that is not above an exact number of at least 0."""
    try:
        nearest = float(exact)
    except OverflowError:
        return sys.float_info.max
    return math.nextafter(nearest, 0.0) if Fraction(nearest) > exact else nearest


def _lost(values: tuple[float, ...], nearest: float) -> float:
    # fsum rounds the exact sum once, so what it returns here has the sign of (exact sum - nearest).
    return math.fsum((*values, -nearest))
