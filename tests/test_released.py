"""Artifacts and ledgers that released versions made open and go on; they are upgraded in place, once."""

import io
import json
import shutil
import sqlite3

import pandas as pd
import pytest
from released import unpack_released

from pacpredict.artifact.artifact import LEDGER, OLD_WITNESS, WITNESS, Artifact
from pacpredict.deployment import Deployment, home_of
from pacpredict.exceptions import IdConflict, LedgerConflict, LedgerDamaged, LedgerError
from pacpredict.ledger.rekey import rekey
from pacpredict.ledger.sqlite import SqliteLedger
from pacpredict.mechanism.question import request_key


@pytest.fixture
def artifact(tmp_path):
    return unpack_released(tmp_path)


@pytest.fixture
def answered(artifact):
    return pd.read_csv(io.StringIO((artifact.parent / "released.answers.csv").read_text()))


def queries(answered):
    return answered.drop(columns="answer")


def test_it_goes_on(artifact, answered, caplog):
    """Answers that were given are given again, what was spent stays spent, and the upgrade is said, once."""
    with Deployment.open(artifact) as deployment:
        assert "upgraded: its 30 releases" in caplog.text
        before = deployment.privacy()
        assert (before["queries"], before["contested"]) == (30, 28)
        again = deployment.ask(queries(answered))
        assert again.labels.tolist() == answered["answer"].tolist()
        assert [release.charge for release in again.releases] == [0.0] * 30
        other = queries(answered).assign(**{"petal width (cm)": 1.7})
        deployment.ask(other)
        assert deployment.verify().releases == deployment.privacy()["queries"] > 30
    assert not (artifact / OLD_WITNESS).exists()
    assert (artifact / WITNESS).exists()
    caplog.clear()
    with Deployment.open(artifact) as deployment:
        assert deployment.verify().releases > 30
    assert "upgraded" not in caplog.text


def test_request_ids_are_kept(artifact, answered):
    """An id that was used with other questions is refused as before."""
    with Deployment.open(artifact) as deployment:
        used = request_key(None, "request-3")
        assert deployment._ledger.request(used) is not None
        with pytest.raises(IdConflict):
            deployment.ask(queries(answered).assign(colour="red").iloc[:1], request_id="request-3")


def test_the_history_moves_with_the_upgrade(artifact, answered, tmp_path):
    """A saved backup of the released ledger is an older copy for the upgraded artifact."""
    shutil.copy(artifact / LEDGER, tmp_path / "old")
    with Deployment.open(artifact) as deployment:
        deployment.ask(queries(answered).assign(**{"petal width (cm)": 1.7}))
    (artifact / LEDGER).write_bytes((tmp_path / "old").read_bytes())
    with pytest.raises(LedgerConflict, match="older copy"):
        Deployment.open(artifact)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET label = (label + 1) % 3 WHERE sequence = 7",
        "DELETE FROM records WHERE sequence = 7",
        "DELETE FROM records WHERE sequence = 30",
    ],
)
def test_a_changed_history_is_not_upgraded(artifact, statement):
    """The old chain is checked from its first record to its last before it is taken over."""
    with sqlite3.connect(artifact / LEDGER) as database:
        database.execute(statement)
    database.close()
    with pytest.raises(LedgerDamaged, match="not upgraded"):
        Deployment.open(artifact)
    with sqlite3.connect(artifact / LEDGER) as database:
        assert database.execute("SELECT version FROM schema_version").fetchall() == [(1,)]
    database.close()


@pytest.mark.parametrize(
    ("name", "value", "text"), [("sequence", 31, "older copy"), ("chain", "00" * 32, "another history")]
)
def test_the_old_witness_counts(artifact, name, value, text):
    """What the released code had seen, the ledger must hold."""
    witness = json.loads((artifact / OLD_WITNESS).read_text())
    (artifact / OLD_WITNESS).write_text(json.dumps({**witness, name: value}))
    with pytest.raises(LedgerConflict, match=text):
        Deployment.open(artifact)


def test_an_upgrade_that_was_cut_off(artifact, answered):
    """Killed between the upgrade and the note about it, the next opening goes on from there."""
    ledger = home_of(Artifact.open(artifact))._own()  # upgrades, and notes nothing
    ledger.close()
    assert (artifact / OLD_WITNESS).exists()
    with Deployment.open(artifact) as deployment:
        assert deployment.ask(queries(answered)).labels.tolist() == answered["answer"].tolist()


def test_a_killed_upgrade_leaves_the_old_ledger(artifact, monkeypatch):
    """The upgrade is one transaction: all of it or nothing."""
    calls = []

    def stop(run, key):
        rekey(run, key)
        calls.append(run("SELECT count(*) FROM old_chains"))
        raise LedgerError("power cut")

    tables, keyed, *later = SqliteLedger.migrations
    keyed = tuple(stop if step is rekey else step for step in keyed)
    with monkeypatch.context() as patch:
        patch.setattr(SqliteLedger, "migrations", (tables, keyed, *later))
        with pytest.raises(LedgerError, match="power cut"):
            Deployment.open(artifact)
    assert calls == [[(31,)]]  # with the beginning
    with Deployment.open(artifact) as deployment:
        assert deployment.verify().releases == 30
