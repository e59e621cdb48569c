"""`evaluate` on the terminal: figures, advice and a picture, and nothing that outlives it."""

import json
import re
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from hospital import OPTIONS, TARGET, hospital
from PIL import Image

from pacpredict.artifact.artifact import Artifact
from pacpredict.cli import main
from pacpredict.core.decode import DECODERS
from pacpredict.evaluation.advice import advise
from pacpredict.evaluation.evaluate import Evaluation
from pacpredict.evaluation.forecast import Case, Forecast
from pacpredict.evaluation.score import Score

FEW = ["--models", "8", "--folds", "2", "--trials", "10", "--jobs", "1"]
QUICK = [*FEW, "--budgets", "2^-4", "2^-32"]


def run_here(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    table = hospital(60)
    table.drop(columns=OPTIONS["drop"]).to_csv(folder / "stays.csv", index=False)
    said = [
        f'target = "{OPTIONS["target"]}"',
        'drop = ["patient_id"]',
        f"missing = {json.dumps(OPTIONS['missing'])}",
    ]
    types = [f'{name} = "{kind}"' for name, kind in OPTIONS["types"].items()]
    (folder / "stays.toml").write_text("\n".join([*said, "[types]", *types]))
    rng = np.random.default_rng(0)
    easy = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    easy.assign(y=np.where(easy["a"] + 0.05 * rng.normal(size=200) > 0, "yes", "no")).to_csv(
        folder / "easy.csv", index=False
    )
    return folder


def test_the_shape_for_programs(folder, capsys):
    """One object with the accuracies, the contested share, and a case for each decoder and budget."""
    before = sorted(folder.iterdir())
    code, output, errors = run_here(
        capsys, "evaluate", folder / "easy.csv", "--target", "y", "--learner", "logistic", *QUICK, "--json"
    )
    found = json.loads(output)
    assert code == 0
    assert errors.splitlines()[-1] == "18/18 models of logistic"
    for name in ("unprotected", "half", "contested"):
        assert 0 <= found[name] <= 1
    assert found["unprotected"] > 0.9
    assert [set(case) for case in found["cases"]] == [{"decode", "step_budget", "accuracy", "sd"}] * len(
        DECODERS
    ) * 2
    assert {(case["decode"], case["step_budget"]) for case in found["cases"]} == {
        (decode, step) for decode in DECODERS for step in (2.0**-4, 2.0**-32)
    }
    assert found["recommended"]["learner"] == "logistic"
    assert found["recommended"]["step_budget"] == 2.0**-32
    total = found["loss"]["half_data"] + found["loss"]["noise"]
    assert total == pytest.approx(found["unprotected"] - found["recommended"]["accuracy"])
    assert len(found["learners"]) == 1
    assert sorted(folder.iterdir()) == before  # no artifact, no ledger


def test_for_people(folder, capsys, monkeypatch, tmp_path):
    """Tables within 80 columns, advice, and what to think about: on patients' data models disagree on most queries."""
    monkeypatch.setenv("COLUMNS", "80")
    command = ["evaluate", folder / "stays.csv", "--config", folder / "stays.toml"]
    learners = ["--learner", "decision-tree", "--learner", "ridge"]
    code, output, _ = run_here(capsys, *command, *learners, *QUICK, "--plot", tmp_path / "a.png")
    assert code == 0
    assert max(map(len, output.splitlines())) <= 80
    flat = " ".join(output.split())
    assert "8 x decision-tree, 2 folds" in flat
    assert "8 x ridge, 2 folds" in flat
    assert "always the most frequent class" in flat
    assert "recommended at 2^-32, among decision-tree and ridge:" in flat
    assert "no better than always answering with the most frequent class" in flat
    assert "models disagree on" in flat
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.width > picture.height > 300
        assert len(picture.convert("RGB").getcolors(2**24)) > 100


def test_pictures_for_print(folder, tmp_path, capsys):
    """An SVG is one, with a curve for each decoder."""
    options = ["--target", "y", "--learner", "ridge", *QUICK, "--plot", tmp_path / "a.svg"]
    assert run_here(capsys, "evaluate", folder / "easy.csv", *options)[0] == 0
    root = ET.parse(tmp_path / "a.svg").getroot()
    assert root.tag.endswith("svg")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--plot", "a.gif"], "a plot ends in .png, .svg, .pdf"),
        (["--tune-for", "private"], "has nothing to choose"),
        (["--learner", "ridge", "--tune"], "no settings that could be searched on each subset"),
        (["--folds", "1"], "folds"),
        (["--step-budget", "0"], "budget"),
        (["--decode", "mode"], "decode must be one of argmax, map"),
        (
            ["--class-weight", "perhaps=2", "--learner", "ridge"],
            "weighs 'perhaps', which is none of the labels",
        ),
        (["--class-weight", "yes"], "'yes' is not of the form LABEL=WEIGHT"),
        (["--class-weight", "balanced", "yes=2", "--learner", "ridge"], "not both"),
    ],
    ids=str,
)
def test_what_is_refused(options, words, folder, capsys):
    """One line says what is wrong."""
    code, output, errors = run_here(capsys, "evaluate", folder / "easy.csv", "--target", "y", *FEW, *options)
    assert (code, output) == (2, "")
    assert words in errors.splitlines()[-1]


