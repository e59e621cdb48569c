"""Which labels are kept, and what a student is told of them."""

from dataclasses import replace

import numpy as np
import pytest

from pacpredict.core.belief import Belief
from pacpredict.core.filters import Confidence
from pacpredict.distill.labels import Labels, check_filter_of, default_filter, keep, targets_of
from pacpredict.exceptions import InvalidInput, NothingToLearn
from pacpredict.mechanism.evidence import Point

M, C = 10, 3


def made(labels, n_dissenters, statistics=None):
    """Return labels on which so many of ten models vote for the next class instead."""
    labels = np.array(labels)
    votes = np.repeat(labels[:, None], M, axis=1)
    for row, n in enumerate(n_dissenters):
        votes[row, :n] = (labels[row] + 1) % C
    n = len(labels)
    confidence = Confidence(np.full(n, np.inf) if statistics is None else np.array(statistics), np.full(n, 2))
    kinds, points = ["argmax"] * n, {end: Point(Belief.uniform(M), end) for end in range(1, n + 1)}
    return Labels(
        np.arange(n), np.arange(1, n + 1), labels, kinds, votes.astype(np.int16), confidence, points
    )


def targets(labels, alpha, chosen="bayesian", soft=False, balanced=False, end=None):
    return targets_of(labels, end or len(labels), chosen, alpha, C, soft=soft, balanced=balanced)


def test_the_posterior_decides():
    """The Bayesian filter keeps what enough models vote for, weighed by belief."""
    labels = made([0, 1, 2, 0], [0, 1, 3, 6])
    for alpha, kept in ((0.05, [1, 0, 0, 0]), (0.2, [1, 1, 0, 0]), (0.35, [1, 1, 1, 0]), (0.9, [1, 1, 1, 1])):
        np.testing.assert_array_equal(keep(labels, 4, "bayesian", alpha, C), kept)


def test_belief_moves_it():
    """Dissenters that are hardly believed to be the secret raise no doubt."""
    labels = made([0, 1], [3, 0])
    belief = Belief.from_probabilities([1e-4] * 3 + [(1 - 3e-4) / 7] * 7)
    moved = replace(labels, points={2: Point(belief, 2)})
    assert keep(moved, 2, "bayesian", 0.01, C).all()
    assert keep(labels, 2, "bayesian", 0.01, C).tolist() == [False, True]


def test_the_tests_divide_alpha_or_not():
    """Of two rivals, the corrected test asks for more than the printed one: 1.96 deviations instead of 1.64."""
    labels = made([0, 1, 2], [1, 1, 1], [1.5, 1.8, 2.1])
    np.testing.assert_array_equal(keep(labels, 3, "corrected", 0.05, C), [False, False, True])
    np.testing.assert_array_equal(keep(labels, 3, "paper", 0.05, C), [False, True, True])


def test_soft_targets_are_shares():
    """Each kept row has the labels that models give to it, which weigh one together."""
    found = targets(made([0, 1, 2], [0, 3, 6]), 0.5, soft=True)
    assert found.kept.tolist() == [True, True, False]
    assert list(zip(found.records, found.labels, np.round(found.weights, 9), strict=True)) == [
        (0, 0, 1.0), (1, 1, 0.7), (1, 2, 0.3),
    ]  # fmt: skip


@pytest.mark.parametrize("soft", [False, True])
def test_balanced_classes_weigh_the_same(soft):
    """However many labels of a class are kept, it weighs as much as any other that is kept at all."""
    found = targets(made([0] * 8 + [1] * 3 + [2], [0] * 8 + [2] * 4), 0.3, soft=soft, balanced=True)
    sums = np.bincount(found.labels, found.weights)
    assert sums == pytest.approx(np.full(C, 4))


def test_only_what_was_asked_by_then_counts():
    """A point of a learning curve sees the first rows and the belief of that time."""
    labels = made([0, 1, 2, 0], [0, 0, 0, 0])
    assert targets(labels, 0.01, end=2).kept.size == 2


def test_nothing_to_learn():
    """No label, or one class only, is said with what to do; labels are not lost."""
    with pytest.raises(NothingToLearn, match=r"kept none of 3 labels at alpha = 0\.01.*stay on record"):
        targets(made([0, 1, 2], [5, 5, 5]), 0.01)
    with pytest.raises(NothingToLearn, match="all 2 labels that were kept are of one class"):
        targets(made([0, 0, 2], [0, 0, 5]), 0.01)


def test_defaults_and_misfits():
    """The paper's decoder has the test, others the posterior; a channel has no noise to test."""
    assert [default_filter(name) for name in ("argmax", "map", "sample")] == [
        "corrected",
        "bayesian",
        "bayesian",
    ]
    check_filter_of("corrected", "map")
    for chosen in ("corrected", "paper"):
        with pytest.raises(InvalidInput, match="released without noise"):
            check_filter_of(chosen, "sample")
