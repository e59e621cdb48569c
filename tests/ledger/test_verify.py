"""Verification finds every change of a ledger, and says where."""

import sqlite3

import numpy as np
import pytest

from pacpredict.core.belief import Belief
from pacpredict.exceptions import LedgerConflict, LedgerDamaged
from pacpredict.ledger.postgres import PostgresLedger
from pacpredict.ledger.records import Record, first_link, next_link
from pacpredict.ledger.sqlite import SqliteLedger
from pacpredict.ledger.verify import verify
from pacpredict.mechanism.budget import Budget
from small_deployment import CLASSES, DEPLOYMENT, STEP, M, ask, make_session

BUDGET = Budget(STEP, 100 * STEP)
OTHER_PRIOR = Belief.from_probabilities([0.3] + [0.1] * 7)


def check(ledger, n_classes=CLASSES, budget=BUDGET, prior=None):
    return verify(ledger, n_classes, budget, prior or Belief.uniform(M))


@pytest.fixture
def path(tmp_path):
    """A ledger with eight releases, of labels and of real outputs."""
    path = tmp_path / "ledger.sqlite"
    with SqliteLedger(path, deployment=DEPLOYMENT) as ledger:
        session = make_session(ledger, 100)
        session.serve([ask(1, 2, 3, id="x", client="c"), ask(4)])
        session.release(np.arange(2.0 * M).reshape(M, 2))
        session.release(np.ones((M, 1)))
        session.serve([ask(1, 5, 6)])
    return path


@pytest.fixture
def change(path):
    """Meddle with the ledger as somebody would who can write to the file, and open it again."""
    opened = []

    def meddle(*statements):
        with sqlite3.connect(path) as connection:
            for statement in statements:
                connection.execute(*([statement] if isinstance(statement, str) else statement))
        connection.close()
        opened.append(SqliteLedger(path, deployment=DEPLOYMENT))
        return opened[-1]

    yield meddle
    for ledger in opened:
        ledger.close()


def test_a_sound_ledger(change):
    """What was checked is reported, in numbers."""
    ledger = change()
    found = check(ledger)
    records = list(ledger.records())
    assert (found.ledger, found.location) == (ledger.id, ledger.location)
    assert (found.releases, found.contested) == (8, sum(r.entry.noisy is not None for r in records))
    assert found.contested == 5
    assert (found.spent_nats, found.total_nats) == (5 * STEP, 100 * STEP)
    assert found.chain == records[-1].chain.hex()


def test_a_new_ledger(tmp_path):
    """A ledger without releases is sound, before and after its first session."""
    with SqliteLedger(tmp_path / "new", deployment=DEPLOYMENT) as ledger:
        assert check(ledger).releases == 0
        make_session(ledger)
        assert check(ledger).releases == 0


def test_a_ledger_in_a_database(url):
    """The same checks, of a ledger in PostgreSQL, while it is used."""
    with PostgresLedger(url, deployment=DEPLOYMENT) as ledger:
        session = make_session(ledger, 100)
        session.serve([ask(*range(20))])
        with ledger.turn():
            assert check(ledger).releases == 20


CHANGES = {
    "label": ("UPDATE records SET label = (label + 1) % 4 WHERE sequence = 2", "broken at record 2"),
    "agreed label": (
        "UPDATE records SET label = 3 - label WHERE sequence = 3",
        "broken at record 3",
    ),
    "charge": ("UPDATE records SET charged_steps = 0 WHERE sequence = 4", "broken at record 4"),
    "spending": ("UPDATE records SET spent_steps = 0 WHERE sequence = 4", "broken at record 4"),
    "client": ("UPDATE records SET client = NULL WHERE sequence = 1", "broken at record 1"),
    "time": ("UPDATE records SET time = '2020' WHERE sequence = 1", "broken at record 1"),
    "votes": ("UPDATE records SET question = zeroblob(16) WHERE sequence = 2", "broken at record 2"),
    "noise": ("UPDATE records SET noisy = zeroblob(length(noisy)) WHERE sequence = 5", "broken at record 5"),
    "digest": ("UPDATE records SET digest = NULL WHERE sequence = 7", "broken at record 7"),
    "link": ("UPDATE records SET chain = zeroblob(32) WHERE sequence = 6", "broken at record 6"),
    "gap": ("DELETE FROM records WHERE sequence IN (3, 4)", "record 5 follows record 2"),
    "missing start": ("DELETE FROM records WHERE sequence = 1", "record 2 follows record 0"),
    "question without release": ("UPDATE records SET noisy = NULL WHERE sequence = 2", "broken at record 2"),
    "counters": ("UPDATE state SET contested = 4", "4 and 5"),
    "counted spending": ("UPDATE state SET spent_steps = 1", "5 charged steps"),
    "belief": ("UPDATE state SET log_belief = zeroblob(64)", "the belief"),
}


