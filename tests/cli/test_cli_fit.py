"""fit, predict, show and verify, as people run them."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from artifacts import fit_small, model_files, rehash, save_with
from records import labels_of, mixed_pool, mixed_table, recipe, small_learner
from terminal import refused, run_here

from pacpredict.artifact.artifact import Artifact
from pacpredict.deployment import Deployment
from pacpredict.tables.read import read_table
from pacpredict.training.fit import fit
from pacpredict.training.pool import Pool
from pacpredict.training.space import summarise_posterior

PROGRAM = shutil.which("pacpredict", path=Path(sys.executable).parent) or "pacpredict"
QUICK = ["--learner", "logistic", "--models", "4", "--jobs", "1", "--seed", "1"]


def run(*arguments, cwd):
    """Run the installed program; that it compiles kernels, once per installation, is left out of what it says."""
    done = subprocess.run(
        [PROGRAM, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        timeout=120,
        env={**os.environ, "COLUMNS": "80"},
    )
    lines = done.stderr.splitlines(keepends=True)
    done.stderr = "".join(line for line in lines if "compiling numerical kernels" not in line)
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with training data and queries, where '?' means missing."""
    folder = tmp_path_factory.mktemp("cli")
    table = mixed_table(60).astype({"grade": str})
    table["kind"] = labels_of(table)
    table.to_csv(folder / "train.csv", index=False, na_rep="?")
    table.to_parquet(folder / "train.parquet")
    queries = mixed_table(20, seed=3).astype({"grade": str})
    queries.to_csv(folder / "queries.csv", index=False, na_rep="?")
    queries.iloc[:, ::-1].to_parquet(folder / "queries.parquet")
    return folder


@pytest.fixture(scope="module")
def made(folder):
    """Return what the installed program prints when it makes an artifact."""
    command = [
        "fit",
        "train.csv",
        "--target",
        "kind",
        "--missing",
        "?",
        "--out",
        "a.pac",
        "--step-budget",
        "2^-8",
        "--total-budget",
        "0.5",
        "--odds-limit",
        "none",
    ]
    return run(*command, *QUICK, "--json", cwd=folder)


def shown_of(path):
    """Return what the library says about an artifact."""
    with Deployment.open(path) as deployment:
        told = summarise_posterior(deployment.membership_posterior())
        return {**deployment.describe(), **deployment.privacy(), "membership_posterior": told}


def test_from_table_to_labels(made, folder):
    """The installed program fits, answers, shows what was spent, answers again for nothing and verifies."""
    assert made.returncode == 0
    assert [made.stderr.splitlines()[i] for i in (0, -1)] == ["0/4 models", "4/4 models"]
    fitted = json.loads(made.stdout)
    assert fitted == shown_of(folder / "a.pac")
    assert (fitted["queries"], fitted["spent_nats"], fitted["total_nats"]) == (0, 0.0, 0.5)

    ask = ["predict", "a.pac", "queries.csv", "--missing", "?"]
    first = run(*ask, "--out", "labels.csv", "--json", cwd=folder)
    assert (first.returncode, first.stderr) == (0, "")
    summary = json.loads(first.stdout)
    assert summary["rows"] == 20
    assert summary["charge_nats"] == summary["charged_rows"] * 2.0**-8 == summary["spent_nats"] > 0
    labels = list(csv.DictReader((folder / "labels.csv").read_text().splitlines()))
    assert {row["label"] for row in labels} <= {"a", "b"}
    assert [int(row["sequence"]) for row in labels] == list(range(1, 21))
    assert sum(float(row["charge_nats"]) for row in labels) == summary["charge_nats"]

    again = run(*ask, cwd=folder)  # another process
    assert again.returncode == 0
    assert again.stderr == (
        f"20 rows answered, 0 of them charged: 0 nats; spent by now: {summary['spent_nats']:.6g} of 0.5, "
        f"which leaves {128 - summary['charged_rows']} contested rows\n"
    )
    answers = list(csv.DictReader(again.stdout.splitlines()))
    assert [row["label"] for row in answers] == [row["label"] for row in labels]

    shown = run("show", "a.pac", "--json", cwd=folder)
    assert shown.stderr == ""
    report = json.loads(shown.stdout)
    assert report == shown_of(folder / "a.pac")
    assert (report["queries"], report["spent_nats"]) == (20, summary["spent_nats"])
    assert report["membership_posterior"]["smallest"] < 0.5 < report["membership_posterior"]["largest"]

    verified = run("verify", "a.pac", "--models", "2", "--jobs", "1", "--json", cwd=folder)
    assert json.loads(verified.stdout) == {"models_checked": 2, "models_identical": 2}