def test_tuned_for_private_answers(folder, tmp_path, capsys):
    """evaluate chooses on each fold what a fit would; a fit says what it chose, and interrupted goes on with it."""
    data = [
        folder / "easy.csv",
        "--target",
        "y",
        "--learner",
        "decision-tree",
        "--tune",
        "--tune-for",
        "private",
    ]
    code, output, _ = run_here(capsys, "evaluate", *data, *QUICK, "--json")
    assert code == 0
    assert json.loads(output)["unprotected"] > 0.9
    out = tmp_path / "a.pac"
    more = ["--models", "8", "--jobs", "1", "--seed", "3", "--out", out]
    code, _, errors = run_here(capsys, "fit", *data, *more)
    assert code == 0
    assert "chosen among 6: decision-tree (" in errors
    assert Artifact.open(out).learner.params.get("min_samples_leaf", 1) in {1, 5, 20, 50, 100}

    out.rename(tmp_path / "a.pac.partial")  # as a kill just before the end leaves it
    code, _, errors = run_here(capsys, "fit", *data, *more)
    assert code == 0
    assert "models tried" not in errors
    assert "8/8 models" in errors


def test_several_learners_and_weights(folder, tmp_path, capsys):
    """Among several learners a fit takes the better one; weights of classes are of labels."""
    data = [folder / "easy.csv", "--target", "y", "--models", "8", "--jobs", "1", "--seed", "1"]
    options = ["--learner", "perceptron", "--learner", "logistic", "--class-weight", "yes=3", "no=1"]
    code, _, errors = run_here(capsys, "fit", *data, *options, "--out", tmp_path / "a.pac")
    assert code == 0
    assert "chosen among 2: " in errors
    assert Artifact.open(tmp_path / "a.pac").learner.params["class_weight"] == {"yes": 3.0, "no": 1.0}


def test_a_fit_shows_how_often_models_differ(folder, tmp_path, capsys):
    """fit and show print the contested share, and warn when it is high; a second fit counts the first."""
    out = tmp_path / "stays.pac"
    command = ["fit", folder / "stays.csv", "--config", folder / "stays.toml", "--learner", "decision-tree"]
    code, output, errors = run_here(capsys, *command, "--models", "16", "--jobs", "1", "--out", out)
    assert code == 0
    assert re.search(r"contested +\d+\.\d% of new queries", output)
    assert "noise decides what argmax answers" in " ".join(output.split())
    assert "the same folder has" not in errors
    code, output, _ = run_here(capsys, "show", out, "--json")
    assert json.loads(output)["contested_share"] == Artifact.open(out).contested.share > 0.5
    assert "models disagree on" in json.loads(output)["warnings"][0]
    _, _, errors = run_here(
        capsys, *command, "--models", "4", "--jobs", "1", "--out", tmp_path / "second.pac"
    )
    assert "the same folder has stays.pac of the same records: with 2 deployments" in errors
    assert "with probability 0.75" in errors


