"""The PostgreSQL ledger: what survives, what is refused, and that it works again when the cause is gone."""

import threading
import time
import traceback

import psycopg
import pytest
from ledger_contract import DELICATE, asked_entry, entries_from, same_entry, same_state
from racing import race
from small_deployment import DEPLOYMENT, KEY, ask, check_history, digest_of, make_session

from pacpredict.exceptions import (
    ForeignLedger,
    InvalidInput,
    LedgerConflict,
    LedgerDamaged,
    LedgerUnavailable,
)
from pacpredict.ledger.postgres import PostgresConnection, PostgresLedger, describe_url
from pacpredict.ledger.postgres_anchor import PostgresAnchor
from pacpredict.ledger.witness import Sighting
from pacpredict.mechanism.ledger import Answer, State


@pytest.fixture
def ledger(url):
    with PostgresLedger(url, deployment=DEPLOYMENT, key=KEY) as ledger:
        yield ledger


@pytest.fixture
def served(ledger):
    """A ledger with three releases of a session."""
    make_session(ledger).serve([ask(1, 2, 3)])
    return ledger


def sql(url, *statements):
    """Meddle with a ledger, or with its server."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursors = [connection.execute(statement) for statement in statements]
        return cursors[-1].fetchall() if cursors[-1].description else None


def test_everything_survives_the_process(url):
    """Entries, state, answers and ids are read back from the database bit for bit."""
    entries = [*entries_from(1, 3), asked_entry(4)]
    state = State(4, 2, 4, DELICATE.copy(), 1 / 3, DEPLOYMENT, digest_of(1))
    with PostgresLedger(url, deployment=DEPLOYMENT, key=KEY) as ledger:
        ledger.commit([], State(0, 0, 0, DELICATE.copy(), deployment=DEPLOYMENT))
        ledger.commit(entries, state)
    with PostgresLedger(url, deployment=DEPLOYMENT, create=False, key=KEY) as ledger:
        loaded = ledger.load()
        assert same_state(loaded, state)
        assert (loaded.step, loaded.deployment, loaded.origin) == (1 / 3, DEPLOYMENT, digest_of(1))
        assert all(map(same_entry, list(ledger.entries()), entries))
        assert ledger.recall([entries[3].digest]) == {
            entries[3].digest: Answer(4, 1, entries[3].charged_steps)
        }
        assert ledger.request(entries[3].request) == entries[3].asked


def test_hosts_share_one_history(url, served):
    """Sessions with connections of their own continue each other's history."""
    first = make_session(served)
    with PostgresLedger(url, deployment=DEPLOYMENT, key=KEY) as other:
        second = make_session(other)
        ((again,),) = second.serve([ask(2)])
        assert (again.sequence, again.charge) == (2, 0.0)
        for session in (second, first, second, second, first):
            session.serve([ask(session.snapshot().sequence + 1)])
        assert same_state(first.snapshot(), second.snapshot())
    assert len(check_history(served)) == 8


def test_threads_share_a_ledger(url):
    """Threads on one ledger and on several: no gap, no query answered twice, exact spending."""
    ledgers = [PostgresLedger(url, deployment=DEPLOYMENT, key=KEY) for _ in range(3)]
    sessions = [make_session(ledgers[i % 3]) for i in range(6)]
    answers = []

    def work(thread):
        for i in range(15):
            numbers = [(7 * thread + i) % 40, i]
            (result,) = sessions[thread].serve([ask(*numbers)])
            answers.extend(zip(numbers, result, strict=True))

    race(work, 6)
    assert len(answers) == 6 * 15 * 2
    recorded = {record.entry.digest: record.entry for record in check_history(ledgers[0])}
    for number, release in answers:
        entry = recorded[digest_of(number)]
        assert (release.sequence, release.label) == (entry.sequence, entry.label)
    for ledger in ledgers:
        ledger.close()


def test_a_ledger_is_created_once(url):
    """Of hosts that start at the same moment one creates the tables, and all use them."""
    opened = []
    race(lambda _: opened.append(PostgresLedger(url, deployment=DEPLOYMENT, key=KEY)), 5)
    assert len({ledger.id for ledger in opened}) == 1
    assert len(opened) == 5
    for ledger in opened:
        ledger.close()


# --- what is refused ---------------------------------------------------------------------------------------


def test_a_missing_ledger_is_not_made_up(url):
    """Where a ledger must be, its absence is said and nothing is created."""
    with pytest.raises(LedgerUnavailable, match="there is no ledger"):
        PostgresLedger(url, create=False, key=KEY)
    assert sql(url, "SELECT to_regclass('state')") == [(None,)]


