"""What honest replies to data subjects tell about everyone else, measured on subsets as deployments draw them."""

import numpy as np
import pytest

from pacpredict.core.disclosure import success_with_known
from pacpredict.exceptions import InvalidInput
from pacpredict.promise import why_never
from pacpredict.training.subsets import Subsets, balanced

N_UNITS, N_WORLDS, N_GAMES = 300, 40, 250


def guess_next(subsets, n_known, rng):
    """Tell an attacker who knows the subsets some memberships, and let them guess the next one."""
    secret, people = rng.integers(len(subsets)), rng.choice(subsets.shape[1], n_known + 1, replace=False)
    told, target = people[:-1], people[-1]
    fitting = (subsets[:, told] == subsets[secret, told]).all(axis=1)
    share = subsets[fitting, target].mean()
    guess = share > 0.5 if share != 0.5 else rng.random() < 0.5
    return guess == subsets[secret, target]


def play(draw, n_models, n_known, **options):
    rng = np.random.default_rng([n_models, n_known])
    right = []
    for _ in range(N_WORLDS):
        subsets = draw(n_models, N_UNITS, rng, **options).astype(bool)
        right += [guess_next(subsets, n_known, rng) for _ in range(N_GAMES)]
    return np.mean(right)


def assert_close(measured, claimed):
    n = N_WORLDS * N_GAMES
    # Games of one world share its subsets, hence the floor.
    assert abs(measured - claimed) < 4 * max(np.sqrt(claimed * (1 - claimed) / n), 0.002)


@pytest.mark.parametrize("n_known", [0, 1, 4, 7, 10, 14])
def test_replies_publish_the_training_set(n_known):
    """Of 128 balanced subsets, knowing 4, 7, 10 or 14 memberships gives away the next in 63.5 to 99.8% of cases."""
    assert_close(play(balanced, 128, n_known), success_with_known(128, n_known))


@pytest.mark.parametrize(("n_models", "rate"), [(16, 0.5), (64, 0.25), (32, 0.75)])
@pytest.mark.parametrize("n_known", [2, 5])
def test_other_numbers_and_rates(n_models, rate, n_known):
    """The exact chain holds for any number of subsets and any share that each person is in."""
    claimed = success_with_known(n_models, n_known, round(rate * n_models))
    assert_close(play(balanced, n_models, n_known, rate=rate), claimed)


def half_partitions(n_models, n_units, generator):
    return Subsets.half_partitions(n_models, n_units, generator).matrix()


def test_half_partitions_give_away_as_much():
    """Cutting the pool in halves instead changes the figures by less than two points."""
    for n_known in (4, 7, 14):
        assert abs(play(half_partitions, 128, n_known) - success_with_known(128, n_known)) < 0.02


def test_the_sentence_has_these_figures():
    """What is printed is what was measured above."""
    figures = [f"{100 * success_with_known(128, known):.1f}%" for known in (4, 7, 10, 14)]
    assert figures == ["63.5%", "84.0%", "97.3%", "99.8%"]
    sentence = why_never(128, 0.5, "person")
    assert "the membership of 4, 7, 10 or 14 people" in sentence
    assert "in 63.5%, 84.0%, 97.3% or 99.8% of cases" in sentence
    assert "14 honest replies" in sentence


def test_nonsense_is_refused():
    """There are no negative numbers of replies, and nobody is in all subsets."""
    for arguments in ((128, -1), (128, 1, 128), (128, 1, 0)):
        with pytest.raises(InvalidInput):
            success_with_known(*arguments)
