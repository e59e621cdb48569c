"""An artifact knows its ledger again, and notices one that is missing, older, copied, forked or another."""

import shutil
import sqlite3
from contextlib import closing

import psycopg
import pytest
from small_deployment import DEPLOYMENT, KEY, ask, check_history, found_home, home_at, make_session, serve_at

from pacpredict.exceptions import (
    ForeignLedger,
    InvalidInput,
    LedgerConflict,
    LedgerDamaged,
    LedgerError,
    LedgerUnavailable,
)
from pacpredict.ledger.backup import back_up
from pacpredict.ledger.sql import Link
from pacpredict.ledger.sqlite import SqliteLedger
from pacpredict.ledger.witness import FileWitness


@pytest.fixture
def home(tmp_path):
    return found_home(tmp_path / "a.pac")


def put(source, target):
    """Put a copy of a ledger into the place of another, with what SQLite has beside it."""
    for suffix in ("-wal", "-shm"):
        target.with_name(target.name + suffix).unlink(missing_ok=True)
    shutil.copy(source, target)


def overwrite(source, target):
    """The same without a new file: the content changes, the inode stays."""
    for suffix in ("-wal", "-shm"):
        target.with_name(target.name + suffix).unlink(missing_ok=True)
    target.write_bytes(source.read_bytes())


def test_a_deployment_is_served_again(home):
    """What was begun in one process is continued in the next."""
    serve_at(home, 1, 2)
    serve_at(home, 3)
    with home.open() as ledger:
        records = check_history(ledger.ledger)
        seen = FileWitness(home.witness, KEY).read()
        assert (seen.ledger, seen.kind, seen.location) == (ledger.ledger.id, "sqlite", ledger.ledger.location)
        assert (seen.sequence, seen.chain) == (3, records[-1].chain.hex())
    assert sorted(file.name for file in home.ledger.parent.iterdir()) == ["ledger.sqlite", "witness.jsonl"]


def test_a_missing_ledger_is_not_begun_anew(home):
    """An artifact that was served before is not served with an empty history."""
    serve_at(home, 1, 2)
    home.ledger.unlink()
    with pytest.raises(LedgerUnavailable, match=r"there is no ledger.*was served with.*2 releases"):
        home.open()
    assert not home.ledger.exists()


@pytest.mark.parametrize("bring", [put, overwrite])
def test_an_older_copy_is_refused(home, tmp_path, bring):
    """A backup that has forgotten releases is not continued, however it got there; the latest is."""
    serve_at(home, 1, 2)
    shutil.copy(home.ledger, tmp_path / "old")
    serve_at(home, 3)
    shutil.copy(home.ledger, tmp_path / "new")
    bring(tmp_path / "old", home.ledger)
    with pytest.raises(LedgerConflict, match="older copy"):
        home.open()
    overwrite(tmp_path / "new", home.ledger)
    serve_at(home, 4)


def test_an_answer_is_never_forgotten_by_taking_away_the_log(home):
    """SQLite keeps what is new in a log beside the file; without it the ledger is an older copy."""
    with home.open() as ledger:
        session = make_session(ledger)
        session.serve([ask(*range(100))])
        copied = home.ledger.with_name("copied")
        copied.write_bytes(home.ledger.read_bytes())  # without the log, as a careless backup has it
    overwrite(copied, home.ledger)
    copied.unlink()
    with pytest.raises(LedgerError):
        home.open()


def test_a_copy_that_went_its_own_way_is_refused(home, tmp_path):
    """A copy that has as many releases, but others, is another history."""
    serve_at(home, 1, 2)
    shutil.copy(home.ledger, tmp_path / "copy")
    serve_at(home, 3)
    with SqliteLedger(tmp_path / "copy", deployment=DEPLOYMENT, key=KEY) as other:
        make_session(other).serve([ask(4, 5)])
    overwrite(tmp_path / "copy", home.ledger)
    with pytest.raises(LedgerConflict, match="another history"):
        home.open()


