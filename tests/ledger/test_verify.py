"""Verification finds every change of a ledger, and says where."""

import sqlite3
from dataclasses import replace

import numpy as np
import pytest
from small_deployment import CLASSES, DEPLOYMENT, KEY, SECRET, STEP, M, ask, make_session

from pacpredict.core.belief import Belief
from pacpredict.exceptions import LedgerConflict, LedgerDamaged
from pacpredict.ledger.postgres import PostgresLedger
from pacpredict.ledger.records import Record, first_link, next_link
from pacpredict.ledger.sqlite import SqliteLedger
from pacpredict.ledger.verify import verify
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.session import Session

BUDGET = Budget(STEP, 100 * STEP)
OTHER_PRIOR = Belief.from_probabilities([0.3] + [0.1] * 7)


def check(ledger, n_classes=CLASSES, budget=BUDGET, prior=None):
    return verify(ledger, n_classes, budget, prior or Belief.uniform(M))


@pytest.fixture
def path(tmp_path):
    """A ledger with eight releases, of labels and of real outputs."""
    path = tmp_path / "ledger.sqlite"
    with SqliteLedger(path, deployment=DEPLOYMENT, key=KEY) as ledger:
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
        opened.append(SqliteLedger(path, deployment=DEPLOYMENT, key=KEY))
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


def limited_ledger(path, budget, **options):
    """A ledger of every kind of release: noise by two decoders, labels of a channel, vectors, and from the belief."""
    rng = np.random.default_rng(0)
    with SqliteLedger(path, deployment=DEPLOYMENT, key=KEY) as ledger:
        for i, decode in enumerate(["sample", "argmax", "map", "sample"] * 3):
            session = Session(
                *(CLASSES, budget, M), secret=SECRET, ledger=ledger,
                deployment=DEPLOYMENT, decode=decode, generator=rng,
            )  # fmt: skip
            if i == 0:
                session.release(rng.normal(size=(M, 1)))
            session.serve([ask(*range(10 * i, 10 * i + 9))])
    return SqliteLedger(path, deployment=DEPLOYMENT, key=KEY)


@pytest.mark.parametrize("noise", ["least", "fair"])
@pytest.mark.parametrize("total", [40, 10_000])
def test_every_kind_of_release_is_replayed(tmp_path, total, noise):
    """Both kinds of noise, channel labels, vectors and answers from the belief, at the limit and past the total."""
    budget = Budget(2.0**-14, total * 2.0**-14, "adaptive", "belief", 2.0, 0.05, noise)
    with limited_ledger(tmp_path / "ledger", budget) as ledger:
        kinds = {entry.kind for entry in ledger.entries()}
        assert kinds >= {"agreed", "argmax", "map", "sample", "vector"}
        assert ("belief" in kinds) == (total == 40)
        found = verify(ledger, CLASSES, budget, Belief.uniform(M))
        assert found.releases == len(list(ledger.entries()))
        assert found.spent_nats <= budget.total
        for other in (replace(budget, odds_limit=3.0), replace(budget, odds_limit=None)):
            with pytest.raises(LedgerConflict, match="limit"):
                verify(ledger, CLASSES, other, Belief.uniform(M))
        with pytest.raises(LedgerConflict, match="noise"):
            verify(
                ledger,
                CLASSES,
                replace(budget, noise={"least": "fair", "fair": "least"}[noise]),
                Belief.uniform(M),
            )


@pytest.mark.parametrize("change", ["noisy = 0", "noisy = noisy + 1", "noisy = NULL"])
def test_the_count_of_noisy_releases_is_under_the_mac(tmp_path, change):
    """Write access to the database is not enough to understate delta."""
    budget = Budget(2.0**-14, 1.0, odds_limit=1.0, odds_delta=0.05)
    limited_ledger(tmp_path / "ledger", budget).close()
    with sqlite3.connect(tmp_path / "ledger") as connection:
        connection.execute(f"UPDATE state SET {change}")
    connection.close()
    with pytest.raises(LedgerDamaged, match="changed"):
        SqliteLedger(tmp_path / "ledger", deployment=DEPLOYMENT, key=KEY)


def test_a_new_ledger(tmp_path):
    """A ledger without releases is sound, before and after its first session."""
    with SqliteLedger(tmp_path / "new", deployment=DEPLOYMENT, key=KEY) as ledger:
        assert check(ledger).releases == 0
        make_session(ledger)
        assert check(ledger).releases == 0


