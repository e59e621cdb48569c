"""An artifact, its ledger and what witnesses it as one: opened, asked, described, saved and closed together."""

import shutil

import numpy as np
import pandas as pd
import pytest
from artifacts import fit_small
from records import labels_of, mixed_pool, mixed_table, quick_fit, recipe, small_learner
from sklearn.naive_bayes import GaussianNB

from pacpredict.artifact.artifact import Artifact
from pacpredict.curator import Curator
from pacpredict.deployment import Deployment, home_of
from pacpredict.exceptions import (
    IdConflict,
    InvalidArtifact,
    LedgerConflict,
    LedgerDamaged,
    LedgerError,
    LedgerUnavailable,
    UntrustedArtifact,
)
from pacpredict.learners.registry import learner_for
from pacpredict.mechanism.ledger import MemoryLedger

QUERIES = mixed_table(40, seed=3)


@pytest.fixture
def home(tmp_path):
    return fit_small(tmp_path / "a.pac").path


def ask_at(home, table=QUERIES, **options):
    with Deployment.open(home) as deployment:
        return deployment.ask(table, **options)


def test_two_deployments_share_answers_and_budget(home):
    """What one was answered another gets at no charge, and what one spent the other knows."""
    with Deployment.open(home) as one, Deployment.open(home) as two:
        first = one.ask(QUERIES)
        spent = sum(release.charge for release in first.releases)
        assert spent > 0
        assert two.privacy()["spent_nats"] == spent
        assert np.array_equal(two.ask(QUERIES).labels, first.labels)
        assert two.privacy() == one.privacy() == one.curator.privacy() == two.curator.privacy()
        two.ask(mixed_table(30, seed=4))
        assert one.privacy()["queries"] == 70


def test_requests_are_answered_once(home):
    """The same request again, after a lost reply and a restart, gets the same answer and costs nothing."""
    first, again = (ask_at(home, request_id="r1", client="c") for _ in range(2))
    assert np.array_equal(first.labels, again.labels)
    assert not any(release.charge for release in again.releases)
    with pytest.raises(IdConflict):
        ask_at(home, QUERIES[:3], request_id="r1", client="c")


def test_a_deployment_closes_what_it_opened(home):
    """After the `with` nothing is answered any more, and the files can be taken away."""
    with Deployment.open(home) as deployment:
        deployment.ask(QUERIES)
    with pytest.raises(LedgerError, match="closed"):
        deployment.ask(mixed_table(3, seed=4))
    assert sorted(path.name for path in home.glob("ledger.sqlite*")) == ["ledger.sqlite"]
    deployment.close()  # again does no harm


def test_models_are_loaded_for_asking_only(tmp_path):
    """What it is and what it spent can be told without models that would need trust."""
    home = fit_small(tmp_path / "a.pac", mixed_pool(60), learner_for(GaussianNB())).path
    with Deployment.open(home) as deployment:
        assert deployment.describe()["models"] == 4
        assert deployment.privacy()["queries"] == deployment.verify().releases == 0
        with pytest.raises(UntrustedArtifact):
            deployment.ask(QUERIES)
    with Deployment.open(home, trust=True) as deployment:
        assert len(deployment.ask(QUERIES).labels) == 40


def test_another_decoder_may_be_chosen(home):
    """It is what new answers are read with and what is reported; the artifact keeps its own."""
    with Deployment.open(home, decode="map") as deployment:
        deployment.ask(QUERIES)
        assert deployment.privacy()["decoder"] == deployment.curator.privacy()["decoder"] == "map"
        assert {entry.kind for entry in deployment._ledger.entries()} == {"agreed", "map"}
    with Deployment.open(home) as deployment:
        assert deployment.privacy()["decoder"] == "argmax"