def test_another_ledger_is_refused_and_changes_nothing(home, tmp_path):
    """A ledger of the same deployment that was begun elsewhere is not this artifact's."""
    serve_at(home, 1, 2)
    seen = home.witness.read_bytes()
    with SqliteLedger(tmp_path / "other", deployment=DEPLOYMENT, key=KEY) as other:
        make_session(other).serve([ask(1, 2, 3)])
    overwrite(tmp_path / "other", home.ledger)
    with pytest.raises(ForeignLedger, match="is another"):
        home.open()
    assert home.witness.read_bytes() == seen


def test_a_missing_witness_is_refused(home):
    """Without it nobody knows how far the ledger had come; with the owner's word it goes on, if that is true."""
    serve_at(home, 1, 2)
    home.witness.unlink()
    with pytest.raises(LedgerConflict, match=r"is missing.*ledger moved --sequence"):
        home.open()
    with pytest.raises(LedgerConflict, match="is missing"):
        home.moved(None, None, None)
    with pytest.raises(LedgerConflict, match="3 were shown"):
        home.moved(None, None, 3)
    assert home.moved(None, None, 2).sequence == 2
    serve_at(home, 3)


# --- copies ------------------------------------------------------------------------------------------------


def test_a_copied_artifact_is_refused(home, tmp_path):
    """Of an artifact and its copy only the original answers: each would spend the budget once."""
    serve_at(home, 1, 2)
    shutil.copytree(home.ledger.parent, tmp_path / "copy.pac", copy_function=shutil.copy2)
    copy = home_at(tmp_path / "copy.pac")
    with pytest.raises(LedgerConflict, match="may be a copy"):
        copy.open()
    with pytest.raises(LedgerConflict, match="still at"):
        copy.moved(None, None, None)
    serve_at(home, 3)


def test_a_renamed_artifact_is_the_same(home, tmp_path):
    """A directory that only gets another name, or place on its disk, holds the same file, not a copy."""
    serve_at(home, 1, 2)
    home.ledger.parent.rename(tmp_path / "b.pac")
    moved = home_at(tmp_path / "b.pac")
    serve_at(moved, 3)
    assert "b.pac" in FileWitness(moved.witness, KEY).read().location


def test_an_artifact_on_another_disk(home, tmp_path):
    """Moving it there is a copy and a removal: it goes on once its owner has said so."""
    serve_at(home, 1, 2)
    shutil.copytree(home.ledger.parent, tmp_path / "copy.pac")
    shutil.rmtree(home.ledger.parent)
    moved = home_at(tmp_path / "copy.pac")
    with pytest.raises(LedgerConflict, match="ledger moved"):
        moved.open()
    assert moved.moved(None, None, None).sequence == 2
    serve_at(moved, 3)


def test_an_older_copy_does_not_move(home, tmp_path):
    """The owner's word does not make a ledger complete that the witness has seen farther."""
    serve_at(home, 1, 2)
    shutil.copy(home.ledger, tmp_path / "old")
    serve_at(home, 3)
    put(tmp_path / "old", home.ledger)
    with pytest.raises(LedgerConflict, match="older copy"):
        home.moved(None, None, None)


# --- backup ------------------------------------------------------------------------------------------------


def backed_up(home, path):
    with home.open() as ledger:
        return back_up(ledger.ledger, path)


def test_a_backup_is_whole_and_closed(home, tmp_path):
    """It has every release, also those that are still in the log, and cannot be continued by accident."""
    with home.open() as ledger:
        make_session(ledger).serve([ask(*range(700))])
        link = back_up(ledger.ledger, tmp_path / "backup")
        make_session(ledger).serve([ask(1000)])
    assert link.sequence == 700
    with SqliteLedger(tmp_path / "backup", deployment=DEPLOYMENT, key=KEY, create=False) as kept:
        assert len(check_history(kept)) == 700
        with pytest.raises(LedgerConflict, match="continued at"), kept.turn():
            pass
    with pytest.raises(InvalidInput, match="never replaces"):
        backed_up(home, tmp_path / "backup")


