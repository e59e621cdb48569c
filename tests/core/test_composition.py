import math
import time
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pacpredict.core import composition
from pacpredict.core.composition import compose_linear, compose_oblivious
from pacpredict.exceptions import InvalidBudget

budget_lists = st.lists(st.floats(0, 10), max_size=30)


@settings(deadline=None)
@given(budgets=budget_lists)
def test_sum_is_the_next_float_up(budgets):
    """The total is never below the exact sum of the steps, and by less than one float above it."""
    total = compose_linear(budgets)
    exact = sum(map(Fraction, budgets))
    assert total >= exact
    assert total == 0 or Fraction(math.nextafter(total, 0)) < exact


def test_sums_by_hand():
    """A million steps of 2^-32 nats are exactly a million times 2^-32."""
    assert compose_linear([]) == 0
    assert compose_linear([0.5, 0, 0.25]) == 0.75
    assert compose_linear(np.full(1_000_000, 2.0**-32)) == 1_000_000 * 2.0**-32
    assert compose_linear([1, 2.0**-60]) == math.nextafter(1, 2)
    assert compose_linear([1, math.inf]) == math.inf
    assert compose_linear([1.7e308, 1.7e308]) == math.inf


def test_oblivious_by_hand():
    """The recurrence of Theorem A.1 step by step, with the minimum falling to either side."""
    got = compose_oblivious([0.02, 0.02, 0.02], [0.5, 0.5, 0.1])
    second = 0.02 + 0.5 * 0.2 + 0.02  # sqrt(2 * 0.02) = 0.2
    third = second + 0.1 * math.sqrt(0.28) + 0.02
    assert got == pytest.approx([0.02, second, third], rel=1e-14)
    assert compose_oblivious([0.5, 0.5], [0.25, 0.25]).tolist() == [0.5, 0.75]
    assert compose_oblivious([], []).size == 0
    assert compose_oblivious([0.5], [7]).tolist() == [0.5]
    assert compose_oblivious([math.inf, 1], [math.inf, 0]).tolist() == [math.inf, math.inf]
    assert compose_oblivious([1, 1], [1, math.inf]).tolist() == [1, math.inf]
    assert compose_oblivious([0, 0, 1], [1, 1, 9]).tolist() == [0, 0, 1]


@settings(deadline=None)
@example(pairs=[(1.0, 1.0), (5e-324, 1e-323)])
@example(pairs=[(1e-300, 1.0), (5e-324, 1e-323)])
@given(pairs=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 5)), min_size=1, max_size=15))
def test_oblivious_is_never_below_the_exact_recurrence(pairs):
    """Fifty digits of the same recurrence never exceed what is returned, and stay close to it."""
    budgets, worst = (list(column) for column in zip(*pairs, strict=True))
    got = compose_oblivious(budgets, worst)
    with mpmath.workdps(50):
        total = mpmath.mpf(budgets[0])
        for t in range(len(pairs)):
            if t:
                total += min(worst[t] * mpmath.sqrt(2 * total) + budgets[t], mpmath.mpf(worst[t]))
            assert got[t] >= total
            assert got[t] <= total * (1 + mpmath.mpf("1e-12")) + mpmath.mpf("1e-300")


@settings(deadline=None)
@example(total=1e-10, b=0.0, worst=1e-320)
@example(total=0.2916104010808547, b=0.0005169005458056509, worst=26.954639116259642)
@given(total=st.floats(0, 0.4), b=st.floats(0, 1), worst=st.floats(2, 100))
def test_one_step_is_rounded_up(total, b, worst):
    """What one step adds is never below fifty digits of it."""
    with mpmath.workdps(50):
        exact = min(worst * mpmath.sqrt(2 * mpmath.mpf(total)) + b, mpmath.mpf(worst))
        assert composition._step(total, b, worst) >= exact


def test_oblivious_grows_linearly_when_the_worst_case_is_the_step():
    """At b' = b the bound is b T, exactly for a power of two."""
    b = 2.0**-32
    assert (compose_oblivious(np.full(1000, b), b) == b * np.arange(1, 1001)).all()


def test_oblivious_grows_quadratically_when_the_worst_case_is_far_larger():
    """At b' >> b ten times the steps leak a hundred times as much, and (3/8 b' T)^2 at least (appendix A)."""
    b, worst = 1e-9, 1e-3
    totals = compose_oblivious(np.full(2000, b), worst)
    below_cap = totals[totals < 0.4]  # above 1/2 nat the minimum is b' and growth is linear again
    T = len(below_cap)
    assert T > 500
    assert below_cap[T - 1] / below_cap[T // 10 - 1] == pytest.approx(100, rel=0.2)
    assert below_cap[T - 1] > (3 / 8 * worst * T) ** 2
    assert compose_linear(np.full(T, b)) < below_cap[T - 1] / 1e5


def test_oblivious_takes_a_million_steps():
    """A million steps take seconds at most."""
    start = time.perf_counter()
    totals = compose_oblivious(np.full(1_000_000, 2.0**-32), 2.0**-20)
    assert time.perf_counter() - start < 5
    assert (np.diff(totals) > 0).all()


@pytest.mark.parametrize("budgets", [[-1], [0.1, math.nan], ["a"], [[0.1]], [None]])
def test_budgets_that_are_refused(budgets):
    """Steps are one list of non-negative numbers."""
    with pytest.raises(InvalidBudget, match="step_budgets"):
        compose_linear(budgets)
    with pytest.raises(InvalidBudget, match="step_budgets"):
        compose_oblivious(budgets, 1)
    with pytest.raises(InvalidBudget, match="worst_case_budgets"):
        compose_oblivious([1], budgets)


def test_lengths_that_do_not_match_are_refused():
    """Each step has one worst case."""
    with pytest.raises(InvalidBudget, match="2 for 3 steps"):
        compose_oblivious([1, 1, 1], [1, 1])