def test_the_history_can_be_verified_exported_and_kept(home, tmp_path):
    """What a deployment answered is in its export, its backup and its verification, with the same numbers."""
    with Deployment.open(home) as deployment:
        answers = deployment.ask(QUERIES, client="c")
        found, spent = deployment.verify(), deployment.privacy()["spent_nats"]
        assert (found.releases, found.spent_nats) == (40, spent)
        assert deployment.export(tmp_path / "out.csv") == 40
        assert deployment.back_up(tmp_path / "kept").sequence == 40
    table = pd.read_csv(tmp_path / "out.csv")
    assert table["label"].tolist() == answers.labels.tolist()
    assert set(table["client"]) == {"c"}


def test_a_lost_ledger_comes_back_from_its_backup(home, tmp_path):
    """A backup that holds all answers is continued; the deployment repeats them at no charge."""
    with Deployment.open(home) as deployment:
        first = deployment.ask(QUERIES)
        deployment.back_up(tmp_path / "kept")
    (home / "ledger.sqlite").unlink()
    assert home_of(Artifact.open(home)).restore(tmp_path / "kept", None, None).sequence == 40
    again = ask_at(home)
    assert np.array_equal(again.labels, first.labels)
    assert not any(release.charge for release in again.releases)


def test_an_artifact_without_its_ledger_answers_nothing(home):
    """A missing ledger is not replaced by an empty one."""
    ask_at(home)
    (home / "ledger.sqlite").rename(home.parent / "elsewhere")
    with pytest.raises(LedgerUnavailable, match="there is no ledger"):
        Deployment.open(home)


def test_an_artifact_without_its_witness_answers_nothing(home):
    """Without it nobody knows how far the ledger had come."""
    ask_at(home)
    (home / "witness.jsonl").unlink()
    with pytest.raises(LedgerConflict, match="is missing"):
        Deployment.open(home)


def test_a_ledger_that_was_put_back_answers_nothing(home, tmp_path):
    """After a single table of answers, an older copy of the ledger is noticed, also by whoever opens it next."""
    shutil.copy(home / "ledger.sqlite", tmp_path / "old")
    ask_at(home)
    (home / "ledger.sqlite").write_bytes((tmp_path / "old").read_bytes())
    with pytest.raises(LedgerConflict, match="older copy"):
        Deployment.open(home)


def test_a_copied_artifact_answers_nothing(home, tmp_path):
    """Two copies would spend the budget twice; the original goes on."""
    ask_at(home, QUERIES[:5])
    copy = shutil.copytree(home, tmp_path / "copy.pac")
    with pytest.raises(LedgerConflict, match="may be a copy of it"):
        Deployment.open(copy)
    ask_at(home)


@pytest.mark.parametrize("names", [["ledger.sqlite"], ["ledger.sqlite", "witness.jsonl"]])
def test_the_ledger_of_another_artifact_is_refused(home, tmp_path, names):
    """A ledger belongs to one artifact, also if both were made of the same data with the same seed."""
    other = fit_small(tmp_path / "b.pac").path
    for name in names:
        (other / name).replace(home / name)
    with pytest.raises(LedgerDamaged):
        Deployment.open(home)


def test_an_anchor_goes_with_the_deployment(home, tmp_path):
    """Once an anchor has noted the history, the artifact and its ledger do not go back together."""
    shutil.copytree(home, tmp_path / "before")
    with Deployment.open(home, anchor=str(tmp_path / "anchor")) as deployment:
        deployment.ask(QUERIES)
    with pytest.raises(LedgerConflict, match="has an anchor"):
        Deployment.open(home)
    for name in ("ledger.sqlite", "witness.jsonl"):
        (home / name).write_bytes((tmp_path / "before" / name).read_bytes())
    with pytest.raises(LedgerConflict, match="older copy"):
        Deployment.open(home, anchor=str(tmp_path / "anchor"))


def test_a_description_says_what_was_fitted(home):
    """What an artifact is can be told without its data."""
    with Deployment.open(home) as deployment:
        about = deployment.describe()
        assert deployment.location == str(home / "ledger.sqlite")
    assert about["name"] == "a.pac"
    assert (about["learner"], about["models"], about["records"]) == ("xgboost", 4, 120)
    assert about["columns"] == {"number": 2, "category": 2, "boolean": 1, "text": 1}
    assert about["classes"] == ["a", "b"]
    assert about["identity"] == Artifact.open(home).identity


