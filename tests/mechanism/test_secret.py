"""The secret does not get out by accident, and follows its prior."""

import copy
import json
import operator
import pickle

import numpy as np
import pytest
from scipy import stats

from pacpredict.core.belief import Belief
from pacpredict.exceptions import InvalidInput
from pacpredict.mechanism import entropy
from pacpredict.mechanism.secret import Secret

INDEX, N_MODELS = 86_753, 100_000

ATTEMPTS = {
    "hash": hash,
    "equal": lambda s: s == Secret(INDEX, N_MODELS),
    "equal number": lambda s: s == INDEX,
    "unequal": lambda s: s != INDEX,
    "in list": lambda s: s in [INDEX, 0],
    "less": lambda s: s < N_MODELS,
    "int": int,
    "index": operator.index,
    "subscript": lambda s: range(N_MODELS)[s],
    "format code": lambda s: f"{s:d}",
    "vars": vars,
    "iterate": list,
    "json": json.dumps,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "numpy": lambda s: np.arange(N_MODELS)[s],
    **{f"pickle {p}": lambda s, p=p: pickle.dumps(s, p) for p in range(pickle.HIGHEST_PROTOCOL + 1)},
}


class Scripted:
    """A generator whose uniform number is known in advance."""

    def __init__(self, uniform):
        self.uniform = uniform

    def random(self):
        return self.uniform


@pytest.mark.parametrize(
    "show", [repr, str, format, "{}".format, "{!r:>20}".format, lambda s: f"{[s]}", ascii]
)
def test_texts_hide_it(show):
    """Every way to turn it into text gives the same text for every secret."""
    assert show(Secret(INDEX, N_MODELS)) == show(Secret(0, 2))
    assert str(INDEX) not in show(Secret(INDEX, N_MODELS))


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_operations_fail_without_telling(attempt):
    """What could carry it elsewhere raises, and the error does not name it."""
    with pytest.raises((TypeError, IndexError)) as refusal:
        attempt(Secret(INDEX, N_MODELS))
    assert str(INDEX) not in f"{refusal.value!r} {refusal.value}"


@pytest.mark.parametrize("index", [INDEX, -INDEX])
def test_index_out_of_range_is_not_told(index):
    """The error for a foreign secret gives the number of models only."""
    with pytest.raises(InvalidInput, match="one of the 10 models") as refusal:
        Secret(index, 10)
    assert str(INDEX) not in str(refusal.value)


def test_reveal():
    """The mechanism can read it."""
    assert Secret(INDEX, N_MODELS).reveal() == INDEX


def test_it_has_no_room_for_attributes():
    """Nothing can be attached to it, or swapped by assigning a public name."""
    with pytest.raises(AttributeError):
        Secret(1, 2).index = 0


def test_draws_follow_the_prior():
    """Over many draws from the operating system, each model is secret as often as the prior says."""
    prior = np.array([0.0, 0.5, 0.0, 0.25, 0.2, 0.05, 0.0, 0.0])
    belief = Belief.from_probabilities(prior)
    drawn = np.bincount([Secret.draw(belief).reveal() for _ in range(20_000)], minlength=prior.size)
    assert not drawn[prior == 0].any()
    assert stats.chisquare(drawn[prior > 0], prior[prior > 0] * drawn.sum()).pvalue > 1e-6


@pytest.mark.parametrize(
    "prior", [[0.0, 0.5, 0.0, 0.5, 0.0], [0.0, 0.0, 1.0, 0.0], [1 / 3, 1 / 3, 1 / 3, 0.0]]
)
@pytest.mark.parametrize("uniform", [0.0, 2.0**-53, 0.5, 1 - 2.0**-53])
def test_impossible_models_are_never_drawn(prior, uniform):
    """A model of prior 0 is not drawn, not even by the first or the last uniform number there is."""
    index = Secret.draw(Belief.from_probabilities(prior), Scripted(uniform)).reveal()
    assert prior[index] > 0


def test_a_generator_makes_it_repeatable():
    """Experiments can draw the same secret again."""
    belief = Belief.uniform(1000)
    first, again = (Secret.draw(belief, np.random.default_rng(7)).reveal() for _ in range(2))
    assert first == again


@pytest.mark.parametrize(("fill", "expected"), [(b"\x00", 0), (b"\xff", 9)])
def test_without_a_generator_it_comes_from_the_operating_system(monkeypatch, fill, expected):
    """Nothing else decides about a served secret: neither a seed nor the clock."""
    monkeypatch.setattr(entropy.os, "urandom", lambda n: fill * n)
    assert Secret.draw(Belief.uniform(10)).reveal() == expected
