"""A ledger moves from SQLite to PostgreSQL: one history, at one place at a time."""

import sqlite3

import psycopg
import pytest
from ledger_contract import same_entry, same_state
from small_deployment import (
    CLASSES,
    DEPLOYMENT,
    KEY,
    STEP,
    M,
    ask,
    asked_with,
    check_history,
    found_home,
    make_session,
    serve_at,
)

from pacpredict.core.belief import Belief
from pacpredict.exceptions import ForeignLedger, LedgerConflict, LedgerDamaged, LedgerError, LedgerUnavailable
from pacpredict.ledger.move import move
from pacpredict.ledger.postgres import PostgresLedger, describe_url
from pacpredict.ledger.sqlite import SqliteLedger
from pacpredict.ledger.verify import verify
from pacpredict.ledger.witness import FileWitness
from pacpredict.mechanism.budget import Budget


@pytest.fixture
def source(tmp_path):
    with SqliteLedger(tmp_path / "ledger.sqlite", deployment=DEPLOYMENT, key=KEY) as ledger:
        make_session(ledger).serve([ask(*range(1199)), ask(1, 1199, id="x", client="zoe")])
        yield ledger


def gives_turns(ledger):
    """Say whether a ledger can be continued."""
    try:
        with ledger.turn():
            return True
    except LedgerConflict:
        return False


def test_the_history_is_the_same(source, url):
    """Identity, chain, records, ids and belief arrive bit for bit, and the history goes on where it was."""
    before, state = list(source.records()), source.load()
    with move(source, url) as there:
        assert there.id == source.id
        assert same_state(there.load(), state)
        for one, other in zip(before, there.records(), strict=True):
            assert same_entry(one.entry, other.entry)
            assert one[1:] == other[1:]
        assert there.request(asked_with("x", "zoe")) == source.request(asked_with("x", "zoe")) is not None
        session = make_session(there)
        ((again, new),) = session.serve([ask(5, 5000)])
        assert (again.sequence, again.charge, new.sequence) == (6, 0.0, 1201)
        assert verify(there, CLASSES, Budget(STEP, 1e4), Belief.uniform(M)).releases == 1201


def test_the_old_place_is_closed(source, url):
    """Who still uses the old ledger is told where it went; it can be read, not continued."""
    session = make_session(source)
    move(source, url).close()
    with pytest.raises(LedgerConflict, match=r"continued at postgresql://owner@"):
        session.serve([ask(5000)])
    assert source.load().sequence == 1200


class Interruption(Exception):
    pass


@pytest.mark.parametrize("point", ["copied", "marked", "unmarked"])
def test_interrupted_moves_are_repeated(source, url, point):
    """Wherever a move stops, at most one place can be continued; doing it again completes it."""

    def stop(here):
        if here == point:
            raise Interruption

    with pytest.raises(Interruption):
        move(source, url, stop)
    with PostgresLedger(url, deployment=DEPLOYMENT, create=False, key=KEY) as there:
        alive = [gives_turns(source), gives_turns(there)]
        assert alive == {"copied": [True, False], "marked": [False, False], "unmarked": [False, True]}[point]
    if point == "copied":  # the original may be used meanwhile
        make_session(source).serve([ask(5000)])
    with move(source, url) as there:
        assert [gives_turns(source), gives_turns(there)] == [False, True]
        assert there.load().sequence == source.load().sequence
        check_history(there)


def test_a_move_that_is_done_may_be_repeated(source, url):
    """A second time nothing happens, also when the ledger was used at its new place."""
    with move(source, url) as there:
        make_session(there).serve([ask(5000)])
    with move(source, url) as there:
        assert there.load().sequence == 1201
        check_history(there)


def test_a_ledger_moves_to_one_place(source, url, postgres):
    """What was moved is not moved again from where it was."""
    move(source, url).close()
    with pytest.raises(LedgerConflict, match="already"):
        move(source, postgres.create_database("elsewhere"))


@pytest.mark.parametrize("deployment", [DEPLOYMENT, "artifact-2"])
def test_other_ledgers_are_not_overwritten(source, url, deployment):
    """Where a ledger is in use nothing is moved to, and the original goes on."""
    with PostgresLedger(url, deployment=deployment, key=KEY) as other:
        with pytest.raises(LedgerConflict, match="another ledger"):
            move(source, url)
        assert not other.head().sequence
    assert gives_turns(source)


def test_a_copy_that_was_lost(source, url):
    """If the new place was emptied in the middle of a move, the mark is not trusted."""

    def stop(here):
        if here == "marked":
            raise Interruption

    with pytest.raises(Interruption):
        move(source, url, stop)
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE state SET chain = '\\x00'")
    with pytest.raises(LedgerConflict, match="not the history"):
        move(source, url)


def test_nowhere_to_move_to(source):
    """Without a database nothing changes."""
    with pytest.raises(LedgerUnavailable):
        move(source, "postgresql://u@/x?host=/nowhere")
    assert gives_turns(source)


def test_a_copy_does_not_arrive_twice(tmp_path, source, url):
    """An older copy of the ledger, moved to the same place, does not replace what is in use there."""
    (tmp_path / "copy").write_bytes(b"")
    source.close()
    (tmp_path / "copy").write_bytes((tmp_path / "ledger.sqlite").read_bytes())
    with (
        SqliteLedger(tmp_path / "ledger.sqlite", deployment=DEPLOYMENT, key=KEY) as original,
        SqliteLedger(tmp_path / "copy", deployment=DEPLOYMENT, key=KEY) as copy,
        move(original, url) as there,
    ):
        make_session(there).serve([ask(5000)])
        with pytest.raises(LedgerError, match="in use"):
            move(copy, url)
        assert there.load().sequence == 1201


def test_deployments_stay_apart(source, url):
    """The moved ledger is opened for its own deployment only."""
    move(source, url).close()
    with pytest.raises(ForeignLedger):
        PostgresLedger(url, deployment="artifact-2", create=False, key=KEY)


def test_the_artifact_remembers_where_its_ledger_went(tmp_path, url):
    """After a move the artifact is served from the new place, and the old one says where that is."""
    home = found_home(tmp_path)
    serve_at(home, 1, 2)
    for _ in range(2):
        assert home.move_to(url) == describe_url(url)
        assert FileWitness(home.witness, KEY).read().location == describe_url(url)
    serve_at(home, 1, 3, url=url)
    with home.open(url) as there:
        assert len(check_history(there.ledger)) == 3
    with pytest.raises(LedgerConflict, match="continued at"):
        home.open()


def test_an_older_copy_is_not_moved(tmp_path, url):
    """What the artifact would refuse to serve it refuses to move."""
    home = found_home(tmp_path)
    backup = home.ledger.read_bytes()
    serve_at(home, 1, 2)
    home.ledger.write_bytes(backup)
    with pytest.raises(LedgerConflict, match="older copy"):
        home.move_to(url)


def test_nobody_takes_a_mark_away_without_the_key(source, url):
    """A ledger that was moved is not brought back to life by whoever can write to its database."""
    move(source, url).close()
    source.close()
    with sqlite3.connect(source.location) as database:
        database.execute("UPDATE state SET moved_to = NULL")
    database.close()
    with pytest.raises(LedgerDamaged):
        SqliteLedger(source.location, deployment=DEPLOYMENT, key=KEY)
