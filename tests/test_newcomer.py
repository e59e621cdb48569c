"""A newcomer with a messy table gets to a served answer and a report, and is warned of everything on the way.

The steps are those of docs/patients.md, by the installed program: each test begins where the one before ended.
"""

import csv
import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from live_server import ServerProcess

PROGRAM = shutil.which("pacpredict", path=Path(sys.executable).parent) or "pacpredict"
QUICK = ["--learner", "logistic", "--models", "8", "--jobs", "1", "--seed", "1"]
CONFIG = """
target = "outcome"
person = "patient"
drop = ["visit", "site", "discharged_to"]
missing = ["n/a"]

[types]
admitted = "date"
crp = "number"
"""


class Folder:
    """Where the newcomer works, and what they type."""

    def __init__(self, path):
        self.path = path

    def run(self, *arguments):
        done = subprocess.run(
            [PROGRAM, *map(str, arguments)],
            cwd=self.path,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"},
        )
        assert "Traceback" not in done.stderr
        return done

    def works(self, *arguments):
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done

    def refuses(self, *arguments):
        done = self.run(*arguments)
        assert done.returncode == 2
        (line,) = [line for line in done.stderr.splitlines() if "error" in line]
        return line


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """300 visits of some 130 patients: ids, dates, `<0.5`, a constant, a second outcome, n/a for missing."""
    path = tmp_path_factory.mktemp("newcomer")
    rng = np.random.default_rng(3)
    patient = rng.integers(0, 140, 320)
    age = rng.integers(20, 90, 140)[patient]
    crp = rng.lognormal(age / 90, 1).round(2)
    risk = age / 25 + np.log(crp) + rng.normal(0, 0.8, 320)
    visits = pd.DataFrame(
        {
            "visit": np.arange(7000, 7320),
            "patient": [f"P{number:03d}" for number in patient],
            "admitted": pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.integers(0, 300, 320), "D"),
            "age": age,
            "ward": rng.choice(["surgery", "medicine", "n/a"], 320),
            "crp": [f"{value:g}" if value >= 0.5 else "<0.5" for value in crp],
            "site": "north",
            "discharged_to": np.where(risk > 4, "clinic", "home"),
            "outcome": np.array(["well", "ill", "again"])[np.digitize(risk, [2.5, 4.5])],
        }
    )
    visits[:300].to_csv(path / "visits.csv", index=False)
    visits[300:].drop(columns="discharged_to").to_csv(path / "new.csv", index=False)
    (path / "visits.toml").write_text(CONFIG)
    return Folder(path)


def words(text):
    return " ".join(text.split())


def test_1_dry_run_points_at_everything(folder):
    """Before anything is trained: identifiers, persons, dates, near numbers, constants and other outcomes."""
    done = folder.run("fit", "visits.csv", "--target", "outcome", "--dry-run")
    said = words(done.stdout)
    for warning in (
        "column 'visit' looks like an identifier",
        "column 'patient' looks like an identifier",
        "--person patient",
        "<0.5 counts as 0.5",
        "column 'site' has one value only: --drop site",
        "column 'discharged_to' sounds like an outcome",
    ):
        assert warning in said, warning
    assert "column 'admitted' has dates" in done.stderr
    assert re.search(r"outcome\s+target\s+0\s+3\s+predicted: 3 classes", done.stdout)
    assert not list(folder.path.glob("*.pac*"))


def test_2_fit_refuses_what_the_dry_run_refused(folder):
    """Dates are never taken for text; nothing is made, and a wrong budget is explained in the planner's words."""
    fit = ["fit", "visits.csv", "--target", "outcome", "--out", "visits.pac", *QUICK]
    assert "declare it a date (--types admitted=date" in folder.refuses(*fit)
    wishes = ["--queries", "100", "--success", "0.55", "--step-budget", "1"]
    assert "all three leave nothing to plan" in folder.refuses(*fit, "--config", "visits.toml", *wishes)
    assert not list(folder.path.glob("*.pac"))


