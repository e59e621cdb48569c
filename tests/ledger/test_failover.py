"""A database that goes back: to a copy of an earlier moment, or to a standby that lagged behind."""

import itertools
import shutil

import psycopg
import pytest
from postgres_server import PostgresServer
from small_deployment import ask, check_history, found_home, home_at, make_session, serve_at

from pacpredict.exceptions import LedgerConflict, LedgerError

_numbers = itertools.count()


@pytest.fixture(scope="module")
def server():
    server = PostgresServer()
    yield server
    server.stop()


@pytest.fixture
def database(server):
    return server.create_database(f"failover_{next(_numbers)}")


@pytest.fixture
def hosts(tmp_path, database):
    """The artifact on two hosts that share a ledger in PostgreSQL."""
    first = found_home(tmp_path / "first.pac")
    first.begin_at(database)
    shutil.copytree(tmp_path / "first.pac", tmp_path / "second.pac")
    return first, home_at(tmp_path / "second.pac")


def refuses(session, number):
    """Check that a session gives no new answer, now and when it is asked again."""
    for _ in range(2):
        with pytest.raises(LedgerError):
            session.serve([ask(number)])


def test_two_servers_of_one_artifact(hosts, server, database):
    """The idle server does not answer again what the busy one has answered from a state that is lost."""
    home, _ = hosts
    with home.open(database) as one, home.open(database) as other:
        idle, busy = make_session(one), make_session(other)
        busy.serve([ask(*range(6))])
        idle.serve([ask(0)])
        server.copy("lagging")
        busy.serve([ask(*range(6, 26))])
        server.exchange("lagging")
        refuses(idle, 6)
        refuses(busy, 30)
        with pytest.raises(LedgerConflict, match="older copy"):
            home.open(database)
        server.exchange("lagging")  # the right one is back
        ((release,),) = idle.serve([ask(6)])
        assert (release.sequence, release.charge) == (7, 0.0)
        busy.serve([ask(30)])
        check_history(one.ledger)


@pytest.mark.parametrize("how", ["kept up", "anchored"])
def test_two_hosts(hosts, server, database, tmp_path, how):
    """Hosts with a copy of the artifact each notice it by what they saw meanwhile, or by an anchor they share."""
    first, second = hosts
    anchor = str(tmp_path / "anchor") if how == "anchored" else None
    with first.open(database, anchor) as one, second.open(database, anchor) as other:
        idle, busy = make_session(one), make_session(other)
        busy.serve([ask(*range(6))])
        idle.serve([ask(0)])
        server.copy("lagging")
        busy.serve([ask(*range(6, 26))])
        if how == "kept up":
            one.keep_up()
        server.exchange("lagging")
        refuses(idle, 6)
        refuses(busy, 30)
        server.exchange("lagging")
        idle.serve([ask(30)])
        busy.serve([ask(31)])


def test_a_promoted_standby_is_another_server(hosts, server, database, tmp_path):
    """A failover is refused even where nothing is missing, which only its owner, or an anchor, can tell."""
    first, second = hosts
    anchor = str(tmp_path / "anchor")
    serve_at(first, 1, 2, url=database)
    with second.open(database) as kept:
        session = make_session(kept)
        session.serve([ask(3)])
        server.copy("standby")
        server.exchange("standby", promote=True)
        with pytest.raises(LedgerConflict, match="exchanged while it was in use"):
            session.serve([ask(4)])
    with pytest.raises(LedgerConflict, match=r"may be a copy of it.*timeline"):
        first.open(database)
    assert first.moved(database, anchor, None).sequence == 3
    with first.open(database, anchor) as there:
        session = make_session(there)
        session.serve([ask(4)])
        server.copy("standby again")
        server.exchange("standby again", promote=True)
        session.serve([ask(5)])  # the anchor says that nothing is missing
        check_history(there.ledger)


def test_commits_are_synchronous_whatever_the_server_says(hosts, server, database):
    """Not even a session whose settings were reset, as by a connection pooler, commits without waiting."""
    home, _ = hosts
    with psycopg.connect(database, autocommit=True) as connection:
        name = connection.execute("SELECT current_database()").fetchone()[0]
        connection.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')
    with home.open(database) as ledger, ledger.ledger._connections.turn() as writer:
        assert writer.run("SHOW synchronous_commit") == [("on",)]
        writer.run("ROLLBACK")
        writer.run("RESET ALL")
        assert writer.run("SHOW synchronous_commit") == [("off",)]
        writer.begin()
        assert writer.run("SHOW synchronous_commit") == [("on",)]


def test_a_cloned_server(hosts, server, database):
    """A copy of the data on another server has all its numbers, but is reached by another URL; saying so takes it."""
    first, second = hosts
    serve_at(first, 1, url=database)
    name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
    with server.clone() as clone:
        with pytest.raises(LedgerConflict, match="may be a copy of it"):
            serve_at(second, 2, url=clone.url(name))
        second.moved(clone.url(name), None, None)
        serve_at(second, 2, url=clone.url(name))
