"""Persons on the terminal: fit, predict, verify, show, bounds and plan."""

import json

import numpy as np
import pandas as pd
import pytest

from pacpredict.artifact.artifact import Artifact
from pacpredict.cli import main
from pacpredict.core.bounds import success_bound
from pacpredict.core.matching import match_generic

QUICK = [
    *("--learner", "decision-tree", "--models", "8", "--jobs", "1", "--seed", "1"),
    *("--step-budget", "2^-8", "--total-budget", "0.1", "--odds-limit", "none"),
]


@pytest.fixture(scope="module")
def visits():
    """Return 90 visits of 40 patients, with outcomes, and a visit of each of two patients that are alike."""
    rng = np.random.default_rng(0)
    patient = rng.permutation(np.r_[np.arange(40), rng.integers(0, 40, 50)])
    table = pd.DataFrame(
        {
            "patient_id": [f"P{i:03d}" for i in patient],
            "age": rng.integers(20, 90, 40)[patient],
            "lab": rng.normal(size=90).round(3),
        }
    )
    others = np.flatnonzero(patient != patient[0])[0]
    table.loc[others, ["age", "lab"]] = table.loc[0, ["age", "lab"]]
    table["outcome"] = np.where(table["age"] + rng.normal(0, 30, 90) > 55, "ill", "well")
    return table


@pytest.fixture(scope="module")
def folder(visits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("persons")
    visits.to_csv(folder / "visits.csv", index=False)
    visits[["age", "lab"]].assign(lab=0.5).drop_duplicates()[:20].to_csv(folder / "queries.csv", index=False)
    return folder


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


def fit(capsys, folder, out, *options):
    return run(capsys, "fit", folder / "visits.csv", "--target", "outcome", "--out", out, *QUICK, *options)


def show(capsys, path):
    code, output, _ = run(capsys, "show", path, "--json")
    assert code == 0
    return json.loads(output)


@pytest.fixture
def clinic(folder, capsys):
    path = folder / "clinic.pac"
    if not path.exists():
        code, _, errors = fit(capsys, folder, path, "--person", "patient_id")
        assert code == 0
        assert "warning" not in errors
    return path


def test_persons_are_the_units(clinic, folder, capsys):
    """Patients are counted, their column is no feature, queries do not need it, and verifying reads it again."""
    report = show(capsys, clinic)
    assert (report["records"], report["units"], report["unit"]) == (90, 40, "person")
    assert report["columns"] == {"number": 2}
    assert report["bounds"]["membership"]["question"] == "was this person trained on?"
    code, output, _ = run(capsys, "predict", clinic, folder / "queries.csv", "--json")
    assert code == 0
    assert set(json.loads(output)["labels"]) <= {"ill", "well"}
    code, output, _ = run(capsys, "verify", clinic, "--models", "2", "--jobs", "1", "--json")
    assert (code, json.loads(output)["models_identical"]) == (0, 2)


def test_show_tells_what_answers_told(clinic, folder, capsys):
    """The posteriors of all units are summed up: at the prior first, and spread after answers."""
    run(capsys, "predict", clinic, folder / "queries.csv", "--json")
    posterior = show(capsys, clinic)["membership_posterior"]
    assert posterior["smallest"] < 0.5 < posterior["largest"]
    assert sum(posterior["histogram"]["units"]) == 40
    code, output, _ = run(capsys, "show", clinic)
    assert code == 0
    for text in (
        *("40 persons, with up to ", "was this person trained on?", "trained on any of 5 random persons?"),
        *("Posterior", "0.49 to 0.51", f"largest {posterior['largest']:.6f}", "not prevented"),
    ):
        assert text in output
    assert max(map(len, output.splitlines())) <= 80


def test_a_record_that_two_patients_share(clinic, capsys):
    """Whoever names what two patients have in common is right more often, and `show` says so."""
    bounds = show(capsys, clinic)["bounds"]
    assert bounds["membership"]["prior"] == 0.5
    assert bounds["reconstruction"]["prior"] > 0.6


def test_bounds_and_plans_of_an_artifact(clinic, capsys):
    """With --artifact priors are those that were counted in it, in bounds and plans alike."""
    priors = Artifact.open(clinic).space.priors
    options = ["--artifact", clinic, "--attack"]
    for attack, prior in priors.items():
        _, output, _ = run(capsys, "bounds", "--budget-nats", "0.01", *options, attack, "--json")
        report = json.loads(output)
        assert (report["prior"], report["success"]) == (prior, success_bound(0.01, prior))
        assert report["matching"]["generic"] == match_generic(0.01, 0.5)._asdict()
    _, output, _ = run(
        capsys, "plan", "--queries", "9", "--success", "0.9", *options, "reconstruction", "--json"
    )
    assert json.loads(output)["prior"] == priors["reconstruction"]
    _, output, _ = run(capsys, "bounds", "--budget-nats", "0.01", "--artifact", clinic, "--group-size", "2")
    assert "trained on which of 2 random persons?" in output
    assert "which of the 8 models answers?" in output


def test_a_column_of_names_is_pointed_out(folder, tmp_path, capsys):
    """Without --person the fit warns and goes on; then identical records are the units."""
    code, _, errors = fit(capsys, folder, tmp_path / "a.pac")
    assert code == 0
    assert "pacpredict: warning: column 'patient_id' looks like an identifier (40 different values" in errors
    report = show(capsys, tmp_path / "a.pac")
    assert (report["unit"], report["units"]) == ("record", 90)


def test_the_person_can_be_a_feature(folder, tmp_path, capsys):
    """Only if that is asked for; queries then need the column."""
    code, *_ = fit(capsys, folder, tmp_path / "a.pac", "--person", "patient_id", "--person-is-feature")
    assert code == 0
    assert Artifact.open(tmp_path / "a.pac").schema.columns[0].name == "patient_id"
    code, _, errors = run(capsys, "predict", tmp_path / "a.pac", folder / "queries.csv")
    assert code == 2
    assert "columns 'patient_id' are missing" in errors
    assert run(capsys, "verify", tmp_path / "a.pac", "--models", "1", "--jobs", "1")[0] == 0


def test_each_row_can_be_a_person(visits, tmp_path, capsys):
    """Identical rows are then drawn separately, which reconstruction shows."""
    table = visits[["age", "outcome"]]
    table.to_csv(tmp_path / "visits.csv", index=False)
    assert fit(capsys, tmp_path, tmp_path / "a.pac", "--person-per-row")[0] == 0
    report = show(capsys, tmp_path / "a.pac")
    assert (report["unit"], report["units"], report["largest_unit"]) == ("person", 90, 1)
    assert report["bounds"]["reconstruction"]["prior"] > 0.9
    assert run(capsys, "verify", tmp_path / "a.pac", "--models", "1", "--jobs", "1")[0] == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--person", "patient"],
            "there is no column 'patient' of persons; the columns are 'patient_id', 'age'",
        ),
        (["--person", "outcome"], "column 'outcome' is said to be two things at once"),
        (["--person", "patient_id", "--person-per-row"], "each row is of another one: not both"),
        (["--person-is-feature"], "no column of persons is named that could be learned from"),
    ],
)
def test_what_makes_no_sense_is_refused(options, words, folder, tmp_path, capsys):
    """Said in one line, before anything is trained."""
    code, _, errors = fit(capsys, folder, tmp_path / "a.pac", *options)
    assert code == 2
    assert words in errors
    assert errors.count("\n") == 1


