"""The ledger comes first: no answer that it has not got, and none that it might forget."""

import pytest
from broken_ledger import BrokenLedger
from ledger_contract import same_entry, same_state
from small_session import (
    ASKED,
    CLASSES,
    CONTESTED,
    PLENTY,
    Frozen,
    M,
    make,
)

from pacpredict.core.belief import Belief
from pacpredict.exceptions import (
    LedgerError,
)
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.mechanism.replay import replay


@pytest.mark.parametrize(("method", "argument"), ASKED)
def test_no_answer_without_a_commit(method, argument):
    """If the ledger fails, there is no answer and the session is where it was; it can go on afterwards."""
    ledger = BrokenLedger()
    session, generator = make(ledger=ledger)
    session.answer(CONTESTED)
    frozen = Frozen(session, generator, ledger)
    ledger.fails = "before"
    with pytest.raises(LedgerError, match="lost"):
        getattr(session, method)(argument)
    frozen.check(drew=True)
    ledger.fails = None
    assert session.answer(CONTESTED).sequence == 2
    assert same_state(ledger.load(), session.snapshot())


@pytest.mark.parametrize(("method", "argument"), ASKED)
def test_a_commit_that_seemed_to_fail_is_continued(method, argument):
    """If the ledger committed although it raised, the next request continues after it: there is one history."""
    ledger = BrokenLedger()
    session, _ = make(ledger=ledger)
    session.answer(CONTESTED)
    ledger.fails = "after"
    with pytest.raises(LedgerError, match="lost"):
        getattr(session, method)(argument)
    ledger.fails = None
    recorded = list(ledger.entries())
    for again, row in ASKED:
        getattr(session, again)(row)
    assert all(map(same_entry, ledger.entries(), recorded))
    assert [entry.sequence for entry in ledger.entries()] == list(range(1, len(recorded) + 5))
    assert same_state(replay(ledger.entries(), CLASSES, PLENTY, Belief.uniform(M)), session.snapshot())


class WatchedLedger(MemoryLedger):
    """A ledger that notes each commit, with what its session had remembered by then, and each confirmation."""

    session = None

    def __init__(self):
        super().__init__()
        self.seen = []

    def commit(self, entries, state):
        if self.session is not None:
            self.seen.append((self.session.snapshot().sequence, state.sequence))
        super().commit(entries, state)

    def confirm(self, sequence):
        self.seen.append(sequence)


def test_durable_before_remembered():
    """At the time of a commit the session is still at the state before it; what was committed is then confirmed."""
    ledger = WatchedLedger()
    session, _ = make(ledger=ledger)
    ledger.session = session
    for method, argument in ASKED:
        getattr(session, method)(argument)
    assert ledger.seen == [(0, 1), 1, (1, 3), 3, (3, 4), 4]


@pytest.mark.parametrize(("method", "argument"), ASKED)
def test_no_answer_that_might_be_forgotten(method, argument):
    """What cannot be confirmed is not shown; it stays on record and charged, for it cannot be drawn again."""
    ledger = BrokenLedger()
    session, _ = make(ledger=ledger)
    ledger.fails = "confirm"
    with pytest.raises(LedgerError, match="confirm"):
        getattr(session, method)(argument)
    recorded = list(ledger.entries())
    assert ledger.load().spent_steps == 1
    ledger.fails = None
    assert session.answer(CONTESTED).sequence == len(recorded) + 1
    assert all(map(same_entry, ledger.entries(), recorded))


@pytest.mark.parametrize("serving", [True, False])
def test_readiness_is_the_ledgers(serving):
    """A session is ready if its ledger could record a release, and finds that out without one."""
    ledger = BrokenLedger()
    session, generator = make(ledger=ledger)
    frozen = Frozen(session, generator, ledger)
    if serving:
        session.check_ledger()
    else:
        ledger.fails = "check"
        with pytest.raises(LedgerError, match="check"):
            session.check_ledger()
    frozen.check()