def test_the_artifact_is_that_of_the_library(made, folder):
    """What the terminal makes of a file is what the library makes of its table."""
    pool = Pool.of_frame(read_table(folder / "train.csv", ["?"]), "kind")
    again = fit(pool, Artifact.open(folder / "a.pac").learner, recipe(seed=1), n_jobs=1)
    stored = model_files(folder / "a.pac")
    assert [stored[f"models/{i:03d}.npz"] for i in range(4)] == [
        again.learner.dump(one.model) for one in again.models
    ]


def test_parquet_is_the_same_table(made, folder, tmp_path, capsys):
    """A Parquet file of the same records gives the same models, and its queries are known ones."""
    out = tmp_path / "p.pac"
    code, *_ = run_here(capsys, "fit", folder / "train.parquet", "--target", "kind", "--out", out, *QUICK)
    assert code == 0
    assert model_files(out) == model_files(folder / "a.pac")
    run_here(capsys, "predict", folder / "a.pac", folder / "queries.csv", "--missing", "?")
    code, output, _ = run_here(capsys, "predict", folder / "a.pac", folder / "queries.parquet", "--json")
    summary = json.loads(output)
    assert (code, summary["rows"], summary["charged_rows"]) == (0, 20, 0)
    assert set(summary["labels"]) <= {"a", "b"}


def test_show_for_people(made, folder, capsys):
    """Without --json the same facts come as tables within 80 columns."""
    code, output, _ = run_here(capsys, "show", folder / "a.pac")
    assert code == 0
    for text in (
        *("4 x logistic", "60", "2 number", "was this record trained on?", "a, b", "2^-8.00", "50.0000%"),
        "95.1812%",
    ):
        assert text in output
    assert max(map(len, output.splitlines())) <= 80


def test_options_reach_the_recipe(folder, tmp_path, capsys):
    """Every option of fit is in the artifact."""
    out = tmp_path / "o.pac"
    options = (
        "--learner decision-tree --models 6 --rate 1/3 --step-budget 2^-10 --total-budget 0.5 --decode map"
        " --noise fair --odds-limit none"
    )
    options += (
        " --charging flat --when-exhausted unanimous --min-category 4 --seed 9 --backend threading --jobs 2"
    )
    code, *_ = run_here(
        capsys,
        "fit",
        folder / "train.csv",
        "--target",
        "kind",
        "--missing",
        "?",
        "--out",
        out,
        *options.split(),
    )
    assert code == 0
    artifact = Artifact.open(out)
    made, budget = artifact.recipe, artifact.recipe.budget
    assert (made.seed, made.n_models, made.rate, made.decode) == (9, 6, 1 / 3, "map")
    assert (budget.step, budget.total, budget.charging, budget.when_exhausted) == (
        *(2.0**-10, 0.5, "flat", "unanimous"),
    )
    assert (budget.odds_limit, budget.noise) == (None, "fair")
    assert artifact.learner.name == "decision-tree"
    assert artifact.schema.min_category == 4
    queries = tmp_path / "q.csv"
    mixed_table(5).assign(job="smuggler").to_csv(queries, index=False)
    code, output, _ = run_here(capsys, "predict", out, queries, "--json")
    assert (code, len(json.loads(output)["labels"])) == (0, 5)
    code, output, _ = run_here(capsys, "show", out, "--json")
    report = json.loads(output)
    assert report["bounds"]["membership"]["prior"] == pytest.approx(2 / 3)
    assert report["queries"] * 2.0**-10 == report["spent_nats"]
    assert (report["decoder"], report["noise"]) == ("map", "fair")
    assert re.search(r"noise of argmax and map +fair", run_here(capsys, "show", out)[1])
    half = tmp_path / "h.pac"
    options = ["--construction", "half-partitions", "--learner", "ridge", "--models", "4", "--jobs", "1"]
    table = ["fit", folder / "train.csv", "--target", "kind", "--missing", "?"]
    assert run_here(capsys, *table, "--out", half, *options)[0] == 0
    subsets = Artifact.open(half).space.subsets.matrix()
    assert (subsets[0] ^ subsets[1]).all()


