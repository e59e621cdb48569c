"""What people read is never less than what is promised."""

from decimal import Decimal, getcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pacpredict.show import factor_up, percent_up


@given(st.floats(1e-30, 600_000))
def test_factors_of_odds_are_rounded_up(limit):
    """The printed factor is at least e to the limit, and not much more."""
    getcontext().prec = 90
    exact, shown = Decimal(limit).exp(), Decimal(factor_up(limit).replace(",", ""))
    assert exact <= shown <= exact + max(exact / 500, Decimal("1e-7"))
    assert shown - exact <= (exact - 1) / 5


@pytest.mark.parametrize(
    ("limit", "shown"),
    [
        (1, "2.719"),
        (0.25, "1.285"),
        (0.004, "1.0041"),
        (8, "2,981"),
        (16, "8.887e+6"),
        (5e5, "1.742e+217147"),
    ],
)
def test_factors_are_short(limit, shown):
    """Four significant digits, or two that tell it from 1."""
    assert factor_up(limit) == shown


@given(st.floats(0, 1))
def test_percentages_are_rounded_up(rate):
    """The printed percentage is at least the rate, by less than a hundredth of a point."""
    getcontext().prec = 60
    exact, shown = 100 * Decimal(rate), Decimal(percent_up(rate).removesuffix("%"))
    assert exact <= shown * (1 + Decimal("1e-15"))
    assert shown <= exact + max(Decimal("0.01"), exact / 100)


@pytest.mark.parametrize(
    ("rate", "shown"),
    [
        (0, "0%"),
        (0.5, "50%"),
        (0.510789, "51.08%"),
        (0.001, "0.1%"),
        (0.00128402, "0.1285%"),
        (1 / 128, "0.7813%"),
        (1, "100%"),
    ],
)
def test_percentages_are_short(rate, shown):
    """Two decimals, below one percent four significant digits, and no space before the sign."""
    assert percent_up(rate) == shown