def test_a_lost_ledger_comes_back(home, tmp_path):
    """The latest backup restores a ledger that is gone or damaged; the same history goes on."""
    (first, *_) = serve_at(home, 1, 2)
    backed_up(home, tmp_path / "backup")
    with pytest.raises(InvalidInput, match="nothing to restore"):
        home.restore(tmp_path / "backup", None, None)
    for damage in (home.ledger.unlink, lambda: home.ledger.write_bytes(b"no database" * 1000)):
        damage()
        assert home.restore(tmp_path / "backup", None, None).sequence == 2
        (again,) = serve_at(home, 1)
        assert again[:2] == first[:2]
    serve_at(home, 3)


def test_an_old_backup_does_not_come_back(home, tmp_path):
    """What it lacks was released all the same."""
    serve_at(home, 1, 2)
    backed_up(home, tmp_path / "backup")
    serve_at(home, 3)
    home.ledger.unlink()
    with pytest.raises(LedgerConflict, match="3 were shown"):
        home.restore(tmp_path / "backup", None, None)
    home.witness.unlink()
    with pytest.raises(LedgerConflict, match="is missing"):
        home.restore(tmp_path / "backup", None, None)
    with pytest.raises(LedgerConflict, match="3 were shown"):
        home.restore(tmp_path / "backup", None, 3)


# --- the anchor --------------------------------------------------------------------------------------------


@pytest.fixture(params=["file", "postgresql"])
def anchor(request, tmp_path):
    return str(tmp_path / "anchor") if request.param == "file" else request.getfixturevalue("url")


def test_artifact_and_ledger_restored_together(home, tmp_path, anchor):
    """Only an anchor notices that everything in the artifact's directory is old, the witness included."""
    serve_at(home, 1, 2, anchor=anchor)
    shutil.copytree(home.ledger.parent, tmp_path / "backup")
    serve_at(home, 3, anchor=anchor)
    for name in ("ledger.sqlite", "witness.jsonl"):
        overwrite(tmp_path / "backup" / name, home.ledger.parent / name)
    with pytest.raises(LedgerConflict, match="older copy"):
        home.open(anchor=anchor)
    with pytest.raises(LedgerConflict, match="has an anchor"):
        home.open()
    with pytest.raises(LedgerConflict, match="has its anchor at"):
        home.open(anchor=str(tmp_path / "another"))


def test_a_fork_is_stopped_by_the_anchor(home, tmp_path, anchor):
    """A session on an older copy that was open before gives no answer that the anchor's history lacks."""
    serve_at(home, 1, anchor=anchor)
    with home.open(anchor=anchor) as ledger:
        session = make_session(ledger)
        session.serve([ask(2)])
        far = ledger._witnesses[1]
        seen = far.read()
        far.replace(seen.at(type(seen.link)(9, b"\7" * 32)))  # another server has gone farther, from a copy
        with pytest.raises(LedgerConflict):
            session.serve([ask(3)])


MEDDLED_ANCHORS = {
    "swallowed": (
        "CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
        "CREATE TRIGGER swallow BEFORE INSERT OR UPDATE ON pacpredict_anchors FOR EACH ROW EXECUTE FUNCTION swallow()",
    ),
    "a rule": ("CREATE RULE swallow AS ON DELETE TO pacpredict_anchors DO INSTEAD NOTHING",),
    "emptied by a crash": ("ALTER TABLE pacpredict_anchors SET UNLOGGED",),
    "taken away": ("DELETE FROM pacpredict_anchors",),
    "gone": ("DROP TABLE pacpredict_anchors",),
    "no chain": ("UPDATE pacpredict_anchors SET chain = 'none', sequence = 99",),
    "no number": (
        "ALTER TABLE pacpredict_anchors ALTER sequence DROP NOT NULL",
        "UPDATE pacpredict_anchors SET sequence = NULL",
    ),
}