def test_tune_searches(folder, tmp_path, capsys, monkeypatch):
    """--tune alone searches by halving, --tune full the whole grid; what was chosen is in the records."""
    monkeypatch.setattr("pacpredict.learners.search.GRID", {"max_depth": (1, 2)})
    monkeypatch.setattr("pacpredict.learners.search.TREES", (2, 3))
    table = [
        "fit",
        folder / "train.csv",
        "--target",
        "kind",
        "--missing",
        "?",
        "--models",
        "2",
        "--jobs",
        "1",
    ]
    for name, options in (("halving", ["--tune"]), ("full", ["--tune", "full"])):
        code, *_ = run_here(capsys, *table, *options, "--out", tmp_path / name)
        assert code == 0
        artifact = Artifact.open(tmp_path / name)
        assert artifact.learner.tune == name
        assert all(record["notes"]["n_estimators"] in {2, 3} for record in artifact.records())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--target", "sort"], "no column 'sort' to predict"),
        (["--target", "kind", "--models", "5"], "even"),
        (["--target", "kind", "--learner", "ridge", "--tune"], "no settings that could be searched"),
        (["--target", "kind", "--rate", "0"], "rate"),
        (["--target", "kind", "--jobs", "0"], "got 0"),
        (["--target", "kind", "--backend", "clowns"], "no backend 'clowns'"),
        (["--target", "kind", "--learner", "forest"], "invalid choice: 'forest'"),
        (["--target", "kind", "--step-budget", "2", "--total-budget", "1"], "not even one query fits"),
        (["--target", "kind", "--step-budget", "2^-8"], "the target allows 0.000233 nats in all"),
        (["--target", "kind", "--queries", "5", "--success", "0.6", "--step-budget", "1"], "all three"),
        (["--target", "kind", "--success", "0.6", "--tpr", "0.1"], "not allowed with"),
        (["--target", "note"], "missing values; drop these records"),
        ([], "--target"),
    ],
    ids=str,
)
def test_a_fit_that_is_refused(options, words, folder, tmp_path, capsys):
    """What cannot be fitted takes one line and exit code 2, and leaves no artifact."""
    table = ["fit", folder / "train.csv", "--missing", "?", "--out", tmp_path / "a.pac"]
    assert words in refused(capsys, *table, *options)
    assert not list(tmp_path.glob("a.pac*"))


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("train.csv", "exists already"),
        ("train.csv/a.pac", "train.csv: Not a directory"),
        ("/proc/deeper/a.pac", "/proc/deeper/a.pac cannot be made: /proc: "),
        ("", ". exists already"),
    ],
)
def test_a_place_where_nothing_can_be_made(out, words, folder, capsys, monkeypatch):
    """An impossible place is refused at once, before the table is read."""
    monkeypatch.chdir(folder)
    assert words in refused(capsys, "fit", "absent.csv", "--target", "kind", "--out", out)


def test_tables_that_are_refused(folder, tmp_path, capsys):
    """A file that is not there, has one class, duplicate columns or infinities is refused before any training."""
    fit_to = ["--target", "kind", "--out", tmp_path / "a.pac"]
    assert "there is no file" in refused(capsys, "fit", tmp_path / "none.csv", *fit_to)
    cases = {
        "one.csv": ("x,kind\n" + "1,a\n" * 20, "1 class"),
        "few.csv": ("x,kind\n1,a\n2,b\n", "too few records"),
        "twice.csv": ("x,x,kind\n" + "1,2,a\n1,2,b\n" * 9, "more than one column called 'x'"),
        "infinite.csv": ("x,kind\n" + "1,a\ninf,b\n" * 9, "infinite"),
        "holes.csv": ("x,kind\n" + "1,a\n2,b\n" * 9 + "3,\n", "1 missing values"),
    }
    for name, (text, words) in cases.items():
        (tmp_path / name).write_text(text)
        assert words in refused(capsys, "fit", tmp_path / name, *fit_to)
    assert not list(tmp_path.glob("a.pac*"))


