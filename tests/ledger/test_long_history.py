"""A long history costs nothing where it is opened, asked or continued; and damage in its old part is noticed."""

import sqlite3

import psycopg
import pytest
from small_deployment import KEY, ask, found_home, make_session, serve_at

from pacpredict.exceptions import LedgerDamaged
from pacpredict.ledger import ending, sql, witnessed
from pacpredict.ledger import home as homes
from pacpredict.ledger.postgres import PostgresLedger
from pacpredict.ledger.witness import FileWitness

LITTLE = 20  # what is looked at of the end of a history, and of what is new


@pytest.fixture
def steps(monkeypatch):
    """Let all databases count what their virtual machines do, and look at little of long histories."""
    counted = [0]
    connect = sqlite3.connect

    def count():
        counted[0] += 1

    def connect_and_count(*arguments, **options):
        database = connect(*arguments, **options)
        database.set_progress_handler(count, 1)
        return database

    monkeypatch.setattr(sqlite3, "connect", connect_and_count)
    look_at_little(monkeypatch)
    return counted


def look_at_little(monkeypatch):
    monkeypatch.setattr(ending, "COUNTED", LITTLE)
    monkeypatch.setattr(homes, "_CHECKED_AT_ONCE", LITTLE)
    monkeypatch.setattr(witnessed, "_PATROLLED", LITTLE)


def meddle(home, statement):
    """Write to the database as somebody does who has no key."""
    database = sqlite3.connect(home.ledger)
    database.executescript(statement)
    database.commit()
    database.close()


def look_through_all(ledger):
    """Look more often than a history of five times LITTLE needs."""
    for _ in range(7):
        ledger.keep_up()


def cost_of_using(home, steps):
    """Return what it takes to open a ledger, ask a new and a repeated query, look after it once, and close it."""
    steps[0] = 0
    with home.open() as ledger:
        session = make_session(ledger)
        session.serve([ask(10**6)])
        session.serve([ask(0)])
        ledger.keep_up()
    return steps[0]


def test_what_a_ledger_costs_does_not_grow_with_its_history(tmp_path, steps):
    """A history of ten times the length is opened and used by as many steps of the database."""
    short, long = found_home(tmp_path / "short.pac"), found_home(tmp_path / "long.pac")
    serve_at(short, *range(100))
    serve_at(long, *range(1000))
    costs = [cost_of_using(home, steps) for home in (short, long)]
    assert costs[1] <= 1.01 * costs[0]


def test_opening_checks_what_was_never_checked_step_by_step(tmp_path, monkeypatch):
    """An opening checks so many records that nobody has checked, and notes exactly how far it came."""
    home = found_home(tmp_path / "a.pac")
    serve_at(home, *range(3 * LITTLE))
    look_at_little(monkeypatch)
    meddle(home, f"UPDATE records SET client = 'x' WHERE sequence = {2 * LITTLE + 1}")
    for checked in (LITTLE, 2 * LITTLE):
        home.open().close()
        assert FileWitness(home.witness, KEY).read().verified == checked
    with pytest.raises(LedgerDamaged, match=f"record {2 * LITTLE + 1} "):
        home.open()


OLD_DAMAGE = {
    "missing": "DELETE FROM records WHERE sequence = 5",
    "many missing": f"DELETE FROM records WHERE sequence BETWEEN 2 AND {2 * LITTLE}",
    "missing to the end of a look": f"DELETE FROM records WHERE sequence = {LITTLE}",
    "changed": "UPDATE records SET label = 1 - label WHERE sequence = 5",
    "forgotten": "UPDATE records SET digest = NULL WHERE sequence = 5",
    "missing to the end": "DELETE FROM records WHERE sequence > 5",
    "all missing": "DELETE FROM records",
    "no text": "UPDATE records SET time = CAST(x'ff' AS TEXT) WHERE sequence = 5",
    "of another kind": (
        "CREATE TABLE others AS SELECT * FROM records; DROP TABLE records; ALTER TABLE others RENAME TO records; "
        "UPDATE records SET question = 'a text', noisy = NULL WHERE sequence = 5"
    ),
    "a time that is none": (
        "CREATE TABLE others AS SELECT * FROM records; DROP TABLE records; ALTER TABLE others RENAME TO records; "
        "UPDATE records SET time = NULL WHERE sequence = 5"
    ),
}


@pytest.mark.parametrize("statement", OLD_DAMAGE.values(), ids=OLD_DAMAGE)
def test_a_server_finds_damage_in_the_old_part(tmp_path, monkeypatch, statement):
    """Whoever keeps looking goes through all of the history, again and again, and releases nothing after a damage."""
    home = found_home(tmp_path / "a.pac")
    serve_at(home, *range(5 * LITTLE))
    home.open().close()  # has checked all of it
    look_at_little(monkeypatch)
    with home.open() as ledger:
        session = make_session(ledger)
        look_through_all(ledger)
        meddle(home, statement)
        with pytest.raises(LedgerDamaged):
            look_through_all(ledger)
        for use in (ledger.keep_up, ledger.check, lambda: session.serve([ask(10**6)])):
            with pytest.raises(LedgerDamaged):
                use()


