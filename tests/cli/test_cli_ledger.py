"""`ledger ...`, and what every command says of a ledger that is lost, old, copied or elsewhere."""

import json
import shutil

import pandas as pd
import pytest
from artifacts import fit_small
from records import mixed_table
from terminal import refused, run_here


@pytest.fixture
def home(tmp_path):
    mixed_table(20, seed=3).to_csv(tmp_path / "queries.csv", index=False)
    mixed_table(8, seed=4).to_csv(tmp_path / "more.csv", index=False)
    return fit_small(tmp_path / "a.pac").path


def answered(capsys, *arguments):
    code, output, errors = run_here(capsys, *arguments, "--json")
    assert (code, errors) == (0, "")
    return json.loads(output)


def predict(capsys, home, name="queries.csv", *options):
    return answered(capsys, "predict", home, home.parent / name, *options)


def told(capsys, *arguments):
    """Run a command without --json and return the line that it prints."""
    code, output, errors = run_here(capsys, *arguments)
    assert (code, errors) == (0, "")
    return output


def test_the_history_for_auditors(home, tmp_path, capsys):
    """Verification and export say what predict said."""
    summary = predict(capsys, home)
    verified = answered(capsys, "ledger", "verify", home)
    assert (verified["releases"], verified["spent_nats"]) == (20, summary["spent_nats"])
    assert "20" in told(capsys, "ledger", "verify", home)
    assert answered(capsys, "ledger", "export", home, tmp_path / "out.csv") == {"releases": 20}
    assert pd.read_csv(tmp_path / "out.csv")["label"].tolist() == summary["labels"]
    told(capsys, "ledger", "export", home, tmp_path / "out.parquet")
    assert pd.read_parquet(tmp_path / "out.parquet")["label"].tolist() == summary["labels"]


def test_a_chain_that_was_written_down(home, tmp_path, capsys):
    """What a report has on paper is found in the history later; what is not in it is refused."""
    nothing = answered(capsys, "ledger", "verify", home)["chain"]
    predict(capsys, home)
    written = answered(capsys, "report", home, "--out", tmp_path / "report.html")["chain"]
    assert f"--contains {written}" in (tmp_path / "report.html").read_text()
    predict(capsys, home, "more.csv")
    assert answered(capsys, "ledger", "verify", home, "--contains", written)["contains_after"] == 20
    assert answered(capsys, "ledger", "verify", home, "--contains", nothing)["contains_after"] == 0
    printed = " ".join(told(capsys, "ledger", "verify", home, "--contains", written.upper()).split())
    assert "that was written down is that after 20 releases" in printed
    assert "64 digits" in refused(capsys, "ledger", "verify", home, "--contains", written[:-2])
    other = f"{int(written, 16) ^ 1:064x}"
    assert "has no release with the chain" in refused(capsys, "ledger", "verify", home, "--contains", other)


def test_a_lost_ledger_is_brought_back(home, tmp_path, capsys):
    """A backup with every answer is continued; answers are the same, and free."""
    first = predict(capsys, home)
    chain = answered(capsys, "ledger", "verify", home)["chain"]
    kept = tmp_path / "kept"
    assert answered(capsys, "ledger", "backup", home, kept) == {"releases": 20, "chain": chain}
    assert "exists already" in refused(capsys, "ledger", "backup", home, kept)
    assert "is in the artifact" in refused(capsys, "ledger", "backup", home, home / "models" / "kept")
    assert "nothing to restore" in refused(capsys, "ledger", "restore", home, kept)
    (home / "ledger.sqlite").unlink()
    for command in ("show", "predict"):
        arguments = [home] if command == "show" else [home, tmp_path / "queries.csv"]
        words = refused(capsys, command, *arguments)
        assert "there is no ledger" in words
        assert "pacpredict ledger restore" in words
    assert told(capsys, "ledger", "restore", home, kept) == "the ledger is back, with 20 releases\n"
    again = predict(capsys, home)
    assert (again["labels"], again["charge_nats"]) == (first["labels"], 0.0)


def test_a_backup_that_lacks_answers_is_refused(home, tmp_path, capsys):
    """What it lacks was released all the same."""
    predict(capsys, home)
    told(capsys, "ledger", "backup", home, tmp_path / "kept")
    predict(capsys, home, "more.csv")
    (home / "ledger.sqlite").unlink()
    assert "28 were shown" in refused(capsys, "ledger", "restore", home, tmp_path / "kept")