@pytest.mark.parametrize("how", MEDDLED_ANCHORS)
def test_an_anchor_that_does_not_keep_what_it_is_told(home, url, how):
    """No answer leaves that an anchor in PostgreSQL has only seemed to note, or would forget."""
    serve_at(home, 1, anchor=url)
    with home.open(anchor=url) as ledger:
        session = make_session(ledger)
        session.serve([ask(2)])
        with psycopg.connect(url, autocommit=True) as database:
            for statement in MEDDLED_ANCHORS[how]:
                database.execute(statement)
        for _ in range(2):
            with pytest.raises(LedgerError):
                session.serve([ask(3)])
            with pytest.raises(LedgerError):
                ledger.keep_up()


def test_a_witness_that_keeps_nothing(home, tmp_path, monkeypatch):
    """What a witness says is on record is compared with what it was told."""
    anchor = str(tmp_path / "anchor")
    with home.open(anchor=anchor) as ledger:
        session, far = make_session(ledger), ledger._witnesses[1]
        session.serve([ask(1)])
        seen = far.read()
        monkeypatch.setattr(far, "advance", lambda _: seen)
        with pytest.raises(LedgerUnavailable, match="does not keep"):
            session.serve([ask(2)])


def test_answers_stop_when_the_anchor_is_away(home, tmp_path):
    """An anchor that cannot be reached is noticed before an answer leaves."""
    anchor = tmp_path / "disk" / "anchor"
    anchor.parent.mkdir()
    with home.open(anchor=str(anchor)) as ledger:
        session = make_session(ledger)
        session.serve([ask(1)])
        anchor.rename(tmp_path / "elsewhere")
        with pytest.raises(LedgerError):
            session.serve([ask(2)])
        (tmp_path / "elsewhere").rename(anchor)
        session.serve([ask(2)])


# --- what somebody can do who may write to the database, but lacks the key ---------------------------------

MEDDLING = {
    "spending": "UPDATE state SET spent_steps = 0",
    "belief": "UPDATE state SET log_belief = zeroblob(64)",
    "swapped belief": "UPDATE state SET log_belief = CAST(substr(log_belief, 9, 8) || substr(log_belief, 1, 8) || "
    "substr(log_belief, 17) AS BLOB)",
    "total": "UPDATE state SET total = 1e6",
    "deployment": "UPDATE state SET deployment = 'other'",
    "secret": "UPDATE state SET secret = zeroblob(32)",
    "mark": "UPDATE state SET moved_to = NULL, mac = zeroblob(32)",
    "records": "DELETE FROM records WHERE sequence <= 5",
    "a record in the middle": "DELETE FROM records WHERE sequence = 5",
    "the last record": "DELETE FROM records WHERE sequence = 10",
    "mac": "UPDATE state SET mac = NULL",
}


def meddle(home, *statements):
    """Write to the database as somebody does who has no key."""
    database = sqlite3.connect(home.ledger)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()


@pytest.mark.parametrize("statement", MEDDLING.values(), ids=MEDDLING)
def test_a_state_that_was_changed_is_refused(home, statement):
    """Whatever is changed in the state, or taken away from the records, the ledger is not opened."""
    serve_at(home, *range(10))
    meddle(home, statement)
    with pytest.raises((LedgerDamaged, ForeignLedger)):
        home.open()


@pytest.mark.parametrize("statement", [s for s in MEDDLING.values() if "state" in s])
def test_a_running_session_notices(home, statement):
    """The same while a session has it open: nothing more is released."""
    with home.open() as ledger:
        session = make_session(ledger)
        session.serve([ask(*range(10))])
        meddle(home, statement)
        with pytest.raises(LedgerDamaged):
            session.serve([ask(100)])


