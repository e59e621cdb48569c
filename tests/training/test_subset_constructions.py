"""Who is in which subset: exact counts, the random stream and the packed form."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pacpredict.core.priors import membership_priors, reconstruction_prior
from pacpredict.exceptions import InvalidModelCount, InvalidSubsets
from pacpredict.training.subsets import Subsets, balanced


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("n_models", "n_records", "seed", "digest"),
    [(6, 1000, 1, "444adc064d919578"), (128, 70_000, 2, "07ddd13a72d5cc6b")],
)
def test_random_stream_of_balanced(n_models, n_records, seed, digest):
    """A seed gives the subsets that it always gave, also across blocks and in the packed form."""
    membership = balanced(n_models, n_records, rng(seed))
    assert hashlib.sha256(np.packbits(membership).tobytes()).hexdigest()[:16] == digest
    np.testing.assert_array_equal(Subsets.balanced(n_models, n_records, rng(seed)).matrix(), membership)


@given(
    half=st.integers(1, 20),
    n_records=st.integers(1, 100),
    rate=st.floats(0.01, 0.99),
    seed=st.integers(0, 99),
)
def test_every_record_is_in_equally_many_subsets(half, n_records, rate, seed):
    """Each record is in exactly round(rate * m) subsets; a rate that means none or all is refused."""
    n_models = 2 * half
    expected = round(rate * n_models)
    if not 0 < expected < n_models:
        with pytest.raises(InvalidSubsets, match="rate"):
            balanced(n_models, n_records, rng(seed), rate)
        return
    assert (balanced(n_models, n_records, rng(seed), rate).sum(axis=0) == expected).all()


@pytest.mark.parametrize("rate", [0.25, 0.5, 0.8])
def test_priors_follow_from_the_rate(rate):
    """Membership is guessed with max(rate, 1 - rate) for every record, and a record of the subset with rate."""
    membership = Subsets.balanced(20, 50, rng(), rate).matrix()
    np.testing.assert_allclose(membership_priors(membership), max(rate, 1 - rate))
    assert reconstruction_prior(membership) == pytest.approx(rate)


@pytest.mark.parametrize("n_records", [1, 2, 7, 8, 101])
def test_half_partitions(n_records):
    """Subsets 2i and 2i + 1 share no record, cover the pool and have half of it each."""
    membership = Subsets.half_partitions(12, n_records, rng()).matrix()
    np.testing.assert_array_equal(membership[::2], ~membership[1::2])
    assert (membership[::2].sum(axis=1) == n_records // 2).all()
    assert (membership.sum(axis=0) == 6).all()


def test_half_partitions_are_uniform():
    """Each record is in the first of a pair half of the time, and two of them together a little less."""
    membership = Subsets.half_partitions(20_000, 10, rng()).matrix()[::2]
    together = membership.T.astype(float) @ membership / len(membership)
    expected = np.where(np.eye(10, dtype=bool), 1 / 2, 1 / 2 * 4 / 9)  # hypergeometric
    np.testing.assert_allclose(together, expected, atol=5 * 0.5 / np.sqrt(len(membership)))


@given(n_models=st.integers(1, 5), n_records=st.integers(1, 70), seed=st.integers(0, 99))
def test_packing_loses_nothing(n_models, n_records, seed):
    """Matrix, rows and indices are those that were packed."""
    membership = rng(seed).random((n_models, n_records)) < 0.5
    subsets = Subsets.of(membership)
    assert subsets.packed.nbytes == n_models * -(-n_records // 8)
    np.testing.assert_array_equal(subsets.matrix(), membership)
    for i in range(n_models):
        np.testing.assert_array_equal(subsets.row(i), membership[i])
    assert subsets.row(0).dtype == np.bool_
    assert repr(subsets) == f"Subsets(n_models={n_models}, n_units={n_records})"


@pytest.mark.parametrize("draw", [balanced, Subsets.balanced, Subsets.half_partitions])
def test_impossible_subsets_are_refused(draw):
    """An odd number of models and an empty pool have no balanced subsets."""
    with pytest.raises(InvalidModelCount):
        draw(5, 10, rng())
    for n_records in (0, -1):
        with pytest.raises(InvalidSubsets, match="at least one record"):
            draw(4, n_records, rng())


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.5, 2.0, float("nan")])
def test_impossible_rates_are_refused(rate):
    """A record that is in no subset, or in all, has nothing to hide or no privacy."""
    with pytest.raises(InvalidSubsets, match="rate"):
        balanced(4, 10, rng(), rate)


def test_wrong_arrays_are_refused():
    """Only boolean matrices are packed, and only whole packed matrices are taken."""
    for membership in (np.ones((2, 3)), np.ones(3, dtype=bool)):
        with pytest.raises(InvalidSubsets):
            Subsets.of(membership)
    for packed in (np.zeros((2, 2), dtype=np.uint8), np.zeros((2, 1), dtype=np.int8)):
        with pytest.raises(InvalidSubsets):
            Subsets(2, 8, packed)
