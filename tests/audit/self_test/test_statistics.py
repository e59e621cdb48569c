"""P-values of the self-test: exact where they say so, and never too small for honest draws."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from pacpredict.audit.self_test.statistics import (
    cells_p,
    coin_p,
    evidence_p,
    n_places,
    normal_p,
    rare_p,
    size_p,
    size_scores,
    smallest_of,
    squares_p,
    walsh_sums,
)


@pytest.mark.parametrize(("n", "chance"), [(1, Fraction(1, 2)), (7, Fraction(1, 128)), (40, Fraction(3, 10))])
def test_a_coin_is_tested_exactly(n, chance):
    """The p-value is twice the smaller tail, by sums of exact binomial probabilities."""
    probability = [math.comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in range(n + 1)]
    for hits in range(n + 1):
        tail = min(sum(probability[: hits + 1]), sum(probability[hits:]))
        assert coin_p(hits, n, float(chance)) == pytest.approx(min(1.0, 2 * float(tail)), rel=1e-9)
    assert coin_p(0, 0) == 1.0


def test_rare_coincidences_are_tested_exactly():
    """The p-value is the tail of a Poisson distribution."""
    for hits in range(6):
        below = sum(math.exp(-0.7) * 0.7**k / math.factorial(k) for k in range(hits))
        assert rare_p(hits, 0.7) == pytest.approx(1 - below, rel=1e-9)


def test_sums_over_parities_are_those_of_brute_force():
    """Every parity of the bits of a place but the empty one, once."""
    values = np.random.default_rng(0).normal(size=16)
    by_hand = [sum(x * (-1) ** (mask & i).bit_count() for i, x in enumerate(values)) for mask in range(1, 16)]
    assert sorted(walsh_sums(values)) == pytest.approx(sorted(by_hand))
    assert [n_places(n) for n in (2, 3, 16, 17, 128)] == [2, 4, 16, 32, 128]


def test_p_values_of_honest_draws_are_not_too_small():
    """At most a share x of them is below x, give or take what so few repetitions say."""
    rng, n = np.random.default_rng(1), 4000
    z = rng.standard_normal((n, 40))
    alternatives = np.array([0.1, -0.3, 0.7])
    ratios = (alternatives[:, None, None] * z - alternatives[:, None, None] ** 2 / 2).sum(axis=2)
    cells = [
        cells_p(np.bincount(draw, minlength=8), np.full(8, 1 / 8)) for draw in rng.integers(8, size=(n, 4000))
    ]
    found = {
        "normal": normal_p(z[:, 0]),
        "squares": [squares_p(float(row @ row), row.size) for row in z],
        "size": [size_p(float(row @ row), row.size) for row in z],
        "coin": [coin_p(int((row > 0).sum()), row.size) for row in z],
        "rare": [rare_p(int(k), 1.3) for k in rng.poisson(1.3, n)],
        "evidence": [evidence_p(column) for column in ratios.T],
        "cells": cells,
        "smallest": [smallest_of(normal_p(row)) for row in z],
        "scores": normal_p(size_scores((z**2).sum(axis=1), np.full(n, 40))),
    }
    for name, values in found.items():
        for level in (0.2, 0.05, 0.01):
            allowed = level + 4 * math.sqrt(level * (1 - level) / n)
            assert np.mean(np.asarray(values) <= level) <= allowed, (name, level)


def test_combined_p_values_distrust_what_is_no_number():
    """A statistic that came out as nan is no reason to call a mechanism honest."""
    assert smallest_of([]) == 1.0
    assert smallest_of([0.5, 0.01]) == pytest.approx(0.02)
    assert smallest_of([0.5, math.nan]) == 0.0


def test_extreme_sums_keep_finite_scores():
    """No noise at all, and far too much, give scores whose squares can be added up."""
    scores = size_scores(np.array([0.0, 1e9]), np.array([500, 500]))
    assert np.isfinite(scores).all()
    assert scores[0] < -30
    assert scores[1] > 30


def test_evidence_is_the_average_likelihood_ratio():
    """For one flip of a coin and two alternatives, by hand."""
    for flip, (p, q) in product((0, 1), [(0.6, 0.9)]):
        ratios = [math.log((p if flip else 1 - p) / 0.5), math.log((q if flip else 1 - q) / 0.5)]
        average = sum(map(math.exp, ratios)) / 2
        assert evidence_p(ratios) == pytest.approx(min(1.0, 1 / average))
