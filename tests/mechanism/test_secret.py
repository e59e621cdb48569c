"""The secret does not get out by accident, and follows its prior."""

import copy
import hashlib
import hmac
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


SALT = bytes(range(32))


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


@pytest.mark.parametrize("show", [repr, str, ascii, lambda s: f"{[s]}"])
def test_texts_hide_the_salt(show):
    """Neither the salt nor anything made of it is in a text."""
    assert show(Secret(1, 2, SALT)) == show(Secret(1, 2)) == show(Secret(0, 2, bytes(32)))


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_operations_fail_without_telling(attempt):
    """What could carry it elsewhere raises, and the error does not name it."""
    with pytest.raises((TypeError, IndexError)) as refusal:
        attempt(Secret(INDEX, N_MODELS))
    assert str(INDEX) not in f"{refusal.value!r} {refusal.value}"


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_operations_fail_without_telling_the_salt(attempt):
    """Whoever knew the salt could try all models against the commitment."""
    with pytest.raises((TypeError, IndexError)) as refusal:
        attempt(Secret(1, 2, SALT))
    told = f"{refusal.value!r} {refusal.value}"
    assert all(form not in told for form in (SALT.hex(), str(SALT)))


@pytest.mark.parametrize("index", [INDEX, -INDEX])
def test_index_out_of_range_is_not_told(index):
    """The error for a foreign secret gives the number of models only."""
    with pytest.raises(InvalidInput, match="one of the 10 models") as refusal:
        Secret(index, 10)
    assert str(INDEX) not in str(refusal.value)


def test_reveal():
    """The mechanism can read it."""
    assert Secret(INDEX, N_MODELS).reveal() == INDEX


def test_the_salt_comes_back():
    """An artifact stores it, and the same secret is made from it again."""
    assert Secret(1, 2, SALT).reveal_salt() == SALT
    assert Secret(1, 2, bytearray(SALT)).reveal_salt() == SALT


@pytest.mark.parametrize("salt", [b"\xab", SALT[:-1]])
def test_a_salt_that_could_be_guessed_is_refused(salt):
    """Less than 256 bits are no salt, and the error does not repeat them."""
    with pytest.raises(InvalidInput, match="at least 32 bytes") as refusal:
        Secret(1, 2, salt)
    assert salt.hex() not in str(refusal.value)


def everything_of(secret):
    return [secret.commitment(), secret.key("ledger"), secret.key("anchor")]


def test_a_commitment_is_known_again():
    """The same index and salt give the same commitment and keys, in any process and version."""
    assert everything_of(Secret(1, 2, SALT)) == everything_of(Secret(1, 2, SALT))
    mac = hmac.new(SALT, b"commitment" + bytes([1] + [0] * 7), hashlib.sha256)
    assert Secret(1, 2, SALT).commitment() == mac.digest()
    assert Secret(1, 2, SALT).key("ledger") == hmac.new(SALT, b"key ledger", hashlib.sha256).digest()


def test_a_commitment_binds_the_index():
    """No two models of one salt have the same commitment, so a history knows its own."""
    assert len({Secret(i, N_MODELS, SALT).commitment() for i in range(1000)}) == 1000


def test_a_commitment_tells_nothing_without_the_salt():
    """Two secrets of the same index have nothing in common: each has fresh bits of the operating system."""
    one, other = Secret(1, 2), Secret(1, 2)
    assert one.reveal_salt() != other.reveal_salt()
    assert not set(everything_of(one)) & set(everything_of(other))
    assert all(len(part) == 32 for part in everything_of(one))


def test_keys_tell_nothing_about_the_index():
    """A key is of the salt alone: whoever holds one to check a ledger cannot try the models against it."""
    assert everything_of(Secret(0, 2, SALT))[1:] == everything_of(Secret(1, 2, SALT))[1:]


def test_a_generator_does_not_decide_about_the_salt():
    """A repeatable experiment repeats the index; what protects it is not to be repeated."""
    belief = Belief.uniform(2)
    one, other = (Secret.draw(belief, np.random.default_rng(7)) for _ in range(2))
    assert one.reveal() == other.reveal()
    assert one.commitment() != other.commitment()


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
