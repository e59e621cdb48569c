"""Heads side by side: votes, subsets that lack classes, and files that do not fit together."""

import numpy as np
import pytest
from scipy import sparse

from pacpredict.exceptions import InvalidFeatures, InvalidModel
from pacpredict.features.exact import round_rows, round_sparse
from pacpredict.votes.stacked_heads import HeadModel, StackedHeads


def heads(n_models, n_scores, width=7, seed=0):
    rng = np.random.default_rng(seed)
    return [
        HeadModel.of(rng.normal(size=(width, n_scores)), rng.normal(size=n_scores)) for _ in range(n_models)
    ]


def rows(n=50, width=7, seed=1):
    return round_rows(np.random.default_rng(seed).normal(size=(n, width)))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_votes_are_the_highest_scores(n_classes):
    """As each head by itself would decide."""
    models = heads(6, 1 if n_classes == 2 else n_classes)
    stacked = StackedHeads.of(models, [np.arange(n_classes)] * 6, n_classes)
    votes = stacked.votes(rows())
    for i, (weights, biases) in enumerate(models):
        scores = rows().astype(float) @ weights.astype(float) + biases
        expected = scores[:, 0] > 0 if n_classes == 2 else scores.argmax(axis=1)
        assert np.array_equal(votes[:, i], expected)


def test_classes_that_a_head_never_saw():
    """It votes for those that it has seen; with one class only, always for that."""
    own = [np.array([0, 2, 3]), np.array([1]), np.array([3])]
    stacked = StackedHeads.of([heads(1, 3)[0], None, None], own, 4)
    votes = stacked.votes(rows(500))
    assert set(votes[:, 0].tolist()) == {0, 2, 3}
    assert set(votes[:, 1].tolist()) == {1}
    assert set(votes[:, 2].tolist()) == {3}
    binary = StackedHeads.of([heads(1, 1)[0], None, None], [np.arange(2), np.array([0]), np.array([1])], 2)
    votes = binary.votes(rows(500))
    assert set(votes[:, 0].tolist()) == {0, 1}
    assert (votes[:, 1] == 0).all()
    assert (votes[:, 2] == 1).all()


def test_sparse_rows_vote_as_dense_ones():
    """Only the features that a row has are looked at; the sums are the same."""
    rng = np.random.default_rng(0)
    dense = round_rows(np.where(rng.random((40, 300)) < 0.1, rng.normal(size=(40, 300)), 0))
    stacked = StackedHeads.of(heads(5, 3, 300), [np.arange(3)] * 5, 3)
    thin = round_sparse(sparse.csr_matrix(dense))
    assert np.array_equal(stacked.scores(thin), stacked.scores(dense))
    assert np.array_equal(stacked.votes(thin), stacked.votes(dense))


def test_many_rows_are_taken_in_parts():
    """More scores than are held at a time change nothing."""
    stacked = StackedHeads.of(heads(64, 64), [np.arange(64)] * 64, 64)
    many = rows(600)
    assert np.array_equal(stacked.votes(many)[-5:], stacked.votes(many[-5:]))


def test_stored_heads():
    """Arrays make the same votes again; others are refused."""
    stacked = StackedHeads.of(heads(4, 3), [np.arange(3)] * 4, 3)
    arrays = stacked.arrays()
    assert np.array_equal(StackedHeads.from_arrays(arrays).votes(rows()), stacked.votes(rows()))
    for damaged in (
        {"weights": arrays["weights"]},
        {**arrays, "weights": arrays["weights"][:, :-1]},
        {**arrays, "weights": arrays["weights"].astype(np.float64)},
        {**arrays, "biases": arrays["biases"].ravel()},
    ):
        with pytest.raises(InvalidModel):
            StackedHeads.from_arrays(damaged)
    with pytest.raises(InvalidFeatures, match="trained on 7"):
        stacked.votes(rows(width=6))