@pytest.mark.parametrize(
    "change",
    [
        "label = (label + 1) % 4",
        "digest = (SELECT digest FROM records WHERE sequence = 1)",
        "noisy = zeroblob(length(noisy))",
        "chain = zeroblob(32)",
    ],
)
def test_a_repeated_answer_is_checked_when_it_is_read(home, change):
    """A label that was flipped in the database is not given out again, nor is the ledger opened again."""
    with home.open() as ledger:
        session = make_session(ledger)
        session.serve([ask(1, 2, 3, 4)])
        meddle(home, "DROP INDEX records_by_digest", f"UPDATE records SET {change} WHERE sequence = 2")
        asked = ask(1) if "digest" in change else ask(2)
        with pytest.raises(LedgerDamaged, match="record"):
            session.serve([asked])
    with pytest.raises(LedgerDamaged, match="record 2"):
        home.open()


def test_a_request_id_is_checked_when_it_is_read(home):
    """What was asked with an id cannot be exchanged."""
    with home.open() as ledger:
        session = make_session(ledger)
        session.serve([ask(1, 2, id="x")])
        meddle(home, "UPDATE records SET asked = zeroblob(32)")
        with pytest.raises(LedgerDamaged):
            session.serve([ask(1, 3, id="x")])


def test_opening_checks_what_is_new(home):
    """Every record since the last opening is checked; what was checked before is left to `ledger verify`."""
    serve_at(home, *range(5))
    home.open().close()
    serve_at(home, *range(5, 10))
    meddle(home, "UPDATE records SET client = 'x' WHERE sequence = 3")
    home.open().close()
    assert FileWitness(home.witness, KEY).read().verified == 10
    serve_at(home, *range(10, 15))
    meddle(home, "UPDATE records SET client = 'x' WHERE sequence = 13")
    with pytest.raises(LedgerDamaged, match="record 13"):
        home.open()


# --- turned back under open sessions -----------------------------------------------------------------------


def test_two_servers_and_a_file_that_goes_back(home, tmp_path):
    """The idle server does not go on from an older state, whatever it has seen itself."""
    with home.open() as one, home.open() as other:
        idle, busy = make_session(one), make_session(other)
        busy.serve([ask(*range(6))])
        idle.serve([ask(0)])
        with sqlite3.connect(home.ledger) as database, sqlite3.connect(tmp_path / "copy") as copy:
            database.backup(copy)
        copy.close()
        database.close()
        busy.serve([ask(*range(6, 26))])
        with sqlite3.connect(tmp_path / "copy") as copy, sqlite3.connect(home.ledger) as database:
            copy.backup(database)  # in place: the same file, the same inode, an older content
        copy.close()
        database.close()
        for session in (idle, busy):
            for _ in range(2):
                with pytest.raises(LedgerConflict):
                    session.serve([ask(30)])


def test_places_are_files(home):
    """The witness names the file and its directory by their inodes, and the file system."""
    serve_at(home, 1)
    place = FileWitness(home.witness, KEY).read().place
    inodes = home.ledger.stat().st_ino, home.ledger.parent.stat().st_ino
    assert place.startswith("file {} in directory {} on ".format(*inodes))


def test_a_copy_by_hard_link_is_refused(home, tmp_path):
    """It is the same file, but SQLite would keep another log beside it: two histories of one secret."""
    serve_at(home, 1)
    shutil.copytree(
        home.ledger.parent, tmp_path / "copy.pac", ignore=shutil.ignore_patterns("ledger.sqlite*")
    )
    (tmp_path / "copy.pac" / home.ledger.name).hardlink_to(home.ledger)
    with pytest.raises(LedgerConflict, match="may be a copy of it"):
        serve_at(home_at(tmp_path / "copy.pac"), 2)
    serve_at(home, 2)
    # Nor does the owner's word help while both names are there, wherever the original has gone meanwhile.
    with pytest.raises(LedgerConflict, match="by a hard link"):
        home_at(tmp_path / "copy.pac").moved(None, None, None)
    home.ledger.parent.rename(tmp_path / "renamed.pac")
    with pytest.raises(LedgerConflict, match="by a hard link"):
        home_at(tmp_path / "copy.pac").moved(None, None, None)
    shutil.rmtree(tmp_path / "renamed.pac")
    home_at(tmp_path / "copy.pac").moved(None, None, None)
    serve_at(home_at(tmp_path / "copy.pac"), 3)


