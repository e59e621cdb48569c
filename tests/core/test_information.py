"""No release reveals more than its budget: mutual information by an independent oracle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import estimated_information, exact_information

from pacpredict import Belief, calibrate, calibrate_votes

BUDGETS = [2.0**-4, 2.0**-8, 2.0**-16, 2.0**-24, 2.0**-32]


def two_class_information(minority, b):
    """Exact information of one answer when the belief gives the minority label this mass."""
    belief = Belief.from_probabilities([1 - minority, minority])
    noise = calibrate_votes([0, 1], 2, belief, b)
    return exact_information(
        noise.coordinates[:, 0], np.array([1 - minority, minority]), np.sqrt(noise.variances[0])
    )


@pytest.mark.parametrize("b", BUDGETS)
@pytest.mark.parametrize("minority", [0.5, 0.3, 0.1, 1e-2, 1e-4, 1e-8, 1e-12])
def test_two_classes_never_exceed_the_budget(minority, b):
    """From a uniform to a nearly certain belief, the exact information is at most b."""
    assert two_class_information(minority, b) <= b * (1 + 1e-8)


@pytest.mark.parametrize("b", [2.0**-16, 2.0**-32])
def test_the_budget_is_used_where_noise_is_large(b):
    """At small budgets the bound is tight: no more noise is added than needed."""
    assert two_class_information(0.3, b) >= 0.999 * b


@settings(deadline=None, max_examples=60)
@given(
    st.integers(2, 8),
    st.floats(0.02, 20),
    st.sampled_from(BUDGETS),
    st.integers(0, 2**32 - 1),
)
def test_many_classes_never_exceed_the_budget(n_classes, concentration, b, seed):
    """For random votes and beliefs from uniform to nearly certain, Monte Carlo stays below b."""
    rng = np.random.default_rng(seed)
    m = 24
    belief = Belief.from_probabilities(rng.dirichlet(np.full(m, concentration)) * (1 - 1e-12) + 1e-12 / m)
    votes = rng.integers(n_classes, size=m)
    noise = calibrate_votes(votes, n_classes, belief, b)
    mass = np.bincount(votes, weights=belief.probabilities(), minlength=n_classes)
    voted = np.unique(votes)
    if voted.size == 1:
        assert noise.variances.size == 0
        return
    first = [int(np.flatnonzero(votes == c)[0]) for c in voted]
    information, error = estimated_information(
        noise.coordinates[first], mass[voted], np.sqrt(noise.variances), rng, n_pairs=20_000
    )
    assert information <= b + 5 * error


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(["eigen", "diagonal"]),
    st.integers(1, 6),
    st.sampled_from(BUDGETS),
    st.integers(0, 2**32 - 1),
)
def test_real_outputs_never_exceed_the_budget(method, d, b, seed):
    """The general path keeps the budget for soft scores under any belief, in both variants."""
    rng = np.random.default_rng(seed)
    m = 12
    belief = Belief.from_probabilities(rng.dirichlet(np.full(m, 0.5)) * (1 - 1e-9) + 1e-9 / m)
    outputs = rng.dirichlet(np.ones(d + 1), size=m)[:, :d] * 10.0 ** rng.integers(-6, 6, d)
    noise = calibrate(outputs, belief, b, method=method)
    information, error = estimated_information(
        noise.coordinates, belief.probabilities(), np.sqrt(noise.variances), rng, n_pairs=20_000
    )
    assert information <= b + 5 * error
    assert noise.leakage(belief) <= b
