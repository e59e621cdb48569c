"""predict from day to day: columns that are carried along, files that are not overwritten, devices, what is left."""

import csv
import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from artifacts import fit_small
from live_server import ServerProcess
from records import labels_of, mixed_table, recipe

from pacpredict.artifact.artifact import Artifact
from pacpredict.cli import main
from pacpredict.deployment import Deployment


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


def refused(capsys, *arguments):
    code, output, errors = run(capsys, *arguments)
    assert (code, output, errors.count("\n")) == (2, "", 1)
    return errors


def queries(n=6, **columns):
    return mixed_table(n, seed=5).astype({"grade": str}).assign(**columns)


def rows_of(path):
    return list(csv.DictReader(Path(path).read_text().splitlines()))


def n_answered(path):
    with Deployment.open(path) as deployment:
        return deployment.privacy()["queries"]


@pytest.fixture
def home(tmp_path):
    """A folder with an artifact whose target is called kind, and queries of ten visits by three patients."""
    source = {"path": "train.csv", "target": "kind", "missing": ["n/a"], "drop": ["ward"], "person": "who"}
    fit_small(tmp_path / "a.pac", how=recipe(step=2.0**-8, total=1.0), source=source)
    visits = queries(10)
    visits = visits.assign(patient=[7, 8, 9, 7, 8, 9, 7, 8, 9, 7], when="May, 3rd", kind=labels_of(visits))
    visits.to_csv(tmp_path / "visits.csv", index=False)
    visits.to_parquet(tmp_path / "visits.parquet")
    return tmp_path


@pytest.mark.parametrize("file", ["visits.csv", "visits.parquet"])
def test_columns_are_carried_along(home, capsys, file):
    """--keep takes columns into the answer, features or not, in front and in their order; others are asked as ever."""
    code, output, errors = run(capsys, "predict", home / "a.pac", home / file, "--keep", "patient,when,age")
    assert code == 0
    table = list(csv.DictReader(output.splitlines()))
    assert list(table[0]) == ["patient", "when", "age", "label", "sequence", "charge_nats"]
    assert [row["patient"] for row in table] == list("7897897897")
    assert {row["when"] for row in table} == {"May, 3rd"}
    with Deployment.open(home / "a.pac") as deployment:
        plain = deployment.ask(queries(10))
    assert [row["label"] for row in table] == plain.labels.tolist()
    said = "not looked at, since models do not learn from it: column 'kind'\n10 rows answered"
    assert errors.startswith(said)


def test_kept_columns_stay_as_they_are_written(home, capsys):
    """Codes keep their zeros, and what means missing among features is nothing special among them."""
    table = queries(3, code=["007", "?", ""]).drop(columns="hours").assign(hours="?")
    table.to_csv(home / "q.csv", index=False)
    options = ["--keep", "code", "--missing", "?"]
    code, output, _ = run(capsys, "predict", home / "a.pac", home / "q.csv", *options)
    assert (code, [row["code"] for row in csv.DictReader(output.splitlines())]) == (0, ["007", "?", ""])


def test_what_was_known_of_the_training_data_is_known_now(home, capsys):
    """Columns that training left out are left out again, with a word, and what meant missing there does here."""
    table = queries(3, ward=5, who="zoe", hours="n/a")
    table.to_csv(home / "q.csv", index=False)
    code, output, errors = run(capsys, "predict", home / "a.pac", home / "q.csv")
    assert (code, output.count("\n")) == (0, 4)
    assert errors.startswith("not looked at, since models do not learn from it: column 'ward', 'who'\n")
    with Deployment.open(home / "a.pac") as deployment:
        again = deployment.ask(queries(3, hours=None))
    assert all(release.charge == 0 for release in again.releases)


def test_the_target_is_not_looked_at(home, capsys):
    """The column to predict may be there: it changes no answer; kept, it is carried along without a word."""
    ask = ["predict", home / "a.pac", home / "visits.csv", "--keep", "patient,when"]
    code, output, errors = run(capsys, *ask)
    assert (code, "kind" in output) == (0, False)
    assert "not looked at" in errors
    code, kept, errors = run(capsys, *ask, "--keep", "kind")
    assert (code, "not looked at" in errors, kept.splitlines()[0]) == (
        *(0, False, "patient,when,kind,label,sequence,charge_nats"),
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "the model has no column 'patient', 'when'; --keep patient,when carries"),
        (["--keep", "patient"], "no column 'when'; --keep when carries"),
        (["--keep", "patient,whence"], "there is no column 'whence' to keep"),
        (["--out", "."], "is a folder"),
        (["--out", "none/labels.csv"], "there is no folder"),
        (["--out", "visits.csv/labels.csv"], "there is no folder"),
        (["--out", "visits.csv"], "exists already: choose another name, or say --force"),
        (["--out", "/proc/labels.csv"], "cannot be written"),
        (["--out", "a.pac/labels.csv"], "is in the artifact a.pac, which holds nothing but its own files"),
        (["--out", "a.pac/secret.json", "--force"], "is in the artifact a.pac"),
    ],
    ids=str,
)
def test_what_is_refused_charges_nothing(home, capsys, monkeypatch, options, words):
    """Columns nobody knows, and places where nothing can be written, are refused before anything is asked."""
    monkeypatch.chdir(home)
    assert words in refused(capsys, "predict", "a.pac", "visits.csv", *options)
    assert n_answered("a.pac") == 0
    assert not list(home.glob("*.new"))


