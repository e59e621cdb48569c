"""The SQLite ledger: what survives, what is refused, and that it works again when the cause is gone."""

import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from datetime import UTC, datetime

import numpy as np
import pytest
from ledger_contract import DELICATE, asked_entry, entries_from, same_entry, same_state, state_at
from small_deployment import DEPLOYMENT, KEY, ask, check_history, digest_of, make_session

from pacpredict.exceptions import (
    ForeignLedger,
    LedgerConflict,
    LedgerDamaged,
    LedgerError,
    LedgerUnavailable,
)
from pacpredict.ledger.sqlite import SqliteLedger
from pacpredict.mechanism.ledger import Answer, State


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path):
    with SqliteLedger(path, deployment=DEPLOYMENT, key=KEY) as ledger:
        yield ledger


@pytest.fixture
def served(ledger):
    """A ledger with three releases of a session."""
    make_session(ledger).serve([ask(1, 2, 3)])
    return ledger


def sql(path, *statements):
    """Meddle with a ledger that nobody has open."""
    with sqlite3.connect(path) as connection:
        found = [connection.execute(statement).fetchall() for statement in statements]
    connection.close()
    return found[-1]


# --- what is kept ------------------------------------------------------------------------------------------


def test_everything_survives_the_process(path):
    """Entries, state, answers and ids are read back from the file bit for bit."""
    entries = [*entries_from(1, 3), asked_entry(4)]
    state = State(4, 2, 4, DELICATE.copy(), 1 / 3, DEPLOYMENT, digest_of(1))
    with SqliteLedger(path, deployment=DEPLOYMENT, key=KEY) as ledger:
        ledger.commit([], State(0, 0, 0, DELICATE.copy(), deployment=DEPLOYMENT))
        ledger.commit(entries, state)
    with SqliteLedger(path, deployment=DEPLOYMENT, create=False, key=KEY) as ledger:
        loaded = ledger.load()
        assert same_state(loaded, state)
        assert (loaded.step, loaded.deployment, loaded.origin) == (1 / 3, DEPLOYMENT, digest_of(1))
        assert all(map(same_entry, list(ledger.entries()), entries))
        assert ledger.recall([entries[3].digest]) == {
            entries[3].digest: Answer(4, 1, entries[3].charged_steps)
        }
        assert ledger.request(entries[3].request) == entries[3].asked


def test_records_say_when(served):
    """Each record has the time of its commit, in UTC."""
    times = {record.time for record in served.records()}
    assert len(times) == 1
    age = datetime.now(UTC) - datetime.fromisoformat(times.pop())
    assert 0 <= age.total_seconds() < 60


def test_other_processes_see_a_commit_at_once(served, path):
    """A second ledger on the same file, as another process has it, continues the history, and so does the first."""
    first = make_session(served)
    with SqliteLedger(path, deployment=DEPLOYMENT, key=KEY) as other:
        second = make_session(other)
        ((again,),) = second.serve([ask(2)])
        assert (again.sequence, again.charge) == (2, 0.0)
        for session in (second, first, second, second, first):
            state = session.snapshot()
            session.serve([ask(state.sequence + 1)])
        assert same_state(first.snapshot(), second.snapshot())
        assert other.id == served.id
    assert len(check_history(served)) == 8


def test_files_are_private(served, path):
    """The ledger and the files beside it can be read by their owner only."""
    served.load()
    modes = {file.name: oct(file.stat().st_mode & 0o777) for file in path.parent.iterdir()}
    assert modes == {path.name + suffix: "0o600" for suffix in ("", "-wal", "-shm")}


def test_commits_are_synced(served):
    """The database waits for the disk at every commit."""
    with served._connections.turn() as writer:
        assert writer.run("PRAGMA journal_mode") == [("wal",)]
        assert writer.run("PRAGMA synchronous") == [(2,)]


def test_it_prints_where_it_is(served, path):
    """The text of a ledger tells its place, and nothing of what is in it."""
    assert repr(served) == f"SqliteLedger({str(path)!r})"
    record = next(served.records())
    assert "votes" not in repr(record)
    assert "array" not in repr(record)


def test_paths_may_contain_anything(tmp_path):
    """Characters that mean something in an address are part of the name."""
    path = tmp_path / "a ledger?mode=ro#100%.sqlite"
    with SqliteLedger(path, key=KEY) as ledger:
        ledger.commit([], state_at(0))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


# --- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mine", [None, "artifact-2"])
def test_ledgers_of_another_deployment_are_refused(served, path, mine):
    """A ledger is opened for the deployment that it was made for, and takes no state of another."""
    with pytest.raises(ForeignLedger, match=DEPLOYMENT):
        SqliteLedger(path, deployment=mine, key=KEY)
    with pytest.raises(ForeignLedger):
        served.commit([], State(3, 0, served.load().spent_steps, DELICATE.copy(), deployment=mine))