@pytest.mark.parametrize("mine", [None, "artifact-2"])
def test_ledgers_of_another_deployment_are_refused(url, served, mine):
    """A ledger is opened for the deployment that it was made for."""
    with pytest.raises(ForeignLedger, match=DEPLOYMENT):
        PostgresLedger(url, deployment=mine, key=KEY)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM records WHERE sequence = 3",
        "DELETE FROM records",
        "DELETE FROM state",
        "UPDATE state SET sequence = 2",
        "DROP TABLE records",
        "DELETE FROM schema_version",
    ],
)
def test_damaged_ledgers_are_refused(url, served, damage):
    """What is no longer a ledger is not opened, and the error says to restore it."""
    sql(url, damage)
    with pytest.raises(LedgerDamaged, match=r"[Rr]estore"):
        PostgresLedger(url, deployment=DEPLOYMENT, key=KEY)


def test_moved_ledgers_give_no_turns(url, served):
    """A ledger that was continued elsewhere says where, also to whoever has it open."""
    session = make_session(served)
    with served.exclusively() as (writer, head):
        served.write_head(writer, head._replace(moved_to="elsewhere"))
        writer.commit()
    with pytest.raises(LedgerConflict, match="continued at elsewhere"):
        session.serve([ask(4)])


@pytest.mark.parametrize("url", ["postgresql://u:hush@127.0.0.1:1/x", "postgresql://u:hush@/x?host=/nowhere"])
def test_nobody_answers(url):
    """A database that is not there is unavailable, and the password is in no text."""
    with pytest.raises(LedgerUnavailable) as refusal:
        PostgresLedger(url, patience_s=1, key=KEY)
    assert "hush" not in "".join(traceback.format_exception(refusal.value))


@pytest.mark.parametrize("url", ["mysql://u@h/d", "postgresql://u@h:port/d?nonsense=1", "host"])
def test_other_addresses_are_refused(url):
    """What is no address of a PostgreSQL database is said to be none."""
    with pytest.raises(InvalidInput, match="postgresql://"):
        PostgresLedger(url, key=KEY)


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("postgresql://ann:hush@db.example:5433/pac", "postgresql://ann@db.example:5433/pac"),
        ("postgres://db.example/pac?password=hush", "postgresql://db.example/pac"),
        ("postgresql:///pac", "postgresql://localhost/pac"),
        ("host=db user=ann password=hush dbname=pac", "postgresql://ann@db/pac"),
    ],
)
def test_locations_have_no_password(url, location):
    """What is printed, logged and remembered gives no access."""
    assert describe_url(url) == location


def change_setting(url, statement):
    """Change a setting of the server, as its administrator does, and wait until a session sees it."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)
        connection.execute("SELECT pg_reload_conf()")
        deadline = time.monotonic() + 10
        wanted = "off" if statement.endswith("off") else "on"
        while connection.execute(f"SHOW {statement.split()[3]}").fetchone() != (wanted,):
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_databases_that_may_forget_are_refused(url, monkeypatch, setting):
    """A server that does not sync its log gets no ledger, and no further answer once its settings are changed so."""
    monkeypatch.setattr("pacpredict.ledger.sql._INQUIRY_S", 0.2)
    with PostgresLedger(url, key=KEY, deployment=DEPLOYMENT) as ledger:
        session = make_session(ledger)
        session.serve([ask(1)])
        ledger.keep_up()
        change_setting(url, f"ALTER SYSTEM SET {setting} = off")
        try:
            with pytest.raises(LedgerUnavailable, match=setting):
                ledger.keep_up()
            for _ in range(2):
                with pytest.raises(LedgerUnavailable, match=setting):
                    session.serve([ask(2)])
            with pytest.raises(LedgerUnavailable, match=setting):
                PostgresLedger(url, key=KEY, deployment=DEPLOYMENT)
            with pytest.raises(LedgerUnavailable, match=setting):
                PostgresAnchor(url, ledger.id).replace(Sighting(ledger.id, "postgresql", "", "", 1, "00"))
        finally:
            change_setting(url, f"ALTER SYSTEM RESET {setting}")
        assert ledger.load().sequence == 1
        ((release,),) = session.serve([ask(2)])
        assert release.sequence == 2


def test_errors_do_not_quote_records(served):
    """The server's own error quotes the row that it refuses; ours does not, nor what it was caused by."""
    entry = asked_entry(4)._replace(digest=digest_of(1))
    spent = served.load().spent_steps + 1
    with pytest.raises(LedgerConflict) as refusal:
        served.commit([entry], State(4, 1, spent, DELICATE.copy(), deployment=DEPLOYMENT))
    text = "".join(traceback.format_exception(refusal.value))
    assert digest_of(1).hex() not in text
    assert "Failing row" not in text
    assert "Key (" not in text