def test_a_ledger_in_a_database(url):
    """The same checks, of a ledger in PostgreSQL, while it is used."""
    with PostgresLedger(url, deployment=DEPLOYMENT, key=KEY) as ledger:
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
    "client": ("UPDATE records SET client = NULL WHERE sequence = 2", "broken at record 2"),
    "time": ("UPDATE records SET time = '2020' WHERE sequence = 2", "broken at record 2"),
    "votes": ("UPDATE records SET question = zeroblob(16) WHERE sequence = 2", "broken at record 2"),
    "noise": ("UPDATE records SET noisy = zeroblob(length(noisy)) WHERE sequence = 5", "broken at record 5"),
    "digest": ("UPDATE records SET digest = NULL WHERE sequence = 7", "broken at record 7"),
    "link": ("UPDATE records SET chain = zeroblob(32) WHERE sequence = 6", "broken at record 6"),
    "request": ("UPDATE records SET request = NULL WHERE sequence = 2", "broken at record 2"),
    "kind": ("UPDATE records SET kind = 'map' WHERE sequence = 2", "broken at record 2"),
    "question without release": ("UPDATE records SET noisy = NULL WHERE sequence = 2", "broken at record 2"),
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
    with ledger.exclusively() as (writer, head):
        bits = bytearray(head.state.log_belief.tobytes())
        bits[0] ^= 1
        state = replace(head.state, log_belief=np.frombuffer(bytes(bits)))
        ledger.write_head(writer, head._replace(state=state))
        writer.commit()
    ledger.close()
    with pytest.raises(LedgerDamaged, match="the belief"):
        check(change())


@pytest.mark.parametrize(
    ("name", "value", "text"), [("contested", 4, "4 contested"), ("spent_steps", 1, "5 charged")]
)
def test_counters_are_recounted(change, name, value, text):
    """What the state counts is what the records make, even where somebody has the key."""
    ledger = change()
    with ledger.exclusively() as (writer, head):
        ledger.write_head(writer, head._replace(state=replace(head.state, **{name: value})))
        writer.commit()
    ledger.close()
    with pytest.raises(LedgerDamaged, match=text):
        check(change())


def forge(ledger, number, spent_from=None, **changes):
    """Change a record and chain all anew, as somebody would who knows how and has the key."""
    link = first_link(ledger.key, ledger.id, ledger.deployment)
    columns = "label = ?, charged_steps = ?, spent_steps = ?, noisy = ?, chain = ?"
    records = list(ledger.records())
    with ledger.exclusively() as (writer, head):
        for record in records:
            entry = record.entry._replace(**changes) if record.entry.sequence == number else record.entry
            spent = 0 if spent_from == entry.sequence else record.spent_steps
            link = next_link(ledger.key, link, Record(entry, spent, record.time, b""))
            noisy = None if entry.noisy is None else entry.noisy.tobytes()
            values = (entry.label, entry.charged_steps, spent, noisy, link, entry.sequence)
            writer.run(f"UPDATE records SET {columns} WHERE sequence = ?", values)
        ledger.write_head(writer, head._replace(chain=link))
        writer.commit()
    ledger.close()


FORGERIES = {
    "another label": ({"label": 9}, "entry 2 is damaged: its label is one that nobody voted for"),
    "another release": ({"noisy": np.full(3, 1e9)}, "(entry 2 is damaged|the belief)"),
    "another size": ({"noisy": np.zeros(17)}, "entry 2 is damaged"),
    "no release": ({"noisy": None}, "record 2 has a question without a release"),
    "a free release": ({"charged_steps": 0}, "record 2"),
    "a dear release": ({"charged_steps": 7}, "record 2"),
    "spending": ({"spent_from": 2}, "record 2 says that 0 steps"),
}


@pytest.mark.parametrize(("changes", "text"), FORGERIES.values(), ids=FORGERIES)
def test_forgeries_are_found(change, changes, text):
    """Even with a chain made anew with the key, a record must fit its question, the spending and the belief."""
    forge(change(), 2, **changes)
    with pytest.raises(LedgerDamaged, match=text):
        check(change())


def test_a_forgery_is_seen_by_whoever_knows_the_chain(change):
    """What cannot be recomputed, a label that all models agreed on, is protected by the chain that was noted."""
    ledger = change()
    before = check(ledger).chain
    agreed = list(ledger.entries())[2]
    assert agreed.question is None
    forge(ledger, 3, label=(agreed.label + 1) % CLASSES)
    assert check(change()).chain != before


def test_more_than_the_total(change):
    """Spending beyond the total is said, even if every record is sound."""
    with pytest.raises(LedgerDamaged, match=r"0\.0195312 nats are spent, of 0\.015625"):
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