TRIGGERS = {
    "record": "CREATE TRIGGER lose BEFORE INSERT ON records BEGIN SELECT raise(ignore); END",
    "state": "CREATE TRIGGER lose BEFORE UPDATE ON state BEGIN SELECT raise(ignore); END",
    "last": "CREATE TRIGGER lose AFTER INSERT ON records BEGIN DELETE FROM records WHERE sequence = NEW.sequence; END",
    "change": "CREATE TRIGGER lose AFTER INSERT ON records BEGIN UPDATE records SET chain = x'00'; END",
    "query": "CREATE TRIGGER lose AFTER INSERT ON records BEGIN UPDATE records SET digest = NULL; END",
    "count": "CREATE TRIGGER lose BEFORE UPDATE ON key_use BEGIN SELECT raise(ignore); END",
}


@pytest.mark.parametrize("what", TRIGGERS)
def test_a_database_that_does_not_keep_what_it_gets(home, what):
    """If there is a trigger, which may lose what is written, no answer leaves, and the history is where it was."""
    with home.open() as ledger:
        session = make_session(ledger)
        session.serve([ask(1)])
        with closing(sqlite3.connect(home.ledger)) as database:
            database.execute(TRIGGERS[what])
        with pytest.raises(LedgerError, match="does not keep"):
            session.serve([ask(2)])
        with closing(sqlite3.connect(home.ledger)) as database:
            database.execute("DROP TRIGGER lose")
        ((release,),) = session.serve([ask(2)])
        assert release.sequence == 2


@pytest.mark.parametrize("kind", ["TRIGGER", b"trigger", "trigger\0"])
def test_a_trigger_that_is_called_otherwise(home, kind):
    """A trigger is refused however its kind is written in the file: SQLite obeys all of these."""
    with home.open() as ledger:
        session = make_session(ledger)
        session.serve([ask(1)])
        with closing(sqlite3.connect(home.ledger)) as database, database:
            database.execute(TRIGGERS["query"])
            database.execute("PRAGMA writable_schema = ON")
            database.execute("UPDATE sqlite_master SET type = ? WHERE type = 'trigger'", (kind,))
        with pytest.raises(LedgerError, match="does not keep"):
            session.serve([ask(2)])


# --- what an outsider found --------------------------------------------------------------------------------


def test_a_move_that_is_repeated_forgets_nothing(home, url):
    """Doing a move again does not make the witness believe a database that has gone back since."""
    serve_at(home, 1, 2)
    home.move_to(url)
    serve_at(home, 3, url=url)
    witness = FileWitness(home.witness, KEY)
    seen = witness.read()
    witness.replace(seen.at(Link(9, b"\7" * 32)))  # farther than the database, as after a restore of that
    with pytest.raises(LedgerConflict):
        home.move_to(url)
    assert FileWitness(home.witness, KEY).read().sequence == 9


def test_a_backup_does_not_revive_a_copy(home, tmp_path):
    """Restoring into a copy of an artifact is refused while the original can be used."""
    serve_at(home, 1, 2)
    backed_up(home, tmp_path / "backup")
    shutil.copytree(home.ledger.parent, tmp_path / "copy.pac")
    copy = home_at(tmp_path / "copy.pac")
    copy.ledger.unlink()
    with pytest.raises(LedgerConflict, match="still at"):
        copy.restore(tmp_path / "backup", None, None)