def test_a_missing_ledger_is_not_made_up(path):
    """Where a ledger must be, its absence is said and nothing is created."""
    with pytest.raises(LedgerUnavailable, match="there is no ledger"):
        SqliteLedger(path, create=False, key=KEY)
    assert not path.exists()


def test_no_place_for_a_ledger(tmp_path):
    """A directory that is not there is named, and so is one in the place of a ledger."""
    with pytest.raises(LedgerUnavailable, match="no ledger can be made"):
        SqliteLedger(tmp_path / "nowhere" / "ledger.sqlite", key=KEY)
    with pytest.raises(LedgerUnavailable):
        SqliteLedger(tmp_path, key=KEY)


def no_database(path):
    path.write_bytes(b"a letter to the editor " * 1000)


def nothing(path):
    path.write_bytes(b"")


def another_database(path):
    path.unlink()
    sql(path, "CREATE TABLE letters (text)")


def half(path):
    os.truncate(path, path.stat().st_size // 2)


def header_only(path):
    os.truncate(path, 100)


def garbage_inside(path):
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))


def last_record_gone(path):
    sql(path, "DELETE FROM records WHERE sequence = 3")


def all_records_gone(path):
    sql(path, "DELETE FROM records")


def state_gone(path):
    sql(path, "DELETE FROM state")


def older_state(path):
    sql(path, "UPDATE state SET sequence = 2")


def other_chain(path):
    sql(path, "UPDATE state SET chain = zeroblob(32)")


def no_version(path):
    sql(path, "DELETE FROM schema_version")