def test_a_server_checks_first_what_nobody_has(tmp_path, monkeypatch):
    """What one opening was too short for is checked while a server runs, and noted by its witness."""
    home = found_home(tmp_path / "a.pac")
    serve_at(home, *range(4 * LITTLE))
    look_at_little(monkeypatch)
    with home.open() as ledger:
        for checked in (2, 3, 4, 4):
            ledger.keep_up()
            assert FileWitness(home.witness, KEY).read().verified == checked * LITTLE


def test_a_server_keeps_up_with_what_it_answers(tmp_path, monkeypatch):
    """However much comes between two looks, a backlog grows no further than it may."""
    home = found_home(tmp_path / "a.pac")
    look_at_little(monkeypatch)
    monkeypatch.setattr(witnessed, "_MOST_UNCHECKED", LITTLE)
    with home.open() as ledger:
        session = make_session(ledger)
        for turn in (1, 2, 3):
            session.serve([ask(*range((turn - 1) * 5 * LITTLE, turn * 5 * LITTLE))])
            ledger.keep_up()
            assert FileWitness(home.witness, KEY).read().verified == turn * 5 * LITTLE


def test_a_server_checks_what_is_new_before_it_goes_on_with_what_is_old(tmp_path, monkeypatch):
    """In the middle of another round through a long history, new records are the first to be checked all the same."""
    home = found_home(tmp_path / "a.pac")
    serve_at(home, *range(5 * LITTLE))
    home.open().close()  # has checked all of it
    look_at_little(monkeypatch)
    with home.open() as ledger:
        session = make_session(ledger)
        ledger.keep_up()
        ledger.keep_up()
        session.serve([ask(*range(5 * LITTLE, 6 * LITTLE))])
        ledger.keep_up()
        assert FileWitness(home.witness, KEY).read().verified == 6 * LITTLE


def test_a_server_goes_on_with_what_is_old_while_little_is_new(tmp_path, monkeypatch):
    """Where something new comes with every look, what is left of each look goes through the old part."""
    home = found_home(tmp_path / "a.pac")
    serve_at(home, *range(5 * LITTLE))
    home.open().close()  # has checked all of it
    look_at_little(monkeypatch)
    with home.open() as ledger:
        session = make_session(ledger)
        meddle(home, f"UPDATE records SET label = 1 - label WHERE sequence = {2 * LITTLE}")
        for turn in (1, 2):
            session.serve([ask(10**6 + turn)])
            ledger.keep_up()
        session.serve([ask(10**6)])
        with pytest.raises(LedgerDamaged, match=f"record {2 * LITTLE} "):
            ledger.keep_up()


def test_a_server_catches_up_later(tmp_path, monkeypatch):
    """A burst is not slowed down by checks of all that it wrote: these are made look by look, afterwards."""
    home = found_home(tmp_path / "a.pac")
    look_at_little(monkeypatch)
    with home.open() as ledger:
        make_session(ledger).serve([ask(*range(3 * LITTLE))])
        for checked in (1, 2, 3):
            ledger.keep_up()
            assert FileWitness(home.witness, KEY).read().verified == checked * LITTLE


def test_a_gap_near_the_end_is_noticed_when_it_is_opened(tmp_path, monkeypatch):
    """The last records are counted even where all were checked before."""
    home = found_home(tmp_path / "a.pac")
    serve_at(home, *range(3 * LITTLE))
    home.open().close()
    look_at_little(monkeypatch)
    meddle(home, f"DELETE FROM records WHERE sequence = {2 * LITTLE + 1}")
    with pytest.raises(LedgerDamaged, match=f"of the last {LITTLE} it has {LITTLE - 1}"):
        home.open()


def read_rows(plan):
    """Return how many rows each part of a plan has read of the records, kept or not."""
    read = (plan.get("Actual Rows", 0) + plan.get("Rows Removed by Filter", 0)) * plan.get("Actual Loops", 1)
    own = [read] if plan.get("Relation Name") == "records" else []
    return own + [n for part in plan.get("Plans", []) for n in read_rows(part)]


LOOKS = {
    "at an opening": (ending.END, (LITTLE, LITTLE)),
    "in a turn": (sql.WRITTEN, (20_000, 20_000 - LITTLE, LITTLE + 1)),
}


@pytest.mark.parametrize(("statement", "values"), LOOKS.values(), ids=LOOKS)
def test_postgresql_does_not_read_all_records(url, statement, values):
    """Whether or not it knows how many there are, it looks at no more records than are counted."""
    PostgresLedger(url, key=KEY).close()
    for value in values:
        statement = statement.replace("?", str(value), 1)
    with psycopg.connect(url, autocommit=True) as database:
        database.execute(
            "INSERT INTO records (sequence, kind, votes, charged_steps, spent_steps, time, chain) "
            "SELECT i, 'agreed', 'plain', 0, 0, 'now', sha256(i::text::bytea) FROM generate_series(1, 20000) AS i"
        )
        for known in ("SELECT 1", "VACUUM ANALYZE records"):
            database.execute(known)
            (((found,),),) = database.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + statement).fetchall()
            assert max(read_rows(found["Plan"])) == LITTLE
