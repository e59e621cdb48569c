"""Sums of rounded features times rounded weights are exact, so that nothing about a batch can change them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from pacpredict.features.exact import (
    FEATURE_BITS,
    MOST_TERMS,
    WEIGHT_BITS,
    round_columns,
    round_rows,
    round_sparse,
)


def units(values, bits):
    """Return a vector as whole numbers of its unit, by exact arithmetic."""
    largest = max(abs(Fraction(float(value))) for value in values)
    unit = Fraction(1)
    while unit > largest:
        unit /= 2
    while unit <= largest:
        unit *= 2
    unit /= 2**bits
    return [Fraction(float(value)) / unit for value in values]


def exact_sum(row, column):
    return sum(
        (Fraction(float(x)) * Fraction(float(w)) for x, w in zip(row, column, strict=True)), Fraction()
    )


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.0, 7.3, 1e30])
def test_rounded_values_are_whole_units(scale):
    """Each row has 15 bits below a power of two that bounds it, each column of weights 23; no value moves by more."""
    rng = np.random.default_rng(0)
    values = (rng.normal(size=(20, 50)) * scale).astype(np.float32)
    for rounded, bits in ((round_rows(values), FEATURE_BITS), (round_columns(values.T).T, WEIGHT_BITS)):
        assert rounded.dtype == np.float32
        for before, after in zip(values, rounded, strict=True):
            numbers = units(after, bits)
            assert all(number.denominator == 1 and abs(number) <= 2**bits for number in numbers)
            moved = np.abs(after.astype(float) - before).max()
            assert moved <= np.abs(before).max() * 2.0**-bits


def test_the_largest_sum_that_is_allowed_is_exact():
    """As many terms as there may be, all as large as they can be: 2^53 units, which float64 still has."""
    row = np.full((1, MOST_TERMS), np.nextafter(np.float32(2), 0))
    column = np.full((MOST_TERMS, 1), np.nextafter(np.float32(2), 0))
    x, w = round_rows(row), round_columns(column)
    assert (x.max(), w.max()) == (2.0, 2.0)  # both were rounded up
    total = x.astype(float) @ w.astype(float)
    assert Fraction(float(total[0, 0])) == exact_sum(x[0], w[:, 0]) == 4 * MOST_TERMS
    unit = Fraction(2) ** (1 - FEATURE_BITS) * Fraction(2) ** (1 - WEIGHT_BITS)
    assert Fraction(4 * MOST_TERMS) / unit == 2**53


def test_batches_do_not_change_sums():
    """One by one, in batches of any size, reversed, and in any order of terms, sums are the same to the last bit."""
    rng = np.random.default_rng(1)
    x = round_rows(rng.normal(size=(67, 1281)) * rng.lognormal(0, 2, (67, 1))).astype(float)
    w = round_columns(rng.normal(size=(1281, 130)) * rng.lognormal(0, 3, (1, 130))).astype(float)
    whole = x @ w
    assert Fraction(whole[5, 7]) == exact_sum(x[5], w[:, 7])
    order = rng.permutation(1281)
    assert np.array_equal(x[:, order] @ w[order], whole)
    assert np.array_equal((x[::-1] @ w)[::-1], whole)
    for size in (1, 2, 3, 16, 31):
        parts = [x[at : at + size] @ w for at in range(0, len(x), size)]
        assert np.array_equal(np.concatenate(parts), whole)


def test_without_rounding_the_order_matters():
    """The claim above is not empty: the same sums of values that were not rounded depend on the order of terms."""
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(67, 1281)), rng.normal(size=(1281, 130))
    order = rng.permutation(1281)
    assert not np.array_equal(x[:, order] @ w[order], x @ w)


@given(st.lists(st.floats(-(2.0**60), 2.0**60, width=32), min_size=1, max_size=40))
def test_rounding_is_a_function_of_the_row(values):
    """A row is rounded to the same values alone and beside others, and rounding twice changes nothing."""
    row = np.array([values], np.float32)
    alone = round_rows(row)
    beside = round_rows(np.vstack([row * 3, row, np.zeros_like(row)]))[1:2]
    assert np.array_equal(alone, beside)
    assert np.array_equal(round_rows(alone), alone)


def test_sparse_rows_are_rounded_as_dense_ones():
    """Only the form differs."""
    rng = np.random.default_rng(2)
    dense = np.where(rng.random((9, 30)) < 0.3, rng.normal(size=(9, 30)), 0.0)
    dense[4] = 0.0
    assert np.array_equal(round_sparse(sparse.csr_matrix(dense)).toarray(), round_rows(dense))