DAMAGES = [
    *(no_database, nothing, another_database, half, header_only, garbage_inside),
    *(last_record_gone, all_records_gone, state_gone, older_state, other_chain, no_version),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_ledgers_are_refused(served, path, damage):
    """What is no ledger, or no longer one, is not opened, and the error says to restore it."""
    served.close()
    damage(path)
    with pytest.raises(LedgerDamaged, match=r"[Rr]estore"):
        SqliteLedger(path, deployment=DEPLOYMENT, key=KEY)


def test_damaged_numbers_are_named(served, path):
    """A record whose numbers were cut is refused with its number."""
    served.close()
    sql(path, "UPDATE records SET noisy = x'00' WHERE sequence = 2")
    with (
        SqliteLedger(path, deployment=DEPLOYMENT, key=KEY) as ledger,
        pytest.raises(LedgerDamaged, match="record 2"),
    ):
        list(ledger.entries())


def test_moved_ledgers_give_no_turns(served, path):
    """A ledger that was continued elsewhere says where, also to whoever has it open, and can still be read."""
    session = make_session(served)
    with served.exclusively() as (writer, head):
        served.write_head(writer, head._replace(moved_to="postgresql://db/ledger"))
        writer.commit()
    with pytest.raises(LedgerConflict, match="continued at postgresql://db/ledger"):
        session.serve([ask(4)])
    assert len(list(served.records())) == 3


# --- what passes -------------------------------------------------------------------------------------------


def resumes(session, number):
    """Check that a session answers again, and that its history is whole."""
    session.serve([ask(number)])
    check_history(session._ledger)


def test_a_ledger_that_disappears_and_comes_back(served, path):
    """No release goes into a deleted file; when the file is back, service resumes."""
    session = make_session(served)
    hidden = [(file, file.with_name("hidden-" + file.name)) for file in path.parent.iterdir()]
    for file, elsewhere in hidden:
        file.rename(elsewhere)
    for read in (lambda: session.serve([ask(4)]), served.load, lambda: served.recall([digest_of(1)])):
        with pytest.raises(LedgerUnavailable, match="there is no ledger"):
            read()
    for file, elsewhere in hidden:
        elsewhere.rename(file)
    resumes(session, 4)


def test_an_older_copy_in_its_place(served, path, tmp_path):
    """A running session notices that its ledger was replaced by a backup."""
    session = make_session(served)
    served.close()
    shutil.copy(path, tmp_path / "backup")
    with SqliteLedger(path, deployment=DEPLOYMENT, key=KEY) as ledger:
        session = make_session(ledger)
        session.serve([ask(4)])
        (tmp_path / "backup").replace(path)
        for beside in ("-wal", "-shm"):
            path.with_name(path.name + beside).unlink()
        with pytest.raises(LedgerConflict, match="exchanged while it was in use"):
            session.serve([ask(5)])


def test_another_ledger_in_its_place(served, path, tmp_path):
    """Another ledger of the same deployment is another history."""
    session = make_session(served)
    with SqliteLedger(tmp_path / "other", deployment=DEPLOYMENT, key=KEY) as other:
        make_session(other).serve([ask(*range(10))])
    (tmp_path / "other").replace(path)
    for beside in ("-wal", "-shm"):
        path.with_name(path.name + beside).unlink(missing_ok=True)
    with pytest.raises(ForeignLedger, match="another ledger than before"):
        session.serve([ask(4)])


def test_a_lock_that_is_held_too_long(served, path):
    """A turn that another process does not end is given up, and the next one works when it has ended."""
    with SqliteLedger(path, deployment=DEPLOYMENT, patience_s=0.05, key=KEY) as impatient:
        session = make_session(impatient)
        with served.turn():
            with pytest.raises(LedgerUnavailable, match="locked by another process"):
                session.serve([ask(4)])
            assert impatient.recall([digest_of(1)])[digest_of(1)].sequence == 1
        resumes(session, 4)


def test_a_full_disk(served):
    """When the database cannot grow nothing is released; when there is space again, service resumes."""
    session = make_session(served)
    with served._connections.turn() as writer:
        ((pages,),) = writer.run("PRAGMA page_count")
        writer.run(f"PRAGMA max_page_count = {pages}")
        connection = writer
    with pytest.raises(LedgerUnavailable, match="disk is full"):
        session.serve([ask(*range(4, 400))])
    assert served.load().sequence == 3
    assert served._connections._writer is not connection
    resumes(session, 4)


def test_a_disk_that_can_only_be_read(served):
    """A ledger that cannot be written releases nothing, and says what to check."""
    session = make_session(served)
    with served._connections.turn() as writer:
        writer.run("PRAGMA query_only = 1")
    with pytest.raises(LedgerUnavailable, match="mounted for writing"):
        session.serve([ask(4)])
    resumes(session, 4)


def test_a_file_that_may_not_grow(path):
    """A limit of the operating system, met in the middle of a commit, costs that release and no other."""
    code = f"""
        import resource, signal
        from small_deployment import *
        from pacpredict.exceptions import LedgerUnavailable
        from pacpredict.ledger.sqlite import SqliteLedger
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        ledger = SqliteLedger({str(path)!r}, deployment=DEPLOYMENT, key=KEY)
        session = make_session(ledger)
        session.serve([ask(1)])
        ledger.close()
        ledger = SqliteLedger({str(path)!r}, deployment=DEPLOYMENT, key=KEY)
        session = make_session(ledger)
        size = 40_000
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        try:
            session.serve([ask(*range(2, 2000))])
        except LedgerUnavailable:
            print("refused")
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(session.serve([ask(2)])[0][0].sequence)
        check_history(ledger)
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.split() == ["refused", "2"], done.stderr


@pytest.mark.parametrize("point", ["before-insert", "after-insert", "before-commit", "after-commit"])
def test_interrupted_commits_are_whole(path, point):
    """A commit that is interrupted anywhere has happened or not; asking again gives one answer."""
    armed = []

    def stop(here):
        if here == point and armed:
            raise KeyboardInterrupt(armed.pop())

    with SqliteLedger(path, deployment=DEPLOYMENT, at=stop, key=KEY) as ledger:
        session = make_session(ledger)
        armed.append("now")
        with pytest.raises(KeyboardInterrupt):
            session.serve([ask(1, 2, id="x")])
        went_through = ledger.load().sequence == 2
        assert went_through is (point == "after-commit")
        ((first, second),) = session.serve([ask(1, 2, id="x")])
        assert (first.sequence, second.sequence) == (1, 2)
        assert (first.charge == 0.0) is went_through
        check_history(ledger)


def test_closed_ledgers_say_so(ledger):
    """After closing, nothing is read or written."""
    ledger.close()
    for use in (ledger.load, lambda: ledger.commit([], state_at(0))):
        with pytest.raises(LedgerError, match="closed"):
            use()


def test_forked_ledgers_say_so(served):
    """A child process does not use the connections of its parent."""
    served._connections._process += 1
    with pytest.raises(LedgerError, match="fork"):
        served.load()


def test_votes_of_any_byte_order_are_the_same_record(tmp_path):
    """What is stored and hashed does not depend on how the arrays lay in memory."""
    chains = []
    for order in "<>":
        with SqliteLedger(tmp_path / ("little" if order == "<" else "big"), key=KEY) as ledger:
            entry = asked_entry(1)
            odd = entry._replace(
                question=entry.question.astype(f"{order}i2"), noisy=entry.noisy.astype(f"{order}f8")
            )
            ledger.commit([], state_at(0))
            ledger.commit([odd], state_at(1))
            (kept,) = ledger.entries()
            assert same_entry(kept, entry)
            (record,) = ledger.records()
            chains.append(record._replace(time="", chain=b""))
    assert np.array_equal(chains[0].entry.noisy, chains[1].entry.noisy)
