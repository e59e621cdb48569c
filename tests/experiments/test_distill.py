"""The table of students, on few records."""

import json
import sys

import numpy as np
import pytest
from records import labels_of, mixed_table

from pacpredict.core.bounds import success_bound
from pacpredict.experiments import distill, unlabelled
from pacpredict.experiments.datasets import Dataset
from pacpredict.experiments.fitted import fit_once
from pacpredict.experiments.students import Method, Study
from pacpredict.experiments.unlabelled import UNKNOWN


@pytest.fixture
def few(monkeypatch):
    """Put a small table in place of census income."""

    def load():
        table = mixed_table(600).drop(columns="note")
        return table.assign(income=labels_of(table))

    monkeypatch.setitem(unlabelled.DATASETS, "census", Dataset(load, "income"))
    monkeypatch.setattr("pacpredict.learners.xgboost.DEFAULTS", {"n_estimators": 5, "max_depth": 2})


@pytest.fixture
def study(few, tmp_path):
    setting = unlabelled.census()
    return Study(setting, fit_once(tmp_path / "few.pac", setting.pool, setting.learner, 8, 1))


def test_the_experiment_runs_from_its_command(few, tmp_path, monkeypatch, capsys):
    """One command fits, asks, filters, trains and prints; budgets are those of the paper's table."""
    monkeypatch.setattr(
        distill, "METHODS", (Method("argmax", "corrected", 0.01), Method("map", "bayesian", 0.4))
    )
    command = ["distill", "census", "--artifact", str(tmp_path / "few.pac"), "--models", "8", "--jobs", "1"]
    command += ["--rows", "60", "--runs", "2", "--trials", "20"]
    monkeypatch.setattr(sys, "argv", [*command, "--json"])
    distill.main()
    found = json.loads(capsys.readouterr().out)
    assert found["pool"] + found["public"] + found["test"] == 600
    assert [row["rows"] for row in found["students"]] == [60, 120, 60, 120]
    assert found["budgets"][0]["success"] == success_bound(60 * 2.0**-32)
    assert all(len(row["runs"]) == 2 for row in found["students"])
    monkeypatch.setattr(sys, "argv", command)
    distill.main()
    assert "| map, bayesian 0.4 | 120 |" in capsys.readouterr().out


def test_true_labels_train_nobody(study):
    """With other true labels of the public rows the students are the same; only their scores among the kept differ."""
    method = Method("map", "bayesian", 0.4)
    labels, secret = study.labels("map", 0, [120])
    once = study.student(labels, secret, 120, method, 0)
    study.setting = study.setting._replace(truth=1 - study.setting.truth)
    again = study.student(labels, secret, 120, method, 0)
    assert (once.kept, once.wrong, once.accuracy) == (again.kept, again.wrong, again.accuracy)
    assert once.right == pytest.approx(100 - again.right)


def test_one_student_is_told_the_truth(study):
    """What students are compared with learns what the public rows truly are: turned round, it is wrong as often."""
    told = study.teachers(2)["true labels"]
    study.setting = study.setting._replace(truth=1 - study.setting.truth)
    assert told > 60
    assert study.teachers(2)["true labels"] < 40
    study.setting = study.setting._replace(
        truth=np.where(np.arange(120) < 60, UNKNOWN, 1 - study.setting.truth)
    )
    assert 55 < study.teachers(2)["true labels"] != told  # from half of the rows


def test_scores_are_those_of_the_rows(study):
    """What is said of kept labels is counted by hand from votes, the secret and the truth."""
    labels, secret = study.labels("sample", 1, [50, 120])
    found = study.student(labels, secret, 50, Method("sample", "bayesian", 0.3), 1)
    votes, given = study.votes[labels.rows[:50]], labels.labels[:50]
    share = (votes == given[:, None]).mean(axis=1)
    kept = share > 0.7
    assert found.kept == kept.sum()
    assert found.right == pytest.approx(100 * (given == study.setting.truth[labels.rows[:50]])[kept].mean())
    assert found.wrong == pytest.approx(100 * (kept & (votes[:, secret] != given)).mean())
    assert np.unique(labels.rows).size == 120