def test_3_evaluate_says_what_it_would_be_worth(folder):
    """Accuracy of every decoder beside an unprotected model's and the majority's, without any secret."""
    done = folder.works(
        *("evaluate", "visits.csv", "--config", "visits.toml", "--learner", "logistic", "--models", "8"),
        *("--folds", "2", "--trials", "10", "--step-budget", "2^-32", "--jobs", "1", "--json"),
    )
    found = json.loads(done.stdout)
    by_decoder = {case["decode"]: case["accuracy"] for case in found["cases"]}
    assert by_decoder["argmax"] < by_decoder["map"]
    assert 0.4 < found["half"] <= found["unprotected"] + 0.05
    assert found["contested"] > 0.1
    assert not list(folder.path.glob("*.pac*"))


def test_4_fit_promises_what_was_asked_for(folder):
    """Persons are protected, the target is kept, and that models will disagree often is said again."""
    wishes = ["--queries", "1e4", "--success", "0.55", "--decode", "map"]
    done = folder.works(
        "fit", "visits.csv", "--config", "visits.toml", "--out", "visits.pac", *QUICK, *wishes
    )
    assert "was this person trained on? 50.0000% 55.0000%" in words(done.stdout)
    assert re.search(r"protected are\s+\d+ persons, with up to \d records each", done.stdout)
    assert re.search(r"models disagree on \d+\.\d ?% of queries", words(done.stdout))
    assert "looks like an identifier" not in done.stderr
    assert "exists already" in folder.refuses(
        "fit", "visits.csv", "--config", "visits.toml", "--out", "visits.pac"
    )


def test_5_predict_keeps_what_is_wanted(folder):
    """Ids go along, the known outcome is not looked at, nothing is overwritten, and charges stay."""
    ask = ["predict", "visits.pac", "new.csv", "--keep", "visit", "--out", "answers.csv"]
    done = folder.works(*ask)
    assert (
        "not looked at, since models do not learn from it: column 'patient', 'site', 'outcome'" in done.stderr
    )
    assert re.search(r"20 rows answered, \d+ of them charged", done.stderr)
    first = (folder.path / "answers.csv").read_text()
    rows = list(csv.DictReader(first.splitlines()))
    assert [row["visit"] for row in rows] == [str(number) for number in range(7300, 7320)]
    assert {row["label"] for row in rows} <= {"well", "ill", "again"}
    assert "--force" in folder.refuses(*ask)
    assert "20 rows answered, 0 of them charged" in folder.works(*ask, "--force").stderr
    assert (folder.path / "answers.csv").read_text() == first


def test_6_serve_answers_and_explains(folder):
    """Over HTTP: null is missing, NaN is explained, an unknown ward is answered, and a repeated question is free."""
    row = {"admitted": "2026-02-01", "age": 50, "ward": None, "crp": "<0.5"}
    with ServerProcess(folder.path / "visits.pac", name="visits") as server:
        assert server.http.get("/v2/models").json() == {"models": ["visits"]}
        reply = server.http.post("/invocations", json={"dataframe_records": [row]})
        assert reply.json()["parameters"]["sequence"] == [21]
        assert server.http.post("/invocations", json={"instances": [row]}).json()["parameters"] == {
            "sequence": [21],
            "charge_nats": [0.0],
        }
        body = json.dumps({"dataframe_records": [{**row, "age": math.nan}]})
        assert "a missing value is null" in server.http.post("/invocations", content=body).json()["error"]
        strange = server.http.post("/invocations", json={"dataframe_records": [{**row, "ward": "moon"}]})
        assert strange.json()["parameters"]["sequence"] == [22]


def test_7_the_report_says_it_all(folder):
    """What was promised, spent and revealed is on the page, per person, with what is not protected beside it."""
    folder.works("report", "visits.pac", "--out", "report.html")
    page = (folder.path / "report.html").read_text()
    text = words(re.sub(r"<[^>]+>", " ", re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)))
    assert "a given person was in the training set more than 55% of the time" in text
    assert "Being in the pool at all." in text
    assert "fit with --person" not in text
    shown = json.loads(folder.works("show", "visits.pac", "--json").stdout)
    assert f"{shown['queries']} queries were answered; the models disagreed on {shown['contested']}." in text
    assert (shown["queries"], shown["unit"]) == (22, "person")
    assert (
        0 <= shown["membership_posterior"]["smallest"] <= 0.5 <= shown["membership_posterior"]["largest"] <= 1
    )
    verified = json.loads(folder.works("ledger", "verify", "visits.pac", "--json").stdout)
    assert verified["chain"] in text
