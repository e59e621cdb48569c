"""Older databases are brought up to date, once and whole."""

import sqlite3

import pytest
from racing import race
from small_deployment import DEPLOYMENT, KEY, ask, check_history, make_session

from pacpredict.exceptions import LedgerDamaged, LedgerError
from pacpredict.ledger.schema import MIGRATIONS, SQLITE, is_current, migrate
from pacpredict.ledger.sqlite import SqliteConnection, SqliteLedger

STEPS = [
    ["CREATE TABLE a (x {integer})"],
    ["ALTER TABLE a ADD COLUMN y {blob}", "INSERT INTO a VALUES (1, x'02')"],
]


@pytest.fixture
def path(tmp_path):
    """A database of version 0: it knows its version, and nothing else."""
    path = tmp_path / "old.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE schema_version (version INTEGER NOT NULL); INSERT INTO schema_version VALUES (0)"
    )
    connection.close()
    return path


@pytest.fixture
def old(path):
    connection = SqliteConnection(path, 1.0)
    yield connection
    connection.close()


def test_missing_steps_are_applied_in_order(old):
    """From version 0 over 1 to 2; a database that is up to date is left alone."""
    migrate(old.run, SQLITE, KEY, STEPS[:1])
    assert is_current(old.run, STEPS[:1])
    assert not is_current(old.run, STEPS)
    for _ in range(2):
        migrate(old.run, SQLITE, KEY, STEPS)
        assert old.run("SELECT * FROM a") == [(1, b"\2")]
        assert old.run("SELECT version FROM schema_version") == [(2,)]


def test_a_failed_step_leaves_the_old_version(old):
    """Migrations are part of a transaction: all of them or none."""
    old.begin()
    with pytest.raises(LedgerDamaged):
        migrate(old.run, SQLITE, KEY, [*STEPS, ["CREATE TABLE a (again {integer})"]])
    old.rollback()
    assert old.run("SELECT version FROM schema_version") == [(0,)]
    assert old.run("SELECT name FROM sqlite_master WHERE name = 'a'") == []


@pytest.mark.parametrize("version", [2, 99])
def test_newer_versions_are_refused(old, version):
    """What a newer program made is not touched."""
    old.run("UPDATE schema_version SET version = ?", (version,))
    with pytest.raises(LedgerError, match="newer"):
        migrate(old.run, SQLITE, KEY, STEPS[:1])


@pytest.mark.parametrize(
    "statement", ["DELETE FROM schema_version", "UPDATE schema_version SET version = -1"]
)
def test_impossible_versions_are_refused(old, statement):
    """A database that does not know its version is damaged."""
    old.run(statement)
    with pytest.raises(LedgerDamaged):
        migrate(old.run, SQLITE, KEY, STEPS)


class NewerLedger(SqliteLedger):
    """The ledger of a program with one more migration."""

    migrations = (*MIGRATIONS, ["CREATE TABLE notes (text TEXT)", "INSERT INTO notes VALUES ('migrated')"])


def test_an_older_ledger_is_migrated_when_it_is_opened(tmp_path):
    """Whoever opens an older ledger brings it up to date, once, even if several do at the same time."""
    path = tmp_path / "ledger.sqlite"
    with SqliteLedger(path, deployment=DEPLOYMENT, key=KEY) as ledger:
        make_session(ledger).serve([ask(1, 2)])
    opened = []
    race(lambda _: opened.append(NewerLedger(path, deployment=DEPLOYMENT, key=KEY)), 4)
    for ledger in opened:
        assert ledger._connections.read("SELECT text FROM notes") == [("migrated",)]
        make_session(ledger).serve([ask(1, 2, 3 + len(list(ledger.entries())))])
        check_history(ledger)
        ledger.close()
    assert len(opened) == 4
    with pytest.raises(LedgerError, match="newer"):
        SqliteLedger(path, deployment=DEPLOYMENT, key=KEY)


def test_a_ledger_from_before_there_were_limits_goes_on(tmp_path):
    """Version 2 knew nothing of odds: its state keeps its MAC, and the history goes on without a limit."""
    path = tmp_path / "ledger.sqlite"
    with SqliteLedger(path, deployment=DEPLOYMENT, key=KEY) as ledger:
        make_session(ledger).serve([ask(1, 2)])
    connection = sqlite3.connect(path)
    connection.executescript(
        "ALTER TABLE state DROP COLUMN room; ALTER TABLE state DROP COLUMN moved; DROP TABLE keys; DROP TABLE key_use; "
        "UPDATE schema_version SET version = 2"
    )
    connection.close()
    with SqliteLedger(path, deployment=DEPLOYMENT, key=KEY) as ledger:
        make_session(ledger).serve([ask(1, 2, 3)])
        check_history(ledger)
        assert (ledger.load().room, ledger.load().moved) == (None, None)


def test_a_new_ledger_has_the_latest_version(tmp_path):
    """What is created needs no migration."""
    with SqliteLedger(tmp_path / "new", deployment=DEPLOYMENT, key=KEY) as ledger:
        assert is_current(ledger._connections.read)
        make_session(ledger).serve([ask(1, 2)])
        check_history(ledger)
