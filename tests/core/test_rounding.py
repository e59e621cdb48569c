import math
import sys
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pacpredict.core.rounding import float_down, float_up, sum_down, sum_up

terms = st.lists(st.floats(-1e9, 1e9), max_size=6)
exact_numbers = st.fractions(0, 10**6)


@settings(deadline=None)
@given(values=terms)
def test_sums_enclose_the_exact_sum(values):
    """The exact sum lies between the two roundings, which are neighbours or equal."""
    exact = sum(map(Fraction, values))
    low, high = sum_down(values), sum_up(values)
    assert low <= exact <= high
    assert high in (low, math.nextafter(low, math.inf))
    assert (low == high) == (exact == low)


@settings(deadline=None)
@given(exact=exact_numbers)
def test_floats_enclose_the_exact_number(exact):
    """The exact number lies between the two roundings, which are neighbours or equal."""
    low, high = float_down(exact), float_up(exact)
    assert low <= exact <= high
    assert high in (low, math.nextafter(low, math.inf))


@pytest.mark.parametrize("exact", [Fraction(0), Fraction(3, 8), Fraction(2) ** -1074])
def test_representable_numbers_stay(exact):
    """A number that is a float is not moved."""
    assert float_down(exact) == float_up(exact) == exact


def test_below_the_smallest_float():
    """What is too small for a float becomes the smallest float upwards and nothing downwards."""
    tiny = Fraction(1, 10**400)
    assert float_up(tiny) == 5e-324
    assert float_down(tiny) == 0


def test_above_the_largest_float():
    """What is too large for a float becomes infinite upwards and the largest float downwards."""
    huge = Fraction(10**400)
    assert float_up(huge) == math.inf
    assert float_down(huge) == sys.float_info.max
