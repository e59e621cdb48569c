"""Long histories: nothing drifts, overflows or loses its noise."""

from contextlib import nullcontext

import numpy as np
import pytest
from voting import contested_votes

from pacpredict import Budget, Secret, Session, State, calibrate_votes

pytestmark = pytest.mark.validity


class Forgetful:
    """A ledger for a million releases: keeps the state and the last entries."""

    def __init__(self):
        self.state, self.last = None, []

    def turn(self):
        return nullcontext()

    def load(self):
        return self.state

    def commit(self, entries, state):
        self.state, self.last = state, entries

    def confirm(self, sequence):
        """Nothing is kept."""

    def entries(self):
        return iter(self.last)


def assert_sound(state: State):
    assert np.isfinite(state.log_belief).all()
    assert abs(np.exp(state.log_belief).sum() - 1) < 1e-11


@pytest.mark.parametrize("n_classes", [2, 10])
def test_the_belief_collapses_without_harm(n_classes):
    """2,000 contested queries at b = 2^-4: sound numbers throughout, and noise in every single answer."""
    rng = np.random.default_rng(n_classes)
    m, b = 128, 2.0**-4
    ledger = Forgetful()
    session = Session(n_classes, Budget(b, 2000 * b), m, secret=Secret(77, m), ledger=ledger, generator=rng)
    votes = contested_votes(rng, 2000, m, n_classes)
    for row in votes:
        noise = calibrate_votes(row, n_classes, session.belief, b)
        assert (noise.variances > 0).all()
        session.answer(row)
        noisy = ledger.last[0].noisy
        assert (noisy != noise.coordinates[77]).all()
        assert not np.array_equal(noise.vector(noisy), np.eye(n_classes)[row[77]])
        assert_sound(ledger.state)
    assert np.argmax(session.belief.log_probabilities) == 77
    assert ledger.state.spent_steps == session.budget.total_steps


@pytest.mark.parametrize("n_classes", [2, 10])
def test_a_million_contested_queries_at_the_smallest_budget(n_classes):
    """10^6 contested queries at b = 2^-32: sound numbers, and a belief hardly moved."""
    rng = np.random.default_rng(n_classes)
    m, b = 128, 2.0**-32
    ledger = Forgetful()
    session = Session(n_classes, Budget(b, 2e6 * b), m, ledger=ledger, generator=rng)
    for _ in range(50):
        session.answer_all(contested_votes(rng, 20_000, m, n_classes))
        assert_sound(ledger.state)
        assert all(entry.noisy is not None for entry in ledger.last)
    assert ledger.state.sequence == ledger.state.contested == ledger.state.spent_steps == 1_000_000
    assert session.belief.divergence(session.prior) < 50 * 1e6 * b


def test_a_surprise_that_the_belief_had_ruled_out_is_survived():
    """A wrong secret, all but impossible under the belief, leads to a sound belief that comes round to it."""
    m, b = 8, 2.0**-2
    rng = np.random.default_rng(0)
    certain = np.full(m, -2000.0)
    certain[0] = 0.0
    snapshot = State(1, 1, 1, certain)
    ledger = Forgetful()
    session = Session(
        3, Budget(b, 1e4), m, secret=Secret(5, m), ledger=ledger, snapshot=snapshot, generator=rng
    )
    for _ in range(200):
        session.answer(rng.permutation([0, 0, 0, 1, 1, 2, 2, 0]))
        assert_sound(ledger.state)
    assert np.argmax(session.belief.log_probabilities) == 5