def test_a_backup_does_not_revive_what_went_to_a_database(home, tmp_path, url):
    """Once the history goes on in PostgreSQL, no old file is continued."""
    serve_at(home, 1, 2)
    backed_up(home, tmp_path / "backup")
    home.move_to(url)
    home.ledger.unlink()
    with pytest.raises(LedgerConflict, match="goes on at"):
        home.restore(tmp_path / "backup", None, None)


def test_the_anchor_is_kept_by_every_act(home, tmp_path):
    """Neither `moved` nor `restore` does without an anchor that was used, nor with a new one in its place."""
    anchor = tmp_path / "anchor"
    serve_at(home, 1, 2, anchor=str(anchor))
    backed_up_path = tmp_path / "backup"
    with home.open(anchor=str(anchor)) as ledger:
        back_up(ledger.ledger, backed_up_path)
    with pytest.raises(LedgerConflict, match="has an anchor"):
        home.moved(None, None, None)
    home.moved(None, str(anchor), None)
    home.ledger.unlink()
    with pytest.raises(LedgerConflict, match="has an anchor"):
        home.restore(backed_up_path, None, None)
    home.restore(backed_up_path, str(anchor), None)
    anchor.unlink()
    with pytest.raises(LedgerConflict, match="is gone"):
        home.open(anchor=str(anchor))
    assert not anchor.exists()


def test_odd_names_are_read(tmp_path):
    """A copy is refused also where the name of its original means something in a URL."""
    home = found_home(tmp_path / "a#1?100%.pac")
    serve_at(home, 1)
    shutil.copytree(home.ledger.parent, tmp_path / "copy.pac")
    with pytest.raises(LedgerConflict, match="still at"):
        home_at(tmp_path / "copy.pac").moved(None, None, None)


def test_another_path_to_the_same_artifact(home, tmp_path):
    """Looking at a deployment through a symbolic link does not disturb whoever serves it."""
    (tmp_path / "link.pac").symlink_to(home.ledger.parent)
    with home.open() as ledger:
        session = make_session(ledger)
        session.serve([ask(1)])
        with home_at(tmp_path / "link.pac").open() as other:
            check_history(other.ledger)
        session.serve([ask(2)])
    assert FileWitness(home.witness, KEY).read().sequence == 2


def test_a_log_that_is_deleted_under_a_session(home):
    """Without the log beside the database nothing more is released: it would be lost with the process."""
    with home.open() as ledger:
        session = make_session(ledger)
        session.serve([ask(1)])
        for suffix in ("-wal", "-shm"):
            home.ledger.with_name(home.ledger.name + suffix).unlink()
        with pytest.raises(LedgerError):
            session.serve([ask(2)])


def test_nothing_is_charged_while_the_anchor_is_away(home, tmp_path):
    """At most the first request that meets it is on record; those after it are refused before anything is drawn."""
    anchor = tmp_path / "disk" / "anchor"
    anchor.parent.mkdir()
    with home.open(anchor=str(anchor)) as ledger:
        session = make_session(ledger)
        session.serve([ask(1)])
        anchor.rename(tmp_path / "elsewhere")
        for number in range(2, 8):
            with pytest.raises(LedgerError):
                session.serve([ask(number)])
        assert ledger.load().sequence <= 2


def test_backups_say_where_they_cannot_be(home, tmp_path):
    """A dangling link is no place for a backup, nor is the artifact itself."""
    serve_at(home, 1)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for place in (tmp_path / "link", home.ledger.parent / "backup"):
        with pytest.raises(InvalidInput):
            backed_up(home, place)
    home.open().close()


def test_a_damaged_witness_and_the_owners_word(home):
    """With a number a witness that cannot be read is replaced; a negative number is none."""
    serve_at(home, 1, 2)
    home.witness.write_bytes(b"")
    with pytest.raises(InvalidInput, match="at least 0"):
        home.moved(None, None, -5)
    with pytest.raises(LedgerConflict):
        home.moved(None, None, 3)
    assert home.moved(None, None, 2).sequence == 2
    serve_at(home, 3)


