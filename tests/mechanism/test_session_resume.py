"""Where a session continues, and which histories are not its own."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from ledger_contract import same_array, same_entry, same_state
from small_session import (
    CLASSES,
    CONTESTED,
    PLENTY,
    SECRET,
    M,
    make,
    random_outputs,
    random_votes,
    used_session,
)

from pacpredict.core.belief import Belief
from pacpredict.exceptions import (
    BudgetExhausted,
    ForeignLedger,
    InvalidBelief,
    InvalidBudget,
    InvalidInput,
    LedgerConflict,
)
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import MemoryLedger, State
from pacpredict.mechanism.replay import replay
from pacpredict.mechanism.secret import Secret
from pacpredict.mechanism.session import Session


@pytest.mark.parametrize("where", ["snapshot", "ledger"])
@pytest.mark.parametrize("step", [2.0**-32, 2.0**-6])
def test_resuming_continues_bit_for_bit(where, step):
    """A session restarted from a snapshot or a ledger goes on exactly as one that was never interrupted."""
    budget, votes = Budget(step, 1e4 * step), random_votes(1, 60)
    whole, _ = make(5, budget)
    expected = [
        *whole.answer_all(votes[:20]),
        whole.release(random_outputs(2)),
        *whole.answer_all(votes[20:]),
    ]
    ledger = MemoryLedger()
    first, generator = make(5, budget, ledger=ledger)
    before = first.answer_all(votes[:20])
    fresh = np.random.default_rng()
    fresh.bit_generator.state = generator.bit_generator.state
    source = {"ledger": ledger} if where == "ledger" else {"snapshot": first.snapshot()}
    second = Session(CLASSES, budget, M, secret=SECRET, generator=fresh, **source)
    after = [second.release(random_outputs(2)), *second.answer_all(votes[20:])]
    assert same_array(after[0], expected[20])
    assert before + after[1:] == expected[:20] + expected[21:]
    assert same_state(second.snapshot(), whole.snapshot())


BAD_STATES = {
    "belief of sum 2": State(0, 0, 0, np.log(np.full(M, 2 / M))),
    "belief of NaN": State(0, 0, 0, np.full(M, np.nan)),
    "negative spending": State(0, 0, -1000, np.log(np.full(M, 1 / M))),
    "negative sequence": State(-5, 0, 0, np.log(np.full(M, 1 / M))),
    "more contested than asked": State(0, 3, 0, np.log(np.full(M, 1 / M))),
}


@pytest.mark.parametrize("state", BAD_STATES.values(), ids=BAD_STATES)
def test_impossible_states_are_refused(state):
    """A snapshot that no session can have left is refused before it is recorded."""
    ledger = MemoryLedger()
    with pytest.raises(InvalidInput):
        make(snapshot=state, ledger=ledger)
    assert ledger.load() is None


def test_a_used_ledger_needs_its_secret():
    """A history belongs to a secret: without it nothing can be continued."""
    _, _, ledger = used_session()
    before = ledger.load()
    with pytest.raises(InvalidInput, match="secret"):
        Session(CLASSES, PLENTY, M, ledger=ledger)
    assert same_state(ledger.load(), before)


OTHER_SECRETS = {
    "drawn anew": lambda: Secret.draw(Belief.uniform(M)),
    "another model": lambda: Secret((SECRET.reveal() + 1) % M, M, SECRET.reveal_salt()),
    "the same model by chance": lambda: Secret(SECRET.reveal(), M),
}


@pytest.mark.parametrize("other", OTHER_SECRETS.values(), ids=OTHER_SECRETS)
@pytest.mark.parametrize("where", ["ledger", "snapshot"])
@pytest.mark.parametrize("n_releases", [0, 1])
def test_a_history_keeps_its_secret(other, where, n_releases):
    """A new secret on an old history would be released almost without noise; the right one goes on."""
    ledger = MemoryLedger()
    session, _ = make(ledger=ledger)
    for _ in range(n_releases):
        session.answer(CONTESTED)
    before = ledger.load()
    source = {"ledger": ledger} if where == "ledger" else {"snapshot": session.snapshot()}
    with pytest.raises(ForeignLedger, match="another secret"):
        make(secret=other(), **source)
    assert ledger.load() is before
    assert make(**source)[0].answer(CONTESTED).sequence == n_releases + 1


def test_a_shared_ledger_does_not_change_its_secret_underway():
    """A session that finds the history of another secret in its ledger stops."""
    session, generator, ledger = used_session()
    ledger._state = replace(ledger.load(), secret=Secret(SECRET.reveal(), M).commitment())
    bits = copy.deepcopy(generator.bit_generator.state)
    with pytest.raises(ForeignLedger, match="another secret"):
        session.answer(CONTESTED)
    assert generator.bit_generator.state == bits


@pytest.mark.parametrize("name", ["step", "total", "secret", "origin"])
def test_a_ledger_says_what_its_history_began_with(name):
    """A state on record without its step budget, total, secret or origin is none that a session wrote."""
    _, _, ledger = used_session()
    ledger._state = replace(ledger.load(), **{name: None})
    with pytest.raises((ForeignLedger, InvalidInput)):
        make(ledger=ledger)


def test_a_replayed_history_is_bound_again():
    """What entries do not say is taken from the session that continues them, and on record from then on."""
    _, _, ledger = used_session()
    replayed, continued = replay(ledger.entries(), CLASSES, PLENTY, Belief.uniform(M)), MemoryLedger()
    assert (replayed.secret, replayed.total) == (None, None)
    make(snapshot=replayed, ledger=continued)
    assert continued.load().secret == SECRET.commitment()
    assert continued.load().total == PLENTY.total
    with pytest.raises(ForeignLedger):
        make(ledger=continued, secret=Secret(SECRET.reveal(), M))


def test_a_used_ledger_takes_no_snapshot():
    """Of two states, neither is taken silently."""
    session, _, ledger = used_session()
    before = ledger.load()
    with pytest.raises(LedgerConflict, match="snapshot"):
        Session(CLASSES, PLENTY, M, ledger=ledger, snapshot=session.snapshot(), secret=SECRET)
    assert same_state(ledger.load(), before)


def test_sessions_share_a_ledger():
    """Two sessions on one ledger continue each other's history, and count its spending as one."""
    first, _, ledger = used_session(budget=Budget(0.5, 2.0))
    second, _ = make(1, Budget(0.5, 2.0), ledger=ledger)
    for session in (first, second, second):
        session.answer(CONTESTED)
    assert same_state(first.snapshot(), second.snapshot())
    with pytest.raises(BudgetExhausted):
        first.answer(CONTESTED)
    assert [entry.sequence for entry in ledger.entries()] == [1, 2, 3, 4, 5]
    assert same_state(replay(ledger.entries(), CLASSES, first.budget, Belief.uniform(M)), first.snapshot())


