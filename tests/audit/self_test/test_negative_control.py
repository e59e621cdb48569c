"""`audit --negative-control`: a user sees that this mechanism, broken, is caught."""

import json

import pytest
from records import labels_of, mixed_table
from tested_votes import claim_of, votes_of

from pacpredict.audit.self_test.mechanism import bare_mechanism
from pacpredict.audit.self_test.negative_control import Control, run_negative_control
from pacpredict.audit.self_test.sabotage.registry import sabotages_of
from pacpredict.cli import main


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("control")
    table = mixed_table(80).drop(columns="note")
    table["label"] = labels_of(table)
    table.to_csv(folder / "records.csv", index=False)
    how = ["--target", "label", "--learner", "decision-tree", "--models", "16", "--jobs", "1"]
    path = folder / "a.pac"
    assert main(["fit", str(folder / "records.csv"), *how, "--out", str(path)]) == 0
    return path


@pytest.mark.parametrize("decode", ["argmax", "sample"])
def test_every_sabotage_that_users_are_shown_is_caught(decode):
    """And the mechanism as it is passes, first of all."""
    claim, seen = claim_of(decode), []
    controls = run_negative_control(
        bare_mechanism(claim), votes_of(), seed=1, n_sessions=64, progress=lambda *at: seen.append(at)
    )
    assert controls[0].sabotage is None
    assert [one.sabotage for one in controls[1:]] == [one.name for one in sabotages_of(claim) if one.shown]
    assert [one.sabotage for one in controls if not one.is_right] == []
    assert seen[-1] == (len(controls), len(controls))


def test_the_command_shows_what_was_caught(home, capsys):
    """As a table, and as JSON for programs; neither secret nor ledger is needed."""
    (home / "secret.json").unlink()
    assert main(["audit", str(home), "--negative-control", "--sessions", "64"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "noise independence" in shown
    assert "9 of 9 broken mechanisms were caught." in shown
    assert (
        main(["audit", str(home), "--negative-control", "--decode", "sample", "--sessions", "64", "--json"])
        == 0
    )
    said = json.loads(capsys.readouterr().out)
    assert said["holds"] is True
    assert {one["sabotage"] for one in said["controls"]} >= {None, "coupling doubled", "a doubled total"}


def test_what_is_missed_is_said_and_fails(home, capsys, monkeypatch):
    """If a broken mechanism passes, or an honest one does not, the exit code says so."""
    wrong = [Control(None, "its budget", []), Control("a doubled total", "the total once more", [])]
    monkeypatch.setattr(
        "pacpredict.audit.self_test.negative_control.run_negative_control", lambda *_, **__: wrong
    )
    assert main(["audit", str(home), "--negative-control"]) == 2
    said = capsys.readouterr()
    assert "0 of 1 broken mechanisms were caught." in said.out
    assert "1 of 2 mechanisms" in said.err
    assert not Control(None, "", ["noise variance"]).is_right


def test_options_of_an_audit_are_refused(home, capsys):
    """What means nothing for a negative control is not passed over."""
    for option in (["--trials", "2"], ["--report", "a.html"], ["--ledger"], ["--public", "p.csv"]):
        assert main(["audit", str(home), "--negative-control", *option]) == 2
        assert f"{option[0]} is no part of a negative control" in capsys.readouterr().err