def test_queries_that_are_refused(made, folder, tmp_path, capsys):
    """A query that does not fit takes one line and exit code 2; nothing is charged."""
    artifact = folder / "a.pac"
    before = shown_of(artifact)
    cases = {
        "columns": (mixed_table(3).drop(columns="age"), "columns 'age' are missing"),
        "type": (mixed_table(3).assign(age="old"), "expected a number, got 'old'"),
        "rows": (mixed_table(3)[:0], "no rows"),
    }
    for name, (table, words) in cases.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        assert words in refused(capsys, "predict", artifact, tmp_path / f"{name}.csv")
    nowhere = tmp_path / "none" / "labels.csv"
    assert "there is no folder" in refused(
        capsys, "predict", artifact, folder / "queries.csv", "--missing", "?", "--out", nowhere
    )
    assert "there is no artifact" in refused(capsys, "predict", tmp_path / "b.pac", folder / "queries.csv")
    assert shown_of(artifact) == before


def test_a_spent_budget_is_refused_whole(tmp_path, capsys):
    """What the budget does not allow is refused as a whole, and nothing is charged."""
    fit_small(tmp_path / "a.pac", how=recipe(step=0.25, total=0.25))
    mixed_table(40, seed=3).to_csv(tmp_path / "q.csv", index=False)
    assert "Nothing was drawn or charged" in refused(
        capsys, "predict", tmp_path / "a.pac", tmp_path / "q.csv"
    )
    assert shown_of(tmp_path / "a.pac")["queries"] == 0


def test_a_row_that_occurs_twice_is_charged_once(tmp_path, capsys):
    """The summary counts what was really charged."""
    fit_small(tmp_path / "a.pac", how=recipe(step=2.0**-8))
    rows = mixed_table(10, seed=3)
    twice = tmp_path / "twice.csv"
    twice.write_text(rows.to_csv(index=False) + rows.to_csv(index=False, header=False))
    code, output, _ = run_here(capsys, "predict", tmp_path / "a.pac", twice, "--json")
    summary = json.loads(output)
    assert (code, summary["rows"]) == (0, 20)
    assert summary["charge_nats"] == summary["spent_nats"]


def test_nothing_printed_depends_on_the_secret(tmp_path, capsys):
    """For each possible secret show prints the same, but for the identity and the date."""
    fitted = fit(mixed_pool(40), small_learner("ridge"), recipe(), n_jobs=1)
    printed = set()
    for index in range(4):
        path = tmp_path / str(index) / "a.pac"
        save_with(path, fitted, index)
        for options in ([], ["--json"]):
            code, output, errors = run_here(capsys, "show", path, *options)
            assert (code, errors) == (0, "")
            output = output.replace(Artifact.open(path).identity, "").replace(
                Artifact.open(path).identity[:16], ""
            )
            printed.add(re.sub(r"\d{4}-\d\d-\d\dT[0-9:+]+", "", output))
    assert len(printed) == 2


def test_verify_finds_what_is_wrong(made, folder, tmp_path, capsys):
    """An edited model, other data and an artifact that was fitted in Python take one line each."""
    home = Path(shutil.copytree(folder / "a.pac", tmp_path / "a.pac"))
    assert "does not know its data" in refused(capsys, "verify", fit_small(tmp_path / "b.pac").path)
    other = tmp_path / "other.csv"
    table = mixed_table(60, seed=7)
    table.assign(kind=labels_of(table)).to_csv(other, index=False)
    assert "not the records" in refused(capsys, "verify", home, "--data", other)
    moved = shutil.copy(folder / "train.csv", tmp_path / "moved.csv")
    code, output, _ = run_here(capsys, "verify", home, "--data", moved, "--models", "1", "--jobs", "1")
    assert (code, output) == (
        0,
        "all files are as they were written; 1 models trained again are identical to the byte\n",
    )
    (home / "votes.npz").write_bytes((fit_small(tmp_path / "c.pac").path / "votes.npz").read_bytes())
    assert "votes.npz has changed" in refused(capsys, "verify", home)
    rehash(home)
    assert "pacpredict: error:" in refused(capsys, "verify", home)