def test_a_shared_ledger_needs_its_secret():
    """A second session that would draw a secret of its own is refused, also before the first release."""
    ledger = MemoryLedger()
    make(ledger=ledger)
    with pytest.raises(InvalidInput, match="secret"):
        make(ledger=ledger, secret=None)


@pytest.mark.parametrize("older", [None, 1])
def test_a_ledger_that_went_back_is_refused(older):
    """A session does not continue from less than it knows to be on record."""
    session, generator, ledger = used_session()
    ledger._state = older and State(1, 1, 1, ledger.load().log_belief, PLENTY.step)
    bits = copy.deepcopy(generator.bit_generator.state)
    with pytest.raises(LedgerConflict, match="bring the latest one back"):
        session.answer(CONTESTED)
    assert generator.bit_generator.state == bits


@pytest.mark.parametrize("mine", [None, "artifact-2"])
@pytest.mark.parametrize("where", ["ledger", "snapshot"])
def test_histories_of_another_deployment_are_refused(mine, where):
    """A ledger or snapshot belongs to the artifact that it was begun with."""
    ledger = MemoryLedger()
    session, _ = make(ledger=ledger, deployment="artifact-1")
    session.answer(CONTESTED)
    source = {"ledger": ledger} if where == "ledger" else {"snapshot": session.snapshot()}
    with pytest.raises(ForeignLedger, match="artifact-1"):
        make(deployment=mine, **source)
    assert make(deployment="artifact-1", **source)[0].answer(CONTESTED).sequence == 2


