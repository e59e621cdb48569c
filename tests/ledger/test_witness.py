"""The artifact remembers its ledger."""

import json
import logging
import shutil
from functools import partial

import pytest

from pacpredict.ensemble.artifact import files
from pacpredict.ensemble.artifact.artifact import WITNESS
from pacpredict.exceptions import ForeignLedger, LedgerConflict, LedgerDamaged, LedgerUnavailable
from pacpredict.ledger import witness
from pacpredict.ledger.sqlite import SqliteLedger
from pacpredict.ledger.witness import Witness, open_witnessed
from small_deployment import DEPLOYMENT, ask, check_history, make_session


def connect(path, create):
    return SqliteLedger(path, deployment=DEPLOYMENT, create=create)


def open_it(directory, name="ledger.sqlite"):
    return open_witnessed(directory, partial(connect, directory / name))


def serve(directory, *numbers, name="ledger.sqlite"):
    with open_it(directory, name) as ledger:
        make_session(ledger).serve([ask(*numbers)])


def copy(directory, name="copy"):
    shutil.copy(directory / "ledger.sqlite", directory / name)


def test_an_artifact_is_served_again(tmp_path):
    """What was begun in one process is continued in the next; the file says how far the ledger came."""
    serve(tmp_path, 1, 2)
    serve(tmp_path, 3)
    seen = Witness(tmp_path).read()
    with open_it(tmp_path) as ledger:
        records = check_history(ledger.ledger)
        assert (seen.ledger, seen.kind, seen.location) == (ledger.ledger.id, "sqlite", ledger.ledger.location)
    assert (seen.sequence, seen.chain) == (3, records[-1].chain.hex())
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ledger.sqlite", WITNESS]
    assert (tmp_path / WITNESS).stat().st_mode & 0o777 == 0o600


def test_a_missing_ledger_is_not_begun_anew(tmp_path):
    """An artifact that was served before is not served with an empty history."""
    serve(tmp_path, 1, 2)
    (tmp_path / "ledger.sqlite").unlink()
    with pytest.raises(LedgerUnavailable, match=r"there is no ledger.*was served with.*2 releases"):
        open_it(tmp_path)
    assert not (tmp_path / "ledger.sqlite").exists()


def test_an_older_copy_is_refused(tmp_path):
    """A backup that has forgotten releases is not continued; the latest is."""
    serve(tmp_path, 1, 2)
    copy(tmp_path)
    serve(tmp_path, 3)
    with pytest.raises(LedgerConflict, match="older copy"):
        open_it(tmp_path, "copy")
    serve(tmp_path, 4)


def test_a_copy_that_went_its_own_way_is_refused(tmp_path):
    """A copy that has as many releases, but others, is another history."""
    serve(tmp_path, 1, 2)
    copy(tmp_path)
    serve(tmp_path, 3)
    with connect(tmp_path / "copy", create=False) as other:
        make_session(other).serve([ask(4, 5)])
    with pytest.raises(LedgerConflict, match="another history"):
        open_it(tmp_path, "copy")


def test_another_ledger_is_refused(tmp_path):
    """A ledger of the same deployment that was begun elsewhere is not this artifact's."""
    serve(tmp_path, 1, 2)
    with connect(tmp_path / "other", create=True) as other:
        make_session(other).serve([ask(1, 2, 3)])
    with pytest.raises(ForeignLedger, match="is another"):
        open_it(tmp_path, "other")


def test_another_deployment_is_refused(tmp_path):
    """The artifact's identity is checked by the ledger itself."""
    serve(tmp_path, 1)
    with pytest.raises(ForeignLedger, match=DEPLOYMENT):
        open_witnessed(tmp_path, lambda create: SqliteLedger(tmp_path / "ledger.sqlite", deployment="other"))


def test_an_artifact_may_be_moved(tmp_path):
    """The place of a ledger does not matter, only what it holds."""
    (tmp_path / "here").mkdir()
    serve(tmp_path / "here", 1, 2)
    (tmp_path / "here").rename(tmp_path / "there")
    serve(tmp_path / "there", 3)
    assert "there" in Witness(tmp_path / "there").read().location


