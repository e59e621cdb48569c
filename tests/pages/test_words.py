"""What people read is never less than what is promised."""

from decimal import Decimal, getcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pacpredict.pages.words import factor


@given(st.floats(1e-6, 20))
def test_factors_of_odds_are_rounded_up(limit):
    """The printed factor is at least e to the limit, and not much more."""
    getcontext().prec = 60
    exact, shown = Decimal(limit).exp(), Decimal(factor(limit).replace(",", ""))
    assert exact <= shown <= exact + max(Decimal("0.01"), (exact - 1) / 10)


@pytest.mark.parametrize(
    ("limit", "shown"), [(1, "2.72"), (0.25, "1.29"), (0.004, "1.0041"), (8, "2,980.96")]
)
def test_factors_are_short(limit, shown):
    """Two digits behind the point, or two that tell it from 1."""
    assert factor(limit) == shown