def test_histories_keep_their_prior_and_classes():
    """A belief that began elsewhere, or on other labels, would not replay and is refused."""
    session, _, ledger = used_session()
    other = Belief.from_probabilities([0.3] + [0.1] * 7)
    for source in ({"ledger": ledger}, {"snapshot": session.snapshot()}):
        with pytest.raises(InvalidBelief, match="another prior"):
            make(prior=other, **source)
        with pytest.raises(InvalidBelief, match="number of classes"):
            Session(CLASSES + 1, PLENTY, M, secret=SECRET, **source)


def test_a_history_keeps_its_step_budget():
    """What was spent is not counted anew in smaller steps."""
    session, _, ledger = used_session()
    smaller = Budget(PLENTY.step / 10, PLENTY.total)
    with pytest.raises(InvalidBudget, match="step"):
        Session(CLASSES, smaller, M, secret=SECRET, snapshot=session.snapshot())
    with pytest.raises(InvalidBudget, match="step"):
        Session(CLASSES, smaller, M, secret=SECRET, ledger=ledger)


@pytest.mark.parametrize("total", [0.5, 1.0, 1.5, 1e6])
@pytest.mark.parametrize("where", ["ledger", "snapshot"])
def test_a_history_keeps_its_total(total, where):
    """The guarantee is for the total that the history began with: less, also than is spent, or more is refused."""
    session, _, ledger = used_session(Budget(0.5, 2.0))
    session.answer(CONTESTED)
    source = {"ledger": ledger} if where == "ledger" else {"snapshot": session.snapshot()}
    with pytest.raises(InvalidBudget, match=r"began with a total of 2\.0 nats"):
        make(budget=Budget(0.5, total), **source)
    assert make(budget=Budget(0.5, 2.0), **source)[0].guarantee().spent_nats == 1.0


def test_a_history_that_does_not_know_its_total_has_spent_no_more():
    """Of a replayed history it is known at least that a smaller total than it spent was not its own."""
    session, _, _ = used_session(Budget(0.5, 2.0))
    session.answer(CONTESTED)
    old, ledger = replace(session.snapshot(), total=None), MemoryLedger()
    with pytest.raises(InvalidBudget, match="spent already"):
        make(budget=Budget(0.5, 0.5), snapshot=old, ledger=ledger)
    assert ledger.load() is None
    assert make(budget=Budget(0.5, 1.0), snapshot=old)[0].guarantee().total_nats == 1.0


def test_a_history_is_handed_over_whole():
    """Whoever takes it gets the secret, all releases and the state, and nobody is answered here any more."""
    session, _, ledger = used_session()
    entries = list(ledger.entries())
    secret, history, state = session.hand_over()
    assert secret is SECRET
    assert all(map(same_entry, history, entries))
    assert len(history) == state.sequence == 2
    with pytest.raises(LedgerConflict, match="closed"):
        session.answer(CONTESTED)
    assert make(snapshot=state)[0].answer(CONTESTED).sequence == 3


def test_a_history_that_was_not_taken_goes_on():
    """If nobody could go on with it, the session is again the one that answers."""
    session, _, _ = used_session()
    session.hand_over()
    session.take_back()
    assert session.answer(CONTESTED).sequence == 3


def test_a_snapshot_without_its_secret_leaves_the_ledger_empty():
    """The mistake can be repaired by passing the secret as well."""
    session, _, _ = used_session()
    ledger = MemoryLedger()
    with pytest.raises(InvalidInput, match="secret"):
        Session(CLASSES, PLENTY, M, snapshot=session.snapshot(), ledger=ledger)
    assert ledger.load() is None
