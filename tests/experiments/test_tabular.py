"""The table of accuracies, on few records."""

import json
import sys

import numpy as np
import pytest
from records import labels_of, mixed_table

from pacpredict.artifact.artifact import Artifact
from pacpredict.experiments import tabular
from pacpredict.experiments.datasets import Dataset


@pytest.fixture
def few(monkeypatch):
    """Put a small table in place of census income."""

    def load():
        table = mixed_table(200).drop(columns="note")
        return table.assign(income=labels_of(table))

    monkeypatch.setitem(tabular.DATASETS, "census", Dataset(load, "income"))
    monkeypatch.setattr("pacpredict.learners.search.GRID", {"max_depth": (1, 2)})
    monkeypatch.setattr("pacpredict.learners.search.TREES", (3, 6))


def test_the_experiment_runs_from_its_command(few, tmp_path, monkeypatch, capsys):
    """One command fits, simulates and prints; run again, it does not train again."""
    path = tmp_path / "few.pac"
    command = ["tabular", "census", "--artifact", str(path), "--models", "4", "--trials", "40", "--jobs", "1"]
    monkeypatch.setattr(sys, "argv", [*command, "--json"])
    tabular.main()
    figures = json.loads(capsys.readouterr().out)
    rows = {row["noise"]: row for row in figures["accuracy_percent"]}
    assert list(rows) == ["none", "2^-8", "2^-32"]
    assert rows["none"]["published"] == 87.17
    artifact = Artifact.open(path)
    assert artifact.learner.tune == "halving"
    identity = artifact.identity
    monkeypatch.setattr(sys, "argv", command)
    tabular.main()
    assert "published" in capsys.readouterr().out
    assert Artifact.open(path).identity == identity


def test_accuracies_are_those_of_the_models_and_of_coins(few, tmp_path):
    """Without noise a trial answers as one of the models; with much of it, contested rows are decided by a coin."""
    artifact = tabular.fit("census", tmp_path / "few.pac", "none", 4, 1)
    none, _, much = tabular.measure("census", artifact, 400)
    _, held_out = tabular.split("census")
    ensemble = artifact.ensemble()
    votes = ensemble.votes(ensemble.schema.rows(held_out.drop(columns="income")))
    right = votes == ensemble.classes.codes(held_out["income"])[:, None]
    single = 100 * right.mean(axis=0)
    # 400 trials: four deviations of the mean, and the rounding of what is printed.
    assert none.argmax == pytest.approx(single.mean(), abs=4 * single.std() / 20 + 1e-3)
    coins = np.where(right.all(axis=1), 1.0, np.where(right.any(axis=1), 0.5, 0.0))
    assert much.argmax == pytest.approx(100 * coins.mean(), abs=4 * much.argmax_sd / 20)
    assert much.argmax_sd > 0
    # A label that is sampled is right as often as that of the secret model, whatever the budget.
    for row in (none, much):
        assert row.sample == pytest.approx(
            single.mean(), abs=4 * max(row.sample_sd, single.std()) / 20 + 1e-3
        )


def test_lives_until_the_total_is_spent(few, tmp_path, monkeypatch, capsys):
    """Every deployment is asked more contested queries than its total pays for; all of them are counted."""
    monkeypatch.setattr("pacpredict.defaults.QUERIES", 500)
    command = ["tabular", "census", "--artifact", str(tmp_path / "few.pac"), "--models", "4", "--jobs", "1"]
    monkeypatch.setattr(sys, "argv", [*command, "--tune", "none", "--lives", "3", "--json"])
    tabular.main()
    lives = json.loads(capsys.readouterr().out)
    assert [(life["mechanism"], life["limit"]) for life in lives] == [
        *(("gaussian", limit) for limit in (0.25, 0.5)),
        *(("channel", limit) for limit in (0.25, 0.5)),
    ]
    for life in lives:
        assert 0 < life["largest_spread"] < 0.25
        assert life["contested"] >= 500
        assert life["believed"] == 0
        assert 0 < life["odds_sd"] < life["odds_largest"] < 1