def test_a_column_of_the_answers_own_name(home, capsys):
    """A kept column cannot hide the labels."""
    queries(3, label=1).to_csv(home / "q.csv", index=False)
    assert "of its own" in refused(capsys, "predict", home / "a.pac", home / "q.csv", "--keep", "label")


def test_nothing_is_overwritten_unasked(home, capsys):
    """A file that exists stays as it is, and nothing is charged, unless --force says so."""
    queries(4).to_csv(home / "q.csv", index=False)
    out = home / "labels.csv"
    out.write_text("precious")
    ask = ["predict", home / "a.pac", home / "q.csv", "--out", out]
    assert "exists already" in refused(capsys, *ask)
    assert out.read_text() == "precious"
    assert n_answered(home / "a.pac") == 0
    assert run(capsys, *ask, "--force")[0] == 0
    assert len(rows_of(out)) == 4


def test_a_link_is_followed(home, capsys):
    """What a symbolic link leads to is written, and the link stays one."""
    queries(4).to_csv(home / "q.csv", index=False)
    (home / "real.csv").write_text("old")
    (home / "link.csv").symlink_to("real.csv")
    ask = ["predict", home / "a.pac", home / "q.csv", "--out", home / "link.csv"]
    assert "exists already" in refused(capsys, *ask)
    assert run(capsys, *ask, "--force")[0] == 0
    assert (home / "link.csv").is_symlink()
    assert len(rows_of(home / "real.csv")) == 4


def test_a_pipe_is_written_to_and_stays_one(home, capsys):
    """What is no plain file is never replaced by one: a named pipe gets the labels, without --force."""
    queries(4).to_csv(home / "q.csv", index=False)
    pipe = home / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    assert run(capsys, "predict", home / "a.pac", home / "q.csv", "--out", pipe)[0] == 0
    reader.join(30)
    assert got[0].count("\n") == 5
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a device")
def test_a_device_is_not_replaced(home, capsys):
    """As root, too: a device node stays a device node."""
    queries(4).to_csv(home / "q.csv", index=False)
    device = home / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    except OSError as problem:
        pytest.skip(f"no device can be made here: {problem}")
    code, *_ = run(capsys, "predict", home / "a.pac", home / "q.csv", "--out", device)
    assert (code, stat.S_ISCHR(device.stat().st_mode)) == (0, True)


def test_standard_output_by_its_name(home):
    """/dev/stdout is written to also where it leads to a file."""
    queries(4).to_csv(home / "q.csv", index=False)
    program = "import sys; from pacpredict.cli import main; sys.exit(main(sys.argv[1:]))"
    ask = ["predict", "a.pac", "q.csv", "--out", "/dev/stdout"]
    with (home / "redirected").open("w") as stream:
        done = subprocess.run(
            [sys.executable, "-c", program, *ask],
            stdout=stream,
            stderr=subprocess.PIPE,
            cwd=home,
            check=False,
        )
    assert (done.returncode, len(rows_of(home / "redirected"))) == (0, 4)