def test_a_ledger_that_was_put_back_is_refused(home, tmp_path, capsys):
    """Answers of a single command are not drawn again from a ledger that was copied before it."""
    shutil.copy(home / "ledger.sqlite", tmp_path / "old")
    predict(capsys, home)
    (home / "ledger.sqlite").write_bytes((tmp_path / "old").read_bytes())
    assert "older copy" in refused(capsys, "predict", home, tmp_path / "queries.csv")
    assert "older copy" in refused(capsys, "show", home)


def test_a_copied_artifact_is_refused_until_its_owner_says_that_it_moved(home, tmp_path, capsys):
    """The copy answers only when the original is gone, and then goes on where that one was."""
    first = predict(capsys, home)
    copy = tmp_path / "elsewhere" / "a.pac"
    shutil.copytree(home, copy)
    shutil.copy(tmp_path / "queries.csv", copy.parent)
    assert "ledger moved" in refused(capsys, "predict", copy, tmp_path / "queries.csv")
    assert "is still at" in refused(capsys, "ledger", "moved", copy)
    predict(capsys, home, "more.csv")  # the original goes on
    shutil.rmtree(copy)
    shutil.copytree(home, copy)
    shutil.copy(tmp_path / "queries.csv", copy.parent)
    shutil.rmtree(home)
    assert "at release 28" in told(capsys, "ledger", "moved", copy)
    again = predict(capsys, copy)
    assert (again["labels"], again["charge_nats"]) == (first["labels"], 0.0)


def test_a_lost_witness_needs_the_owners_word(home, tmp_path, capsys):
    """Whoever lost it says how many answers were shown; a ledger with fewer is refused."""
    predict(capsys, home)
    (home / "witness.jsonl").unlink()
    assert "--sequence N" in refused(capsys, "predict", home, tmp_path / "queries.csv")
    assert "--sequence N" in refused(capsys, "ledger", "moved", home)
    assert "21 were shown" in refused(capsys, "ledger", "moved", home, "--sequence", 21)
    assert answered(capsys, "ledger", "moved", home, "--sequence", 20)["releases"] == 20
    assert predict(capsys, home)["charge_nats"] == 0


def test_an_anchor_is_given_always(home, tmp_path, capsys):
    """Once the history is noted elsewhere too, no command goes on without that note."""
    anchor = ["--anchor", tmp_path / "anchor"]
    predict(capsys, home, "queries.csv", *anchor)
    assert "give it (--anchor)" in refused(capsys, "predict", home, tmp_path / "queries.csv")
    assert "give it (--anchor)" in refused(capsys, "ledger", "verify", home)
    assert answered(capsys, "ledger", "verify", home, *anchor)["releases"] == 20
    other = refused(capsys, "show", home, "--anchor", tmp_path / "other")
    assert "has its anchor at" in other


def test_a_url_that_is_none(home, capsys):
    """A ledger elsewhere is a PostgreSQL database; what was mistyped is not printed with its password."""
    code, _, said = run_here(capsys, "show", home, "--ledger", "mysql://owner:86753@db/census")
    assert code == 2
    assert "sees the password" in said
    assert "postgresql://user@host/database" in said
    assert "86753" not in said
    assert "86753" not in refused(capsys, "ledger", "move", home, "mysql://owner:86753@db/census")


def test_nothing_else_is_put_into_artifacts(home, tmp_path, capsys):
    """Neither backups nor features are kept in an artifact, own or other: with a foreign file it would not open."""
    other = fit_small(tmp_path / "other.pac").path
    (tmp_path / "texts.csv").write_text("text,label\n" + "good,1\nbad,0\n" * 8)
    fit = ("fit", tmp_path / "texts.csv", "--target", "label", "--learner", "heads", "--features", "potion")
    before = sorted(other.rglob("*"))
    for arguments in (
        ("ledger", "backup", home, other / "backup"),
        ("ledger", "backup", home, home / "models" / "backup"),
        (*fit, "--feature-cache", other, "--out", tmp_path / "texts.pac"),
        (*fit, "--feature-cache", other / "cache", "--out", tmp_path / "texts.pac"),
    ):
        assert "holds nothing but its own files" in refused(capsys, *arguments)
    assert sorted(other.rglob("*")) == before
