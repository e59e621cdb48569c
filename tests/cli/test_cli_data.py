"""What the terminal shows of a table before a fit, and what may be said about its columns."""

import json

import numpy as np
import pytest
from hospital import TARGET, hospital

from pacpredict.artifact.artifact import Artifact
from pacpredict.cli import main
from pacpredict.training.pool import Pool

QUICK = ["--learner", "decision-tree", "--models", "4", "--jobs", "1", "--seed", "1"]
SAID = """
target = "outcome"
drop = ["record_id", "patient_id", "note", "site", "died"]
missing = ["n/a"]

[types]
admitted = "date"
crp = "number"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    table = hospital(120)
    table.assign(w=np.where(table["age"] > 60, 2.0, 1.0)).to_csv(folder / "stays.csv", index=False)
    (folder / "stays.toml").write_text(SAID)
    return folder


def run_here(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


def test_a_dry_run_shows_the_columns_and_makes_nothing(folder, capsys, monkeypatch):
    """A table of columns within 80 columns, then what to think about; what would be refused is the error."""
    monkeypatch.setenv("COLUMNS", "80")
    before = sorted(folder.iterdir())
    code, output, errors = run_here(capsys, "fit", folder / "stays.csv", "--target", TARGET, "--dry-run")
    assert code == 2
    assert "column 'admitted' has dates" in errors
    assert "column 'born' has dates" in errors
    lines = output.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.split()[:4] == ["sex", "category", "0", "2"] for line in lines)
    assert "- column 'site' has one value only: --drop site" in lines
    assert sorted(folder.iterdir()) == before


def test_a_dry_run_for_programs(folder, capsys):
    """The same as JSON; with everything settled it ends well."""
    code, output, _ = run_here(
        capsys,
        "fit",
        folder / "stays.csv",
        "--config",
        folder / "stays.toml",
        "--drop",
        "born",
        "--dry-run",
        "--json",
    )
    found = json.loads(output)
    assert code == 0
    columns = {one["name"]: one for one in found["columns"]}
    assert found["records"] > 200
    assert set(columns["crp"]) == {
        "name",
        "type",
        "missing",
        "distinct",
        "action",
        "warnings",
        "pooled",
        "problem",
    }
    assert [columns[name]["type"] for name in ("admitted", "crp", "died", TARGET)] == [
        *("date", "number", "dropped", "target")
    ]


def test_what_is_said_reaches_the_artifact(folder, tmp_path, capsys):
    """File and options together decide the columns; queries need these, and verify reads the table as the fit did."""
    out = tmp_path / "stays.pac"
    more = [
        "--drop",
        "born",
        "length_of_stay",
        "--types",
        "ward=category",
        "diagnosis=category",
        "--weights",
        "w",
        "--min-category",
        "5",
    ]
    code, _, errors = run_here(
        capsys, "fit", folder / "stays.csv", "--config", folder / "stays.toml", *more, "--out", out, *QUICK
    )
    assert code == 0, errors
    assert "warning" not in errors
    kinds = {column.name: column.kind for column in Artifact.open(out).schema.columns}
    numbers, names = ["age", "crp", "creatinine", "sodium"], ["sex", "ward", "diagnosis", "smoker"]
    assert kinds == {
        "admitted": "date",
        **dict.fromkeys(numbers, "number"),
        **dict.fromkeys(names, "category"),
    }
    code, output, _ = run_here(capsys, "show", out, "--columns")
    assert code == 0
    assert any(line.split() == ["admitted", "date", "2024-12-31"] for line in output.splitlines())
    code, output, _ = run_here(capsys, "show", out, "--columns", "--json")
    assert [column["name"] for column in json.loads(output)["columns"]] == list(kinds)

    code, output, _ = run_here(capsys, "verify", out, "--models", "2", "--jobs", "1", "--json")
    assert json.loads(output) == {"models_checked": 2, "models_identical": 2}

    query = hospital(3, seed=5)[list(kinds)].assign(crp="<0.1")
    query.to_csv(tmp_path / "q.csv", index=False)
    code, output, _ = run_here(capsys, "predict", out, tmp_path / "q.csv", "--json")
    assert (code, len(json.loads(output)["labels"])) == (0, len(query))


def test_a_fit_says_what_a_dry_run_says(folder, tmp_path, capsys):
    """Warnings come with a fit, too, on standard error."""
    options = ["--target", TARGET, "--drop", "admitted", "born", "--out", tmp_path / "a.pac", *QUICK]
    code, _, errors = run_here(capsys, "fit", folder / "stays.csv", *options)
    assert code == 0
    assert "pacpredict: warning: column 'died' sounds like an outcome ('died')" in errors


def test_records_of_weight_zero_are_left_out(folder, tmp_path, capsys, monkeypatch):
    """A weight of 0 in the file takes a record out of the pool."""
    table = hospital(60)[["age", "sodium", TARGET]].assign(w=1.0)
    table.loc[:9, "w"] = 0.0
    table.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "a.pac"
    code, *_ = run_here(
        capsys, "fit", tmp_path / "t.csv", "--target", TARGET, "--weights", "w", "--out", out, *QUICK
    )
    assert code == 0
    assert Artifact.open(out).n_records == len(table) - 10
    assert (
        Artifact.open(out).manifest["records_sha256"]
        != Pool.of_frame(table[10:].drop(columns="w"), TARGET).digest()
    )


def test_numbers_with_separators(tmp_path, capsys):
    """A dry run says how they can be read; then they are learned from as the numbers they are, and asked so, too."""
    numbers = np.random.default_rng(0).integers(100, 99_999, 60)
    written = [f"{number:,}".replace(",", ".") for number in numbers]  # some of which look like fractions
    labels = np.where(numbers > 40_000, "high", "low")
    (tmp_path / "t.csv").write_text(
        "amount;cost;y\n" + "".join(f"{w};{w},5;{y}\n" for w, y in zip(written, labels, strict=True))
    )
    told = ["--target", "y", "--types", "amount=number:1.234,5", "cost=number:1.234,5"]
    code, output, _ = run_here(capsys, "fit", tmp_path / "t.csv", "--target", "y", "--dry-run")
    assert code == 0
    assert "--types cost=number:1.234,5" in " ".join(output.split())
    code, output, _ = run_here(capsys, "fit", tmp_path / "t.csv", *told, "--dry-run")
    assert any(line.split()[-1:] == ["1.234,5"] for line in output.splitlines())
    assert "separators" not in output
    code, _, errors = run_here(capsys, "fit", tmp_path / "t.csv", *told, "--out", tmp_path / "a.pac", *QUICK)
    assert code == 0, errors
    schema = Artifact.open(tmp_path / "a.pac").schema
    plain = {"amount": numbers.tolist(), "cost": (numbers + 0.5).tolist()}
    asked = {"amount": written, "cost": [f"{w},5" for w in written]}
    assert schema.digests(schema.rows(asked)) == schema.digests(schema.rows(plain))
    code, output, _ = run_here(capsys, "show", tmp_path / "a.pac", "--columns")
    assert any(line.split() == ["cost", "number", "1.234,5"] for line in output.splitlines())
    code, _, errors = run_here(capsys, "verify", tmp_path / "a.pac", "--models", "2", "--jobs", "1")
    assert code == 0, errors
    (tmp_path / "q.csv").write_text("amount;cost\n17.454;17.454,5\n17454;17454,5\n")
    code, output, errors = run_here(capsys, "predict", tmp_path / "a.pac", tmp_path / "q.csv")
    assert code == 0, errors
    first, second = (line.split(",")[:2] for line in output.splitlines()[1:])
    assert first == second  # one label, and one number in the history
    (tmp_path / "bad.csv").write_text("amount;cost\n17.454;17.454,5\n\n17.454;17.454.5\n")
    code, output, errors = run_here(capsys, "predict", tmp_path / "a.pac", tmp_path / "bad.csv")
    assert (code, output) == (2, "")
    assert "bad.csv, line 4: column 'cost', row 1 (from 0): expected a number written as 1.234,5" in errors


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--dry-run"], "say which column is to be predicted: --target COLUMN"),
        (["--target", TARGET], "one of the arguments --out --dry-run is required"),
        (["--target", TARGET, "--dry-run", "--types", "age"], "'age' is not of the form COLUMN=TYPE"),
        (["--target", TARGET, "--dry-run", "--types", "age=int"], "must be one of number, boolean"),
        (["--target", TARGET, "--dry-run", "--drop", "agee"], "no column 'agee' to drop"),
        (["--dry-run", "--config", "none.toml"], "there is no file none.toml"),
        (["--target", "length_of_stay", "--drop", "admitted", "born", "--dry-run"], "looks continuous"),
    ],
    ids=str,
)
def test_what_is_said_wrongly(options, words, folder, capsys):
    """One line says what is wrong, with exit code 2."""
    code, _, errors = run_here(capsys, "fit", folder / "stays.csv", *options)
    assert code == 2
    assert words in errors


def test_a_file_that_is_no_toml(folder, tmp_path, capsys):
    """A broken file is named with the place where it breaks."""
    (tmp_path / "broken.toml").write_text("target = \n")
    code, _, errors = run_here(
        capsys, "fit", folder / "stays.csv", "--config", tmp_path / "broken.toml", "--dry-run"
    )
    assert code == 2
    assert "is no TOML file" in errors
    assert "line 1" in errors


def test_categories_that_are_declared(tmp_path, capsys):
    """A list of categories comes by the command line or the file, with any sign in its names; a minimum must be one."""
    table = hospital(60)[["age", "diagnosis", TARGET]][:119].assign(**{"bed=a": ["A=1", "B:2"] * 59 + ["C"]})
    table.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "t.toml").write_text('[types]\ndiagnosis = ["I10", "J11"]\n')
    declared = ["--target", TARGET, "--config", tmp_path / "t.toml", "--types", "bed=a=category:A=1,B:2,Z"]
    out = tmp_path / "a.pac"
    code, _, errors = run_here(capsys, "fit", tmp_path / "t.csv", *declared, "--out", out, *QUICK)
    assert code == 0, errors
    listed = {column.name: column.categories for column in Artifact.open(out).schema.columns}
    assert listed == {"age": (), "diagnosis": ("I10", "J11"), "bed=a": ("A=1", "B:2", "Z")}
    code, output, _ = run_here(capsys, "verify", out, "--models", "2", "--jobs", "1", "--json")
    assert json.loads(output)["models_identical"] == 2
    options = ["--target", TARGET, "--dry-run", "--min-category", "0"]
    code, _, errors = run_here(capsys, "fit", tmp_path / "t.csv", *options)
    assert (code, "min_category must be a whole number of units from 1 on, got 0" in errors) == (2, True)