# --- anchors -----------------------------------------------------------------------------------------------


def test_a_look_does_not_begin_to_use_an_anchor(home, tmp_path):
    """An anchor is for good, so only whoever answers begins one; then a look needs it, too."""
    anchor = str(tmp_path / "anchor")
    with pytest.raises(InvalidInput, match="has no anchor yet"):
        home.open(anchor=anchor, to_look=True)
    assert not (tmp_path / "anchor").exists()
    home.open(to_look=True).close()
    home.open(anchor=anchor).close()
    home.open(anchor=anchor, to_look=True).close()
    with pytest.raises(LedgerConflict, match="has an anchor"):
        home.open(to_look=True)


@pytest.mark.parametrize("name", ["witness.jsonl", "anchor", "deep/anchor", "../link/anchor"])
def test_an_anchor_is_not_in_the_artifact(home, tmp_path, name):
    """One that would be turned back with the artifact, such as its own witness, is refused, and nothing is begun."""
    folder = home.ledger.parent
    (folder / "deep").mkdir()
    (tmp_path / "link").symlink_to(folder)
    before = sorted(folder.rglob("*"))
    with pytest.raises(InvalidInput, match="turned back with"):
        home.open(anchor=str(folder / name))
    assert sorted(folder.rglob("*")) == before
    serve_at(home, 1)


def test_an_anchor_is_not_in_the_database_of_the_ledger(home, url):
    """Nor is one taken that a restored database would turn back with the ledger, by whichever URL it is named."""
    serve_at(home, 1)
    otherwise = f"{url}&port=5432"  # what it is without being said
    nowhere = "postgresql://owner@127.0.0.1:1/none"
    for anchor, error in ((url, InvalidInput), (otherwise, InvalidInput), (nowhere, LedgerUnavailable)):
        with pytest.raises(error):
            home.move_to(url, anchor)
    serve_at(home, 5)  # it was not moved half-way
    home.move_to(url)
    for same in (url, otherwise):
        with pytest.raises(InvalidInput, match="turned back with"):
            home.open(url, anchor=same)
    serve_at(home, 2, url=url)


def test_a_lost_anchor_is_replaced_on_the_owners_word(home, tmp_path):
    """Whoever says how many releases were shown may take another anchor; too few releases are refused as ever."""
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    with home.open(anchor=first) as ledger:
        make_session(ledger).serve([ask(1, 2)])
    (tmp_path / "first").unlink()
    for anchor in (first, second, None):
        with pytest.raises(LedgerConflict):
            home.moved(None, anchor, None)
    with pytest.raises(LedgerConflict, match="3 were shown"):
        home.moved(None, second, 3)
    assert home.moved(None, second, 2).sequence == 2
    home.open(anchor=second).close()
    with pytest.raises(LedgerConflict, match="has its anchor at"):
        home.open(anchor=first)


def test_an_anchor_is_not_given_up(home, tmp_path):
    """Whoever says a number may replace an anchor, not drop it; and one that can be read must not know more."""
    anchor, new = tmp_path / "anchor", str(tmp_path / "new")
    serve_at(home, 1, anchor=str(anchor))
    shutil.copytree(home.ledger.parent, tmp_path / "old")
    serve_at(home, 2, anchor=str(anchor))
    with pytest.raises(LedgerConflict, match="has an anchor"):
        home.moved(None, None, 0)
    for file in (tmp_path / "old").iterdir():  # all of it goes back, into the same files
        (home.ledger.parent / file.name).write_bytes(file.read_bytes())
    with pytest.raises(LedgerConflict, match="older copy"):
        home.moved(None, new, 1)
    anchor.unlink()  # now nobody knows better
    home.moved(None, new, 1)
    with pytest.raises(LedgerConflict, match="has an anchor"):
        home.open()
