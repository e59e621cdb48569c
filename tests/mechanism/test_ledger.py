"""The contract of ledgers, and its application to the one in memory."""

import threading

import numpy as np
import pytest
from ledger_contract import LedgerContract, label_entry, state_at
from racing import race

from pacpredict.exceptions import LedgerConflict
from pacpredict.mechanism.ledger import MemoryLedger, check_continues


class TestMemoryLedger(LedgerContract):
    @pytest.fixture
    def ledger(self):
        return MemoryLedger()


def test_records_do_not_print_what_they_hold():
    """The question, the noisy vector and the belief are not in a record's text."""
    entry, state = label_entry(1), state_at(1)
    assert repr(entry) == "Entry(sequence=1, charged_steps=1, label=1)"
    assert (
        repr(state)
        == "State(sequence=1, contested=0, spent_steps=1, step=None, deployment=None, total=None, noisy=0)"
    )


def test_the_belief_of_a_state_is_frozen():
    """Nobody changes the belief behind the ledger's back."""
    with pytest.raises(ValueError, match="read-only"):
        state_at(1).log_belief[0] = 0.0


@pytest.mark.parametrize("n", [1, 5])
def test_check_continues_accepts_what_continues(n):
    """Numbers that follow, and an end that fits them, pass."""
    check_continues(state_at(7), [label_entry(8 + i) for i in range(n)], state_at(7 + n))


def test_two_writers_at_once():
    """Of threads that commit the same number at the same moment, exactly one succeeds."""
    n_threads, n_rounds = 4, 200
    ledger = MemoryLedger()
    ledger.commit([], state_at(0))
    start, won = threading.Barrier(n_threads), np.zeros((n_threads, n_rounds), dtype=int)

    def write(thread):
        for i in range(n_rounds):
            start.wait()
            try:
                ledger.commit([label_entry(i + 1)], state_at(i + 1))
                won[thread, i] = 1
            except LedgerConflict:
                pass
            start.wait()

    race(write, n_threads)
    assert (won.sum(axis=0) == 1).all()
    assert [entry.sequence for entry in ledger.entries()] == list(range(1, n_rounds + 1))
