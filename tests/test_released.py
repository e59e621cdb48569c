"""Artifacts and ledgers that released versions made go on, once their owner has said that they are genuine."""

import io
import json
import shutil
import sqlite3
from contextlib import closing

import pandas as pd
import pytest
from artifacts import fit_small
from released import unpack_released

from pacpredict.artifact.artifact import LEDGER, OLD_WITNESS, WITNESS, Artifact
from pacpredict.cli import main
from pacpredict.deployment import Deployment, home_of, upgrade
from pacpredict.exceptions import IdConflict, InvalidInput, LedgerConflict, LedgerDamaged, LedgerError
from pacpredict.ledger.rekey import rekey
from pacpredict.ledger.sqlite import SqliteLedger
from pacpredict.mechanism.question import request_key


@pytest.fixture
def artifact(tmp_path):
    return unpack_released(tmp_path)


@pytest.fixture
def upgraded(artifact):
    upgrade(Artifact.open(artifact))
    return artifact


@pytest.fixture
def answered(artifact):
    return pd.read_csv(io.StringIO((artifact.parent / "released.answers.csv").read_text()))


def queries(answered):
    return answered.drop(columns="answer")


def test_it_goes_on(artifact, answered, capsys):
    """Answers that were given are given again, and what was spent stays spent; there is one upgrade."""
    assert main(["ledger", "upgrade", str(artifact)]) == 0
    assert "under the key of the artifact now, with 30 releases" in capsys.readouterr().out
    with Deployment.open(artifact) as deployment:
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
    assert main(["ledger", "upgrade", str(artifact)]) == 2
    assert "nothing to upgrade" in capsys.readouterr().err
    with Deployment.open(artifact) as deployment:
        assert deployment.verify().releases > 30


def test_nothing_is_taken_over_without_a_word(artifact, tmp_path):
    """Neither opening, nor moving, nor a number of releases puts under the key what anybody could have made."""
    home, before = home_of(Artifact.open(artifact)), (artifact / LEDGER).read_bytes()
    shutil.copy(artifact / LEDGER, tmp_path / "backup")
    for act in (
        lambda: Deployment.open(artifact),
        lambda: home.moved(None, None, 30),
        lambda: home.restore(tmp_path / "backup", None, 30),
        lambda: home.move_to("postgresql://owner@localhost/nowhere"),
    ):
        with pytest.raises(LedgerConflict, match="ledger upgrade"):
            act()
    (artifact / OLD_WITNESS).unlink()
    with pytest.raises(LedgerConflict, match="is missing"):
        Deployment.open(artifact)
    for act in (
        lambda: home.moved(None, None, 30),
        lambda: home.restore(tmp_path / "backup", None, 30),
    ):
        with pytest.raises(LedgerConflict, match="anybody can forge"):
            act()
    assert (artifact / LEDGER).read_bytes() == before
    with pytest.raises(LedgerConflict, match="upgrade --sequence N"):
        upgrade(Artifact.open(artifact))
    with pytest.raises(LedgerConflict, match="31 were shown"):
        upgrade(Artifact.open(artifact), sequence=31)
    assert upgrade(Artifact.open(artifact), sequence=30).sequence == 30


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE state SET spent_steps = 0",
        "UPDATE state SET contested = 0",
        "UPDATE state SET log_belief = zeroblob(64)",
    ],
)
def test_a_state_that_does_not_follow_is_not_taken_over(artifact, statement):
    """Belief and spending, which no chain of that version ties to the records, are replayed at first."""
    with closing(sqlite3.connect(artifact / LEDGER)) as database:
        database.execute(statement)
        database.commit()
    for _ in range(2):
        with pytest.raises(LedgerDamaged):
            upgrade(Artifact.open(artifact))
        with pytest.raises(LedgerConflict, match="ledger upgrade"):
            Deployment.open(artifact)
    with pytest.raises(LedgerConflict, match="ledger upgrade"):
        home_of(Artifact.open(artifact)).moved(None, None, 30)


def test_later_artifacts_have_nothing_to_upgrade(artifact, tmp_path):
    """An artifact that knows of units was made when ledgers were under a key, and takes over none that is not."""
    fit_small(tmp_path / "later.pac")
    later = Artifact.open(tmp_path / "later.pac")
    (later.path / WITNESS).unlink()
    shutil.copy(artifact / OLD_WITNESS, later.path / OLD_WITNESS)
    with pytest.raises(InvalidInput, match="from the start"):
        upgrade(later)


def test_request_ids_are_kept(upgraded, answered):
    """An id that was used with other questions is refused as before."""
    with Deployment.open(upgraded) as deployment:
        used = request_key(None, "request-3")
        assert deployment._ledger.request(used) is not None
        with pytest.raises(IdConflict):
            deployment.ask(queries(answered).assign(colour="red").iloc[:1], request_id="request-3")


def test_the_history_moves_with_the_upgrade(artifact, answered, tmp_path):
    """A saved backup of the released ledger is an older copy for the upgraded artifact."""
    shutil.copy(artifact / LEDGER, tmp_path / "old")
    upgrade(Artifact.open(artifact))
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
        upgrade(Artifact.open(artifact))
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
        upgrade(Artifact.open(artifact))


def test_an_upgrade_that_was_cut_off(artifact, answered):
    """Killed between the upgrade and the note about it, the next one goes on from there."""

    def stop(_):
        raise LedgerError("power cut")

    with pytest.raises(LedgerError, match="power cut"):
        home_of(Artifact.open(artifact)).upgrade(None, None, None, stop)
    assert (artifact / OLD_WITNESS).exists()
    upgrade(Artifact.open(artifact))
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
            upgrade(Artifact.open(artifact))
    assert calls == [[(31,)]]  # with the beginning
    upgrade(Artifact.open(artifact))
    with Deployment.open(artifact) as deployment:
        assert deployment.verify().releases == 30


def test_a_state_that_does_not_follow_is_signed_for_nobody(artifact, tmp_path):
    """What an upgrade has refused is taken by no other act, whatever the owner says and whoever removes the witness."""
    with closing(sqlite3.connect(artifact / LEDGER)) as database:
        database.execute("UPDATE state SET spent_steps = 0")
        database.commit()
    home = home_of(Artifact.open(artifact))
    (artifact / OLD_WITNESS).unlink()
    with pytest.raises(LedgerDamaged):
        upgrade(Artifact.open(artifact), sequence=30)
    shutil.copy(artifact / LEDGER, tmp_path / "backup")
    for act in (
        lambda: home.moved(None, None, 30),
        lambda: home.moved(None, str(tmp_path / "anchor"), 30),
    ):
        with pytest.raises(LedgerConflict, match="ledger upgrade"):
            act()
    (artifact / LEDGER).unlink()
    with pytest.raises(LedgerConflict, match="ledger upgrade"):
        home.restore(tmp_path / "backup", None, 30)


def test_a_ledger_that_says_it_went_elsewhere_is_not_upgraded(artifact):
    """Signed, it could be taken for a backup, which may be brought back."""
    with closing(sqlite3.connect(artifact / LEDGER)) as database:
        database.execute("UPDATE state SET moved_to = 'somewhere'")
        database.commit()
    with pytest.raises(LedgerConflict, match=r"continued at somewhere\. Nothing was upgraded"):
        upgrade(Artifact.open(artifact))
    with closing(sqlite3.connect(artifact / LEDGER)) as database:
        assert database.execute("SELECT version FROM schema_version").fetchall() == [(1,)]