@pytest.mark.parametrize(
    "change",
    [
        ["--drop", "sodium"],
        ["--types", "age=category"],
        ["--target", "smoker", "--drop", "outcome"],
    ],
    ids=str,
)
def test_a_second_fit_on_other_columns_counts_the_first(folder, tmp_path, capsys, change):
    """One more column dropped, another type or target, a copy of the file: the records are the same, and it is said."""
    table = hospital(60).drop(
        columns=["record_id", "note", "site", "died", "admitted", "born", "crp", "length_of_stay"]
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    quick = ["--learner", "decision-tree", "--models", "4", "--jobs", "1", "--person", "patient_id"]
    first = ["fit", tmp_path / "t.csv", "--target", TARGET, *quick, "--out", tmp_path / "first.pac"]
    assert run_here(capsys, *first)[0] == 0
    (tmp_path / "copy.csv").write_bytes((tmp_path / "t.csv").read_bytes())
    again = ["--target", TARGET, *quick, *change, "--out", tmp_path / "second.pac"]
    code, _, errors = run_here(capsys, "fit", tmp_path / "copy.csv", *again)
    assert code == 0, errors
    assert "the same folder has first.pac of the same records: with 2 deployments" in errors
    table.assign(sodium=table["sodium"] + 1).to_csv(tmp_path / "edited.csv", index=False)
    again = ["--target", TARGET, *quick, *change, "--out", tmp_path / "third.pac"]
    _, _, errors = run_here(capsys, "fit", tmp_path / "edited.csv", *again)
    assert "the same folder has first.pac, second.pac of the same records: with 3 deployments" in errors
    hospital(60, seed=9)[list(table)].to_csv(tmp_path / "others.csv", index=False)
    again = ["--target", TARGET, *quick, *change, "--out", tmp_path / "fourth.pac"]
    assert "the same folder" not in run_here(capsys, "fit", tmp_path / "others.csv", *again)[2]


def evaluation(name, accuracies, half=0.8, contested=0.1, majority=0.5):
    """Return a forecast with these accuracies by decoder, at a single budget."""
    score = Score(1000 * np.diag([majority, 1 - majority]) + 0.0)
    cases = tuple(Case(decode, 2.0**-32, one, 0.01, score, one) for decode, one in accuracies.items())
    halves = Score(np.array([[1000 * half, 1000 * (1 - half)], [0.0, 0.0]]))
    return Evaluation(
        name, ("a", "b"), 1000, 1000, "record", 8, 2, 5, Forecast(score, halves, contested, 0.6, cases)
    )


def test_advice():
    """The most accurate learner is recommended, with the most cautious decoder that is worth it."""
    close = evaluation("x", {"argmax": 0.795, "map": 0.8})
    far = evaluation("y", {"argmax": 0.70, "map": 0.85})
    assert advise([close], 2.0**-32).decode == "argmax"
    best = advise([close, far], 2.0**-32)
    assert (best.learner, best.decode, best.accuracy) == ("y", "map", 0.85)
    assert (best.half_data, best.noise) == (pytest.approx(0.2), pytest.approx(-0.05))
    assert best.warnings == (
        "map tells more about the records of the pool than argmax: the page 'Threat model' says what",
    )
    assert not advise([close], 2.0**-32).warnings
    poor = advise([evaluation("z", {"argmax": 0.505, "map": 0.6}, contested=0.9)], 2.0**-32)
    assert poor.decode == "map"
    assert "argmax is right in 50.5% of cases, no better" in poor.warnings[1]
    assert "models disagree on 90.0%" in poor.warnings[2]