def test_refusing_changes_nothing(tmp_path):
    """A refused ledger does not become the one that was seen."""
    serve(tmp_path, 1, 2)
    seen = (tmp_path / WITNESS).read_bytes()
    with connect(tmp_path / "other", create=True) as other:
        make_session(other).serve([ask(1, 2, 3)])
    with pytest.raises(ForeignLedger):
        open_it(tmp_path, "other")
    assert (tmp_path / WITNESS).read_bytes() == seen


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff", b"null"])
def test_a_damaged_witness_is_refused(tmp_path, content):
    """What cannot be read is not taken for an artifact that was never served."""
    serve(tmp_path, 1)
    (tmp_path / WITNESS).write_bytes(content)
    with pytest.raises(LedgerDamaged, match=WITNESS):
        open_it(tmp_path)


@pytest.mark.parametrize(("name", "value"), [("sequence", "many"), ("chain", "no hex"), ("ledger", None)])
def test_damaged_fields_are_refused(tmp_path, name, value):
    """Each field is checked: none is taken as it comes."""
    serve(tmp_path, 1)
    found = json.loads((tmp_path / WITNESS).read_text()) | {name: value}
    (tmp_path / WITNESS).write_text(json.dumps(found))
    with pytest.raises((LedgerDamaged, ForeignLedger)):
        open_it(tmp_path)


def test_it_keeps_up_while_serving(tmp_path, monkeypatch):
    """In between it is written after commits, and not after each: a process that is killed has been seen lately."""
    writes = []
    monkeypatch.setattr(
        witness, "write_whole", lambda path, content, _mode: writes.append(json.loads(content)["sequence"])
    )
    monkeypatch.setattr(witness, "_INTERVAL_S", 0.05)
    with open_it(tmp_path) as ledger:
        session = make_session(ledger)
        number = 0
        while len(writes) < 4:
            number += 1
            session.serve([ask(number)])
    assert writes[0] == 0
    assert writes == sorted(writes)
    assert len(writes) < number
    assert writes[-1] == number


def test_it_is_never_ahead_of_the_ledger(tmp_path, monkeypatch):
    """It is written after the commit; and two processes do not write it backwards."""
    monkeypatch.setattr(witness, "_INTERVAL_S", 0.0)
    with open_it(tmp_path) as first, open_it(tmp_path) as second:
        make_session(first).serve([ask(1)])
        assert Witness(tmp_path).read().sequence == 1
        behind = first.ledger
        make_session(second).serve([ask(2)])
        monkeypatch.setattr(behind, "head", lambda: second.ledger.head()._replace(sequence=1))
        Witness(tmp_path).write(behind)
        assert Witness(tmp_path).read().sequence == 2


def test_a_witness_that_cannot_be_written(tmp_path, monkeypatch, caplog):
    """Nothing is served that could not be remembered; once served, an answer on record is still given."""
    serve(tmp_path, 1)

    def full(path, content, _mode):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(witness, "_INTERVAL_S", 0.0)
    with open_it(tmp_path) as ledger:
        session = make_session(ledger)
        monkeypatch.setattr(witness, "write_whole", full)
        with caplog.at_level(logging.WARNING):
            ((release,),) = session.serve([ask(2)])
        assert release.sequence == 2
        assert "No space left" in caplog.text
    with pytest.raises(LedgerUnavailable, match="No space left"):
        open_it(tmp_path)


def test_files_are_replaced_whole(tmp_path, monkeypatch):
    """A write that fails leaves the old content and no draft; drafts of killed processes are removed."""
    path = tmp_path / WITNESS
    files.write_whole(path, b"old")
    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", lambda handle: (_ for _ in ()).throw(OSError("broken")))
        with pytest.raises(OSError, match="broken"):
            files.write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    (tmp_path / f"{WITNESS}.0123.new").touch()
    files.remove_drafts(path)
    assert [file.name for file in tmp_path.iterdir()] == [WITNESS]
