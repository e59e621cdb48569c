"""A session of eight models with a known secret, what can be asked of it, and what a refusal must leave alone."""

import copy

import numpy as np
import voting
from ledger_contract import same_entry, same_state

from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.mechanism.secret import Secret
from pacpredict.mechanism.session import Session

M, CLASSES = 8, 4
CONTESTED = [0, 1, 1, 2, 1, 1, 1, 3]
UNANIMOUS = [2] * M
PLENTY = Budget(2.0**-8, 1000.0)
SECRET = Secret(3, M)


def random_votes(seed, n_queries, dissent=0.2, n_models=M, n_classes=CLASSES):
    return voting.random_votes(np.random.default_rng(seed), n_queries, n_models, n_classes, dissent)


def random_outputs(seed, n_outputs=3):
    return np.random.default_rng(seed).standard_normal((M, n_outputs))


def make(seed=0, budget=PLENTY, prior=M, secret=SECRET, **options):
    """A session with a seeded generator, which is returned as well."""
    generator = np.random.default_rng(seed)
    return Session(CLASSES, budget, prior, secret=secret, generator=generator, **options), generator


def used_session(budget=PLENTY, **options):
    """A session that has answered already, its generator and its ledger."""
    ledger = MemoryLedger()
    session, generator = make(budget=budget, ledger=ledger, **options)
    session.answer(CONTESTED)
    session.answer(UNANIMOUS)
    return session, generator, ledger


class Frozen:
    """Everything that a refused request must leave as it is."""

    def __init__(self, session, generator, ledger):
        self.watched = session, generator, ledger
        self.state, self.secret = session._state, session._secret
        self.recorded, self.entries = ledger.load(), list(ledger.entries())
        self.bits = copy.deepcopy(generator.bit_generator.state)

    def check(self, *, drew=False):
        session, generator, ledger = self.watched
        assert session._state is self.state
        assert session._secret is self.secret
        assert same_state(ledger.load(), self.recorded)
        assert all(map(same_entry, ledger.entries(), self.entries))
        assert len(list(ledger.entries())) == len(self.entries)
        assert drew or generator.bit_generator.state == self.bits


# One of each kind.
ASKED = [("answer", CONTESTED), ("answer_all", [CONTESTED, UNANIMOUS]), ("release", random_outputs(1))]

BAD_VOTES = {
    "out of range": [0] * (M - 1) + [CLASSES],
    "negative": [0] * (M - 1) + [-1],
    "far out of range": [0] * (M - 1) + [2**40],
    "floats": np.ones(M),
    "booleans": np.ones(M, dtype=bool),
    "texts": ["a"] * M,
    "objects": [None] * M,
    "complex": np.ones(M, dtype=complex),
    "too few models": CONTESTED[:-1],
    "too many models": [*CONTESTED, 0],
    "nobody": [],
    "no queries": np.empty((0, M), dtype=int),
    "no models": np.empty((3, 0), dtype=int),
    "three dimensions": np.zeros((2, 2, M), dtype=int),
    "a number": 3,
    "ragged": [CONTESTED, CONTESTED[:-1]],
}
BAD_OUTPUTS = {
    "NaN": np.where(np.eye(M) > 0, np.nan, 1.0),
    "infinity": np.where(np.eye(M) > 0, np.inf, 1.0),
    "minus infinity": np.where(np.eye(M) > 0, -np.inf, 1.0),
    "one dimension": np.arange(M),
    "three dimensions": np.zeros((M, 2, 2)),
    "too few models": np.zeros((M - 1, 2)),
    "no outputs": np.empty((M, 0)),
    "ragged": [[1.0]] * (M - 1) + [[1.0, 2.0]],
    "texts": [["a"]] * M,
    "complex": np.full((M, 2), 1j).tolist(),
    "too large a difference": np.arange(M)[:, None] % 2 * 1e150,
    "too small a difference": np.arange(M)[:, None] % 2 * 1e-150,
    # Two finite outputs can be infinitely far apart in doubles.
    "an infinite difference": np.where(np.arange(M) % 2, 1.7e308, -1.7e308)[:, None],
}
