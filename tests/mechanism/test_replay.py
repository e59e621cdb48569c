"""From the entries of a ledger back to the state, and what is no history."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_contract import same_state
from small_session import (
    CLASSES,
    CONTESTED,
    PLENTY,
    UNANIMOUS,
    M,
    make,
    random_outputs,
    random_votes,
    used_session,
)

from pacpredict.core.belief import Belief
from pacpredict.exceptions import (
    PacPredictError,
)
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.mechanism.replay import replay, retrace


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    requests=st.lists(st.sampled_from(["one", "many", "vector", "agreed", "agreed vector"]), max_size=12),
    step=st.sampled_from([2.0**-32, 2.0**-10, 0.01]),
)
def test_replay_recomputes_the_state(seed, requests, step):
    """The entries alone give the state again, bit for bit, for labels and real outputs mixed."""
    ledger = MemoryLedger()
    session, _ = make(seed, Budget(step, 1e4 * step), ledger=ledger)
    for i, request in enumerate(requests):
        if request in {"one", "many"}:
            session.answer_all(random_votes(seed + i, 1 if request == "one" else 7))
        elif request == "agreed":
            session.answer(UNANIMOUS)
        else:
            outputs = random_outputs(seed + i, n_outputs=1 + i)
            session.release(outputs if request == "vector" else outputs * 0 + 3.5)
    again = replay(ledger.entries(), CLASSES, session.budget, Belief.uniform(M))
    assert same_state(again, session.snapshot())


@pytest.mark.parametrize(
    "spoil", [lambda e: e[1:], lambda e: e[::-1], lambda e: e[:2] + e[3:], lambda e: e + e[-1:]]
)
def test_replay_refuses_what_is_no_history(spoil):
    """Entries that are missing, repeated or out of order give no state."""
    session, _, ledger = used_session()
    session.answer_all([CONTESTED] * 3)
    with pytest.raises(PacPredictError):
        replay(spoil(list(ledger.entries())), CLASSES, PLENTY, Belief.uniform(M))


@pytest.mark.parametrize("change", [lambda noisy: noisy[:-1], lambda noisy: np.append(noisy, 0.0)])
def test_replay_refuses_releases_of_another_size(change):
    """An entry whose noisy coordinates do not fit its question is no release of it."""
    _, _, ledger = used_session()
    first = next(ledger.entries())
    spoilt = first._replace(noisy=change(first.noisy))
    with pytest.raises(PacPredictError):
        replay([spoilt], CLASSES, PLENTY, Belief.uniform(M))


def test_a_history_is_retraced_state_by_state():
    """Each state on the way is what replaying the history up to there gives, bit for bit."""
    ledger = MemoryLedger()
    session, _ = make(3, ledger=ledger)
    session.answer_all(random_votes(4, 12))
    entries, prior = list(ledger.entries()), Belief.uniform(M)
    states = list(retrace(entries, CLASSES, PLENTY, prior, stops={1, 5, 12}))
    assert [state.sequence for state in states] == [1, 5, 12]
    for state in states:
        assert same_state(state, replay(entries[: state.sequence], CLASSES, PLENTY, prior))
