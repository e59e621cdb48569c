"""The long ledgers that benchmarks measure are real ones."""

from dataclasses import replace

import histories
import pytest

from pacpredict.exceptions import LedgerConflict
from pacpredict.ledger.verify import verify


def test_a_long_history_is_what_a_session_would_have_written(tmp_path, monkeypatch):
    """It is verified from the first record to the state, continued by a session, and lengthened again."""
    monkeypatch.setattr(histories, "TOGETHER", 100)
    home = histories.home_in(tmp_path / "a")
    for length in (250, 600):
        with home.open() as ledger:
            histories.lengthen(ledger, length)
            found = verify(ledger.ledger, histories.N_CLASSES, histories.BUDGET, histories.PRIOR)
            assert found.releases == length
            assert 0.05 * length < found.contested < 0.15 * length
    with home.open() as ledger:
        (record,) = ledger.ledger.records(after=299, until=300)
        answers = histories.begin(ledger).recall([record.entry.digest]).answers
        assert answers[record.entry.digest].sequence == 300


def test_what_was_answered_is_not_answered_again(tmp_path):
    """A commit that would repeat a query of the history is refused, as of any session."""
    with histories.home_in(tmp_path / "a").open() as ledger:
        histories.lengthen(ledger, 50)
        (record,) = ledger.ledger.records(after=9, until=10)
        state = ledger.load()
        again = record.entry._replace(sequence=51, charged_steps=0)
        with pytest.raises(LedgerConflict):
            ledger.commit([again], replace(state, sequence=51))
