"""A ledger is of the one format that this version writes, or refused as it is."""

import sqlite3
from contextlib import closing

import psycopg
import pytest
from small_deployment import DEPLOYMENT, KEY, ask, check_history, found_home, make_session, serve_at

from pacpredict.exceptions import LedgerDamaged, LedgerError
from pacpredict.ledger.backup import back_up
from pacpredict.ledger.postgres import PostgresLedger
from pacpredict.ledger.schema import VERSION
from pacpredict.ledger.sqlite import SqliteLedger

OTHER_VERSIONS = {VERSION - 1: "fit again", VERSION + 1: "use the version that wrote it"}


def version_of(path):
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT version FROM schema_version").fetchall()


def give(path, statement, *values):
    """Change a ledger as a program of another version would have written it."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement, values)


def sentence(location, version):
    return (
        f"the ledger at {location} has format {version}, but this version of pacpredict reads only format {VERSION}: "
        f"{OTHER_VERSIONS[version]}"
    )


@pytest.fixture
def home(tmp_path):
    made = found_home(tmp_path / "a.pac")
    serve_at(made, 1, 2)
    return made


def test_a_new_ledger_has_the_version_that_is_read(tmp_path):
    """What is created is opened again, and goes on."""
    for numbers in ((1, 2), (3,)):
        with SqliteLedger(tmp_path / "new", deployment=DEPLOYMENT, key=KEY) as ledger:
            make_session(ledger).serve([ask(*numbers)])
            check_history(ledger)
    assert version_of(tmp_path / "new") == [(VERSION,)]


@pytest.mark.parametrize("version", OTHER_VERSIONS)
def test_other_versions_are_refused(home, tmp_path, version):
    """Whatever an owner does with a ledger of another format is refused in one sentence, and changes nothing."""
    with home.open() as ledger:
        back_up(ledger.ledger, tmp_path / "backup")
    for path in (home.ledger, tmp_path / "backup"):
        give(path, "UPDATE schema_version SET version = ?", version)
    before = home.ledger.read_bytes()
    for act in (home.open, lambda: home.moved(None, None, 2)):
        with pytest.raises(LedgerError) as caught:
            act()
        assert str(caught.value) == sentence(home.ledger, version)
    assert home.ledger.read_bytes() == before
    home.ledger.unlink()
    with pytest.raises(LedgerError) as caught:
        home.restore(tmp_path / "backup", None, 2)
    assert str(caught.value) == sentence(tmp_path / "backup", version)
    assert not home.ledger.exists()


def test_a_running_session_takes_no_other_version(home):
    """A ledger of another format that comes into the place of one in use is neither read nor written."""
    with home.open() as ledger:
        session = make_session(ledger)
        session.serve([ask(3)])
        give(home.ledger, "UPDATE schema_version SET version = ?", VERSION - 1)
        for suffix in ("-wal", "-shm"):  # so that the session has to connect anew
            home.ledger.with_name(home.ledger.name + suffix).unlink()
        for _ in range(2):
            with pytest.raises(LedgerError):
                session.serve([ask(4)])
    assert version_of(home.ledger) == [(VERSION - 1,)]


@pytest.mark.parametrize(
    "statement", ["DELETE FROM schema_version", "UPDATE schema_version SET version = -1"]
)
def test_impossible_versions_are_refused(home, statement):
    """A ledger that does not say which format it has is damaged."""
    give(home.ledger, statement)
    with pytest.raises(LedgerDamaged, match="does not say which format it has"):
        home.open()


@pytest.mark.parametrize("version", OTHER_VERSIONS)
def test_other_versions_in_a_database_are_refused(home, url, version):
    """The same in PostgreSQL, also where a ledger would be moved to."""
    with PostgresLedger(url, deployment=DEPLOYMENT, key=KEY) as ledger:
        make_session(ledger).serve([ask(1, 2)])
        location = ledger.location
    with psycopg.connect(url) as database:
        database.execute("UPDATE schema_version SET version = %s", (version,))
    for act in (
        lambda: PostgresLedger(url, deployment=DEPLOYMENT, key=KEY),
        lambda: PostgresLedger(url, deployment=DEPLOYMENT, key=KEY, create=False),
        lambda: home.move_to(url),
    ):
        with pytest.raises(LedgerError) as caught:
            act()
        assert str(caught.value) == sentence(location, version)
    serve_at(home, 3)  # goes on where it was