def test_what_is_left_is_said_in_rows(home, capsys):
    """The summary says for how many contested rows the budget suffices still."""
    queries(10).to_csv(home / "q.csv", index=False)
    code, output, _ = run(capsys, "predict", home / "a.pac", home / "q.csv", "--json")
    summary = json.loads(output)
    assert (code, summary["rows_left"]) == (0, 256 - summary["charged_rows"])
    _, _, errors = run(capsys, "predict", home / "a.pac", home / "q.csv")
    assert errors.endswith(f"of 1, which leaves {summary['rows_left']} contested rows\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_one_line(home, capsys):
    """What the operating system refuses is said in one line, with the file's name and exit code 1."""
    queries(4).to_csv(home / "q.csv", index=False)
    code, output, errors = run(capsys, "predict", home / "a.pac", home / "q.csv", "--out", "/dev/full")
    assert (code, output) == (1, "")
    assert errors.splitlines()[-1] == "pacpredict: error: /dev/full: No space left on device"


def test_charges_of_an_earlier_run_stay(home, capsys):
    """The table says what each answer was charged when it was first given, however often it is asked for."""
    queries(30).to_csv(home / "q.csv", index=False)
    ask = ["predict", home / "a.pac", home / "q.csv", "--out", home / "labels.csv"]
    code, _, errors = run(capsys, *ask)
    first = rows_of(home / "labels.csv")
    assert (code, " 0 of them charged" in errors) == (0, False)
    assert sum(float(row["charge_nats"]) for row in first) > 0
    code, _, errors = run(capsys, *ask, "--force")
    assert (code, "30 rows answered, 0 of them charged: 0 nats" in errors) == (0, True)
    assert rows_of(home / "labels.csv") == first


def test_a_short_budget_says_how_many_rows_fit(home, capsys):
    """What does not fit is refused whole, and the rows that would fit are counted, those on record included."""
    fit_small(home / "b.pac", how=recipe(step=0.25, total=1.0))
    queries(60).to_csv(home / "q.csv", index=False)
    assert run(capsys, "predict", home / "a.pac", home / "q.csv", "--out", home / "all.csv")[0] == 0
    contested = [float(row["charge_nats"]) > 0 for row in rows_of(home / "all.csv")]  # by the same models
    fitting = [i for i, differ in enumerate(contested, 1) if differ][
        3
    ]  # up to the fourth, which spends the last nat
    errors = refused(capsys, "predict", home / "b.pac", home / "q.csv")
    assert f"The first {fitting} of 60 rows fit: ask for no more than these." in errors
    queries(60)[:2].to_csv(home / "two.csv", index=False)
    assert run(capsys, "predict", home / "b.pac", home / "two.csv")[0] == 0
    assert f"The first {fitting} of 60 rows fit" in refused(capsys, "predict", home / "b.pac", home / "q.csv")
    queries(60)[:fitting].to_csv(home / "fit.csv", index=False)
    assert run(capsys, "predict", home / "b.pac", home / "fit.csv")[0] == 0


def test_another_decoder(home, capsys):
    """--decode changes how new answers are read off the noise; answers on record stay what they are.

    With next to no budget an argmax answer is a coin toss, and a map answer the vote of all models.
    """
    fit_small(home / "b.pac", how=recipe(step=2.0**-50, total=2.0**-40))
    table = queries(200)
    table.to_csv(home / "q.csv", index=False)
    ensemble = Artifact.open(home / "b.pac").ensemble()
    votes = ensemble.votes(ensemble.schema.rows(table))
    clear = 2 * votes.sum(axis=1) != votes.shape[1]  # neither label has half of the models
    expected = ensemble.labels((2 * votes.sum(axis=1) > votes.shape[1]).astype(int))
    code, output, _ = run(capsys, "predict", home / "b.pac", home / "q.csv", "--decode", "map", "--json")
    labels = np.array(json.loads(output)["labels"])
    assert code == 0
    assert (votes != votes[:, :1]).any(axis=1)[clear].sum() > 20  # of which a coin would get some wrong
    assert (labels[clear] == expected[clear]).all()
    _, again, _ = run(capsys, "predict", home / "b.pac", home / "q.csv", "--json")
    assert json.loads(again)["labels"] == labels.tolist()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_declared_codes_mean_missing_by_every_way(tmp_path, capsys, ending):
    """A code of the training data is missing in a file, a frame, as a number and over HTTP: one query, one charge."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(20, 90, 200), "ward": rng.choice(["A", "B"], 200)})
    table["kind"] = rng.choice(["ill", "well"], 200)
    table.loc[::7, "age"], table.loc[::5, "ward"] = -9, "n/a"
    write = {"csv": lambda frame, to: frame.to_csv(to, index=False), "parquet": pd.DataFrame.to_parquet}[
        ending
    ]
    write(table, tmp_path / f"train.{ending}")
    path, codes = tmp_path / "a.pac", ["--missing", "n/a", "--missing=-9"]
    options = ["--target", "kind", "--learner", "decision-tree", "--models", "8", "--jobs", "1", *codes]
    code, *_ = run(capsys, "fit", tmp_path / f"train.{ending}", *options, "--out", path)
    assert code == 0
    given = {"age": [-9], "ward": ["n/a"]}
    forms = [
        given,
        {"age": ["-9"], "ward": [None]},
        {"age": [None], "ward": ["n/a"]},
        {"age": [-9.0], "ward": [None]},
    ]
    with Deployment.open(path) as deployment:
        numbers = {deployment.ask(pd.DataFrame(form)).releases[0].sequence for form in forms}
    pd.DataFrame(given).to_csv(tmp_path / "query.csv", index=False)
    code, output, _ = run(capsys, "predict", path, tmp_path / "query.csv")
    numbers |= {int(row["sequence"]) for row in csv.DictReader(output.splitlines())}
    with ServerProcess(path) as server:
        reply = server.http.post(
            "/invocations", json={"dataframe_records": [{"age": -9, "ward": "n/a"}]}
        ).json()
        numbers |= set(reply["parameters"]["sequence"])
    assert numbers == {1}