@pytest.mark.parametrize(("statement", "text"), CHANGES.values(), ids=CHANGES)
def test_changes_are_found(change, statement, text):
    """Whatever is changed in a record or in the state, the error names it."""
    ledger = change(statement)
    with pytest.raises(LedgerDamaged, match=text):
        check(ledger)


def test_the_last_bit_of_the_belief_counts(change):
    """A belief that differs by one bit is not the one that the records imply."""
    ledger = change()
    belief = bytearray(ledger.load().log_belief.tobytes())
    ledger.close()
    belief[0] ^= 1
    with pytest.raises(LedgerDamaged, match="the belief"):
        check(change(("UPDATE state SET log_belief = ?", (bytes(belief),))))


def forge(ledger, number, spent_from=None, **changes):
    """Change a record and chain all anew, as somebody would who knows how; returns the statements."""
    link, statements = first_link(ledger.id, ledger.deployment), []
    for record in ledger.records():
        entry = record.entry._replace(**changes) if record.entry.sequence == number else record.entry
        spent = 0 if spent_from == entry.sequence else record.spent_steps
        link = next_link(link, Record(entry, spent, record.time, b""))
        noisy = None if entry.noisy is None else entry.noisy.tobytes()
        values = (entry.label, entry.charged_steps, spent, noisy, link, entry.sequence)
        columns = "label = ?, charged_steps = ?, spent_steps = ?, noisy = ?, chain = ?"
        statements.append((f"UPDATE records SET {columns} WHERE sequence = ?", values))
    return [*statements, ("UPDATE state SET chain = ?", (link,))]


FORGERIES = {
    "another label": ({"label": 9}, "entry 2 is damaged: its label"),
    "another release": ({"noisy": np.full(3, 1e9)}, "(entry 2 is damaged|the belief)"),
    "another size": ({"noisy": np.zeros(17)}, "entry 2 is damaged"),
    "no release": ({"noisy": None}, "record 2 has a question without a release"),
    "a free release": ({"charged_steps": 0}, "record 2"),
    "a dear release": ({"charged_steps": 7}, "record 2"),
    "spending": ({"spent_from": 2}, "record 2 says that 0 steps"),
}


@pytest.mark.parametrize(("changes", "text"), FORGERIES.values(), ids=FORGERIES)
def test_forgeries_are_found(change, changes, text):
    """Even with a chain that was made anew, a record must fit its question, the spending and the belief."""
    ledger = change()
    statements = forge(ledger, 2, **changes)
    ledger.close()
    with pytest.raises(LedgerDamaged, match=text):
        check(change(*statements))


def test_a_forgery_is_seen_by_who_knows_the_chain(change):
    """What cannot be recomputed, a label that all models agreed on, is protected by the chain that was noted."""
    ledger = change()
    before = check(ledger).chain
    agreed = list(ledger.entries())[2]
    assert agreed.question is None
    statements = forge(ledger, 3, label=(agreed.label + 1) % CLASSES)
    ledger.close()
    assert check(change(*statements)).chain != before


def test_more_than_the_total(change):
    """Spending beyond the total is said, even if every record is sound."""
    with pytest.raises(LedgerDamaged, match="nats are spent"):
        check(change(), budget=Budget(STEP, 4 * STEP))


@pytest.mark.parametrize(
    "options",
    [
        {"n_classes": CLASSES + 1},
        {"budget": Budget(STEP / 2, 1.0)},
        {"prior": OTHER_PRIOR},
    ],
)
def test_another_deployment_is_no_comparison(change, options):
    """A ledger is verified with the classes, step and prior that it was begun with."""
    with pytest.raises(LedgerConflict, match="begun with another"):
        check(change(), **options)
