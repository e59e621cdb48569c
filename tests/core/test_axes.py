"""The eigenvectors of diag(w) - w wᵀ."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pacpredict.core.axes import make_scratch, padded, principal_axes


def axes_of(mass):
    axes = np.empty((mass.size, padded(mass.size - 1)))
    largest = principal_axes(mass, axes, make_scratch(mass.size))
    assert mass[largest] == mass.max()
    assert (axes[:, mass.size - 1 :] == 0).all()
    return axes[:, : mass.size - 1]


def masses(kind, k, rng):
    raw = {
        "spread": rng.dirichlet(np.full(k, 0.3)) + 1e-12,
        "equal": np.ones(k),
        "counts": rng.integers(1, 4, k).astype(float),
        "nearly equal": rng.integers(1, 4, k) * (1 + 10.0 ** -rng.integers(5, 16) * rng.random(k)),
        "graded": 10.0 ** -rng.uniform(0, 24, k),
        "one dominates": np.concatenate([[1e6], rng.random(k - 1)]),
    }[kind]
    return raw / raw.sum()


@pytest.mark.parametrize("k", [2, 3, 4, 5, 8, 9, 16, 40, 128])
@pytest.mark.parametrize("kind", ["spread", "equal", "counts", "nearly equal", "graded", "one dominates"])
def test_axes_are_orthonormal_eigenvectors_of_the_sum_zero_subspace(kind, k):
    """Whatever the masses, the axes are orthonormal, sum to zero and diagonalise the covariance."""
    rng = np.random.default_rng(k)
    for _ in range(20):
        mass = masses(kind, k, rng)
        axes = axes_of(mass)
        np.testing.assert_allclose(axes.T @ axes, np.eye(k - 1), atol=1e-11)
        np.testing.assert_allclose(axes.sum(axis=0), 0, atol=1e-11)
        covariance = np.diag(mass) - np.outer(mass, mass)
        rotated = axes.T @ covariance @ axes
        # The explicit covariance is itself rounded, to 1e-16 of its largest entry.
        assert np.abs(rotated - np.diag(np.diag(rotated))).max() <= 1e-11 * np.diag(rotated).max() + 1e-15


@settings(deadline=None, max_examples=300)
@given(st.lists(st.floats(1e-24, 1.0), min_size=3, max_size=12))
def test_axes_agree_with_an_eigensolver(weights):
    """The square root of the covariance, which the noise is made of, equals NumPy's."""
    mass = np.array(weights) / sum(weights)
    axes = axes_of(np.maximum(mass, 1e-24))
    covariance = np.diag(mass) - np.outer(mass, mass)
    variance = np.maximum(np.einsum("ci,cd,di->i", axes, covariance, axes), 0)
    values, vectors = np.linalg.eigh(covariance)
    expected = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    np.testing.assert_allclose((axes * np.sqrt(variance)) @ axes.T, expected, atol=3e-8)