def test_other_models_of_the_same_table(tmp_path):
    """A deployment of each kind of learner answers from its artifact as from memory."""
    table = mixed_table(60)
    for name in ("logistic", "random-forest"):
        path = fit_small(
            tmp_path / name,
            learner=small_learner(name),
            how=recipe(step=1e3, total=1e8),
            pool=mixed_pool(60),
        ).path
        with Deployment.open(path) as deployment:
            ensemble = deployment.curator.ensemble
            votes = ensemble.votes(ensemble.schema.rows(table))
            expected = ensemble.labels(votes[:, deployment.artifact.secret().reveal()])
            assert np.array_equal(deployment.ask(table).labels, expected)
        assert set(expected) <= set(labels_of(table))


@pytest.fixture
def in_memory():
    """A fit, and a curator of it that has answered."""
    fitted = quick_fit(how=recipe(total=0.5))
    curator = Curator(fitted.ensemble, fitted.recipe, MemoryLedger())
    return fitted, curator, curator.ask(QUERIES[:5])


def test_a_saved_deployment_goes_on_in_its_artifact_only(in_memory, tmp_path):
    """A reference to the curator from before the save answers nothing more: there is one history of a secret."""
    fitted, before, first = in_memory
    spent = before.guarantee().spent_nats
    with Deployment.save(tmp_path / "saved.pac", fitted, before) as after:
        with pytest.raises(LedgerError, match="closed"):
            before.ask(QUERIES[5:10])
        assert after.ask(QUERIES[:5]).labels.tolist() == first.labels.tolist()
        assert (after.privacy()["queries"], after.privacy()["spent_nats"]) == (5, spent)
        assert after.verify().releases == 5
        assert after.artifact.secret().commitment() == before.session._secret.commitment()


@pytest.mark.parametrize(
    "step", ["pacpredict.deployment.store_models", "pacpredict.ledger.witness.write_whole"]
)
def test_a_save_that_fails_leaves_the_deployment_in_memory(in_memory, tmp_path, monkeypatch, step):
    """If the artifact cannot be written nothing is lost, and saving may be tried again."""
    fitted, curator, _ = in_memory
    path = tmp_path / "saved.pac"

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(step, fail)
        with pytest.raises((OSError, LedgerUnavailable), match="No space left"):
            Deployment.save(path, fitted, curator)
    with pytest.raises(InvalidArtifact, match="was interrupted"):
        Deployment.open(path)
    curator.ask(QUERIES[5:10])
    with Deployment.save(path, fitted, curator) as deployment:
        assert deployment.verify().releases == 10


def test_a_deployment_shows_where_it_is(home):
    """Its text names the artifact and the ledger, and nothing of the secret."""
    with Deployment.open(home) as deployment:
        salt = deployment.artifact.secret().reveal_salt().hex()
        text = repr(deployment)
    assert text == f"Deployment({str(home)!r}, SqliteLedger({str(home / 'ledger.sqlite')!r}))"
    assert salt not in text


@pytest.mark.parametrize("failure", [PermissionError, KeyboardInterrupt])
def test_a_save_that_fails_after_the_fact_leaves_one_history(tmp_path, monkeypatch, failure):
    """Once the artifact has its name, nobody is answered from memory any more, whatever happens then."""
    fitted = quick_fit()
    curator = Curator(fitted.ensemble, fitted.recipe, MemoryLedger())
    curator.ask(mixed_table(3))

    def fail(_):
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr("pacpredict.artifact.workshop.sync_directory", fail)
        with pytest.raises(failure):
            Deployment.save(tmp_path / "a.pac", fitted, curator)
    with pytest.raises(LedgerConflict):
        curator.ask(mixed_table(4))
    with Deployment.open(tmp_path / "a.pac") as deployment:
        assert deployment.privacy()["queries"] == 3
