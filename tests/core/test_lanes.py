"""Numbers side by side give the bits that single numbers give."""

import operator

import numpy as np
import pytest
from numba import njit

from pacpredict.core import lanes

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, 1e308, 1 / 3, 2.0**-1022])
WIDTHS = [lanes.one, lanes.few, lanes.many]
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv]
COMPARISONS = [operator.gt, operator.lt, operator.le, operator.eq]


def apply(operation, zeros, a, b):
    """Run an operation on arrays, block after block."""
    load, store = lanes.load, lanes.store

    @njit(error_model="numpy")
    def run(a, b, out, width):
        for i in range(0, out.size, width):
            store(out, i, operation(load(a, i, zeros()), load(b, i, zeros())))

    out = np.empty_like(a)
    run(a, b, out, {lanes.one: 1, lanes.few: 4, lanes.many: 8}[zeros])
    return out


def pairs(seed=0):
    rng = np.random.default_rng(seed)
    a, b = (values.ravel() for values in np.meshgrid(SPECIAL, SPECIAL))
    more = rng.standard_normal((2, 320 - a.size)) * 10.0 ** rng.integers(-20, 20, (2, 320 - a.size))
    return np.concatenate([a, more[0]]), np.concatenate([b, more[1]])


@pytest.mark.parametrize("zeros", WIDTHS)
def test_operations_are_those_of_single_numbers(zeros):
    """Arithmetic, roots, comparisons and choices on lanes equal NumPy's, bit for bit, also for special values."""
    a, b = pairs()
    where, root, magnitude, numbers_from = lanes.where, lanes.root, lanes.magnitude, lanes.numbers_from
    with np.errstate(all="ignore"):
        for operation in ARITHMETIC:
            np.testing.assert_array_equal(apply(operation, zeros, a, b), operation(a, b))
            with_number = njit(lambda x, _, operation=operation: operation(operation(3.0, x), 7.0))
            np.testing.assert_array_equal(apply(with_number, zeros, a, b), operation(operation(3.0, a), 7.0))
        for operation in COMPARISONS:
            choose = njit(lambda x, y, operation=operation: where(operation(x, y), x, y))
            np.testing.assert_array_equal(apply(choose, zeros, a, b), np.where(operation(a, b), a, b))
        both = njit(lambda x, y: where(((x > 0.0) & (y > 0.0)) | (x < y), 1.0, 2.0))
        np.testing.assert_array_equal(
            apply(both, zeros, a, b), np.where(((a > 0) & (b > 0)) | (a < b), 1.0, 2.0)
        )
        np.testing.assert_array_equal(apply(njit(lambda x, _: root(x)), zeros, a, b), np.sqrt(a))
        np.testing.assert_array_equal(apply(njit(lambda x, _: magnitude(x)), zeros, a, b), np.abs(a))
    number = njit(lambda x, _: numbers_from(5, x))
    width = {lanes.one: 1, lanes.few: 4, lanes.many: 8}[zeros]
    np.testing.assert_array_equal(apply(number, zeros, a, b), 5 + np.arange(a.size) % width)


@pytest.mark.parametrize("zeros", WIDTHS)
def test_lanes_are_added_in_turn(zeros):
    """The sum is the one from left to right, which rounding tells from any other; a mask is true if all of it is."""
    load, add_in_turn, all_of = lanes.load, lanes.add_in_turn, lanes.all_of
    values = np.random.default_rng(1).standard_normal(8) * 10.0 ** np.arange(8)
    width = {lanes.one: 1, lanes.few: 4, lanes.many: 8}[zeros]

    @njit
    def run(values, most):
        block = load(values, 0, zeros())
        return add_in_turn(0.1, block), all_of(block <= most)

    total = 0.1
    for value in values[:width]:
        total += value
    assert run(values, np.inf) == (total, True)
    assert run(values, values[:width].max()) == (total, True)
    assert run(values, np.nextafter(values[:width].max(), -np.inf)) == (total, False)