# --- what passes -------------------------------------------------------------------------------------------

END_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE pid <> pg_backend_pid() AND datname = current_database()"
)


def resumes(session, number):
    """Check that a session answers again, and that its history is whole."""
    session.serve([ask(number)])
    check_history(session._ledger)


def test_a_lock_that_is_held_too_long(url, served):
    """A turn that another session does not end is given up, and the next one works when it has ended."""
    with PostgresLedger(url, deployment=DEPLOYMENT, patience_s=0.1, key=KEY) as impatient:
        session = make_session(impatient)
        with served.turn():
            with pytest.raises(LedgerUnavailable, match="locked by another session"):
                session.serve([ask(4)])
            assert impatient.recall([digest_of(1)])[digest_of(1)].sequence == 1
        resumes(session, 4)


def test_idle_connections_that_were_ended(url, served):
    """A server that was started anew meanwhile is noticed before anything is drawn; nobody is refused."""
    session = make_session(served)
    served.load()
    sql(url, END_OTHERS)
    assert served.recall([digest_of(1)])
    resumes(session, 4)


def test_a_connection_that_is_lost_in_a_turn(url, served):
    """Whatever is lost before the commit was not released; the next turn has a new connection."""
    session = make_session(served)
    points = iter(["before-draw", "after-draw"])
    for point in points:
        session._at = lambda here, point=point: sql(url, END_OTHERS) if here == point else None
        with pytest.raises(LedgerUnavailable):
            session.serve([ask(4)])
        session._at = lambda here: None
        assert served.load().sequence == 3
    resumes(session, 4)


def test_a_read_only_database(url, served):
    """A database that takes no writes releases nothing; when it does again, service resumes."""
    session = make_session(served)
    name = sql(url, "SELECT current_database()")[0][0]
    sql(url, f'ALTER DATABASE "{name}" SET default_transaction_read_only = on', END_OTHERS)
    for _ in range(2):
        with pytest.raises(LedgerUnavailable):
            session.serve([ask(4)])
    sql(
        url,
        "SET default_transaction_read_only = off",
        f'ALTER DATABASE "{name}" SET default_transaction_read_only = off',
        END_OTHERS,
    )
    resumes(session, 4)


class LostOnTheWay(PostgresConnection):
    """A connection that breaks during the next commit: before the server has it, or after."""

    breaks = None

    def commit(self):
        breaks, LostOnTheWay.breaks = LostOnTheWay.breaks, None
        if breaks == "after":
            super().commit()
        if breaks:
            self._postgres.close()
            raise LedgerUnavailable("the connection was lost")
        super().commit()


@pytest.mark.parametrize("breaks", ["before", "after"])
def test_a_connection_that_is_lost_during_a_commit(url, monkeypatch, breaks):
    """If the commit went through the answer is given; if not, nothing was released, and asking again works."""
    monkeypatch.setattr("pacpredict.ledger.postgres.PostgresConnection", LostOnTheWay)
    with PostgresLedger(url, deployment=DEPLOYMENT, key=KEY) as ledger:
        session = make_session(ledger)
        session.serve([ask(1)])
        LostOnTheWay.breaks = breaks
        if breaks == "after":
            ((release,),) = session.serve([ask(2)])
            assert (release.sequence, release.charge > 0) == (2, True)
        else:
            with pytest.raises(LedgerUnavailable, match="lost"):
                session.serve([ask(2)])
        ((release,),) = session.serve([ask(2)])
        assert (release.sequence, release.charge == 0) == (2, breaks == "after")
        check_history(ledger)


def test_a_lost_commit_that_is_still_on_its_way(url, served):
    """The question waits for the answer: a transaction that another connection is about to commit counts."""
    session = make_session(served)
    session.serve([ask(4)])
    chain = served.head().chain
    done = []
    with psycopg.connect(url) as other:
        other.execute("SELECT one FROM state FOR UPDATE")
        other.execute("UPDATE records SET chain = '\\x00' WHERE sequence = 4")
        thread = threading.Thread(target=lambda: done.append(served._is_on_record(4, chain)))
        thread.start()
        thread.join(0.3)
        assert done == []
        other.rollback()
    thread.join(10)
    assert done == [True]
