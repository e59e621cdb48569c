"""Subsets: every record in exactly half of them, and nothing else to be guessed."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pacpredict.exceptions import InvalidModelCount, InvalidSubsets
from pacpredict.training import subsets
from pacpredict.training.subsets import balanced

P_VALUE = 1e-6


def patterns(membership):
    """Number the columns of a four-model membership matrix by which two models have the record."""
    numbers = {pair: i for i, pair in enumerate(itertools.combinations(range(4), 2))}
    return np.array([numbers[tuple(np.flatnonzero(column))] for column in membership.T])


@settings(deadline=None, max_examples=50)
@given(half=st.integers(1, 40), n_records=st.integers(1, 200), seed=st.integers(0, 2**32 - 1))
def test_every_record_is_in_exactly_half(half, n_records, seed):
    """This makes the prior of membership one half, exactly, for everyone."""
    membership = balanced(2 * half, n_records, np.random.default_rng(seed))
    assert membership.shape == (2 * half, n_records)
    assert membership.dtype == np.bool_
    assert (membership.sum(axis=0) == half).all()


@pytest.mark.parametrize("block", [1, 7, 8, 9, 1000])
def test_blocks_do_not_matter(monkeypatch, block):
    """Records are assigned in blocks, whose borders leave no trace."""
    expected = balanced(6, 1000, np.random.default_rng(3))
    monkeypatch.setattr(subsets, "_UNITS_PER_BLOCK", block)
    assert (balanced(6, 1000, np.random.default_rng(3)) == expected).all()


def test_all_halves_are_equally_likely():
    """Of the six ways to choose two of four models, each comes as often as the others."""
    counts = np.bincount(patterns(balanced(4, 60_000, np.random.default_rng(0))), minlength=6)
    assert stats.chisquare(counts).pvalue > P_VALUE


@pytest.mark.parametrize("lag", [1, 2, 100])
def test_records_are_independent(lag):
    """Where one record went says nothing about another."""
    which = patterns(balanced(4, 60_000, np.random.default_rng(1)))
    table = np.zeros((6, 6))
    np.add.at(table, (which[lag:], which[:-lag]), 1)
    assert stats.chi2_contingency(table).pvalue > P_VALUE


def test_subsets_are_of_similar_size():
    """Each subset has about half of the records, within six standard deviations."""
    sizes = balanced(128, 200_000, np.random.default_rng(2)).sum(axis=1)
    assert np.abs(sizes - 100_000).max() < 6 * np.sqrt(200_000) / 2


def test_speed():
    """A large data set is divided in seconds."""
    start = time.perf_counter()
    balanced(128, 200_000, np.random.default_rng(2))
    assert time.perf_counter() - start < 10


def test_a_generator_makes_them_repeatable():
    """The same seed gives the same subsets, another seed others."""
    first, again, other = (balanced(8, 50, np.random.default_rng(seed)) for seed in (5, 5, 6))
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize("n_models", [0, 1, 3, 127, -2])
def test_odd_numbers_of_models_are_refused(n_models):
    """Half of an odd number of subsets does not exist."""
    with pytest.raises(InvalidModelCount):
        balanced(n_models, 10, np.random.default_rng(0))


@pytest.mark.parametrize("n_records", [0, -1])
def test_records_are_needed(n_records):
    """An empty data set is a mistake."""
    with pytest.raises(InvalidSubsets, match="at least one"):
        balanced(2, n_records, np.random.default_rng(0))