def dry_run(capsys, table, *options):
    code, output, errors = run(capsys, "fit", table, "--target", "outcome", "--dry-run", "--json", *options)
    return code, json.loads(output), errors


def test_a_dry_run_says_whose_records_are(folder, capsys):
    """The column of persons is shown as such; without it the doubts are listed."""
    code, report, _ = dry_run(capsys, folder / "visits.csv", "--person", "patient_id")
    (person,) = [column for column in report["columns"] if column["name"] == "patient_id"]
    assert (code, person["type"], person["action"]) == (0, "person", "whose a record is")
    assert not report["hints"]
    _, report, _ = dry_run(capsys, folder / "visits.csv")
    (person,) = [column for column in report["columns"] if column["name"] == "patient_id"]
    assert any("looks like an identifier" in warning for warning in person["warnings"])
    assert any("differ from another one in 'lab' alone" in hint for hint in report["hints"])


def test_records_of_nobody_are_found_by_a_dry_run(visits, tmp_path, capsys):
    """Persons that are missing in some records are a problem, as they are for a fit."""
    visits.assign(patient_id=visits["patient_id"].where(visits.index > 3)).to_csv(
        tmp_path / "visits.csv", index=False
    )
    code, _, errors = dry_run(capsys, tmp_path / "visits.csv", "--person", "patient_id")
    assert code == 2
    assert "column 'patient_id' names nobody in 4 records: row 0, 1, 2, 3 (from 0)" in errors
    code, _, errors = fit(capsys, tmp_path, tmp_path / "a.pac", "--person", "patient_id")
    assert code == 2
    assert "4 records name no person" in errors


def test_a_file_can_name_the_person(folder, tmp_path, capsys):
    """What the options say can stand in a TOML file."""
    config = tmp_path / "visits.toml"
    config.write_text('target = "outcome"\nperson = "patient_id"\n')
    out = tmp_path / "a.pac"
    code, *_ = run(capsys, "fit", folder / "visits.csv", "--config", config, "--out", out, *QUICK)
    assert code == 0
    assert show(capsys, out)["units"] == 40
    config.write_text('target = "outcome"\nperson_per_row = "yes"\n')
    code, _, errors = run(capsys, "fit", folder / "visits.csv", "--config", config, "--out", out, *QUICK)
    assert code == 2
    assert "person_per_row must be true or false" in errors
