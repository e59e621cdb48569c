"""A folder of images of mixed sizes, from beginning to end: one size is said once, when a deployment is fitted."""

import base64
import io
import json
import re
import runpy

import numpy as np
import pandas as pd
import pytest
from live_server import NAME, LiveServer
from PIL import Image
from small_extractors import averages
from whole_values import images

from pacpredict import PrivateClassifier
from pacpredict.artifact.artifact import Artifact
from pacpredict.cli import main
from pacpredict.cli.audit import public_rows
from pacpredict.deployment import Deployment

QUICK = ("--models", "4", "--jobs", "1", "--seed", "1", "--feature-cache", "none")
SIZE = ("--image-size", "12x10")


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


def refused(capsys, *arguments):
    code, output, errors = run(capsys, *arguments)
    assert (code, output) == (2, "")
    return errors.splitlines()[-1]


def answers(capsys, *arguments):
    """Return the table of answers, and how many of them were charged now."""
    code, output, errors = run(capsys, "predict", *arguments)
    assert code == 0, errors
    return pd.read_csv(io.StringIO(output)), int(re.search(r"(\d+) of them charged", errors)[1])


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder of pets, no two of one size, in three formats; some new ones; and an extractor."""
    home, (pixels, labels) = tmp_path_factory.mktemp("pets"), images(76)
    for i, (image, label) in enumerate(zip(pixels, labels, strict=True)):
        folder = home / ("pets" if i < 60 else "new") / (label if i < 60 else "")
        folder.mkdir(parents=True, exist_ok=True)
        kind = ("png", "jpg", "webp")[i % 3]
        Image.fromarray(image).resize((7 + i, 90 - i)).save(folder / f"{i:02d}.{kind}")
    averages(home / "model.onnx")
    return home


@pytest.fixture(scope="module")
def artifact(home):
    out = home / "pets.pac"
    chosen = ("--features", home / "model.onnx", *SIZE, *QUICK, "--step-budget", "2^-9", "--queries", "50")
    assert main([str(part) for part in ("fit", home / "pets", *chosen, "--out", out)]) == 0
    return out


def test_without_a_size_it_is_said_which_there_are(capsys, home, tmp_path):
    """Mixed sizes are refused before anything is trained, with the sizes and with what to add."""
    common = (home / "pets", "--features", home / "model.onnx", *QUICK)
    for command in (("fit", *common, "--out", tmp_path / "a.pac"), ("evaluate", *common)):
        said = refused(capsys, *command)
        assert "there are images of 60 sizes (height x width): " in said
        assert "--image-size 224" in said
    assert not list(tmp_path.iterdir())


def test_a_size_may_stand_in_a_file(capsys, home, tmp_path):
    """TOML says it as a number or a text, an option has the last word; what is no size is refused before reading."""
    common = ("fit", home / "pets", "--features", home / "model.onnx", "--dry-run", "--json")
    config = tmp_path / "pets.toml"
    for text, shown in (("24", "24 x 24"), ('"24x12"', "24 x 12"), ("[24, 12]", "24 x 12")):
        config.write_text(f"image_size = {text}\n")
        code, output, _ = run(capsys, *common, "--config", config)
        assert (code, json.loads(output)["columns"]) == (
            0,
            {f"image of any size, scaled to {shown} pixels": 1},
        )
    code, output, _ = run(capsys, *common, "--config", config, *SIZE)
    assert list(json.loads(output)["columns"]) == ["image of any size, scaled to 12 x 10 pixels"]
    config.write_text("image_size = 0.5\n")
    assert "0.5 is no size of images" in refused(capsys, *common, "--config", config)
    said = refused(capsys, "fit", tmp_path / "absent", "--image-size", "big", "--dry-run", "--target", "a")
    assert "'big' is no size of images" in said


def test_a_size_means_nothing_for_a_table(capsys, tmp_path):
    """It is refused, by a dry run too, and not passed over."""
    (tmp_path / "table.csv").write_text("a,b\n" + "".join(f"{i},{i % 2}\n" for i in range(30)))
    for how in (("--dry-run",), ("--out", tmp_path / "a.pac")):
        said = refused(capsys, "fit", tmp_path / "table.csv", "--target", "b", *SIZE, *how)
        assert "an image size is for images, and these are a table" in said


def test_evaluate_takes_the_size(capsys, home):
    """What a deployment would be worth is measured on scaled images."""
    common = ("--features", home / "model.onnx", *SIZE, *QUICK, "--folds", "2", "--trials", "5")
    code, output, errors = run(capsys, "evaluate", home / "pets", *common, "--json")
    assert code == 0, errors
    assert json.loads(output)["records"] == 60


def test_the_artifact_knows_the_size(capsys, artifact, home):
    """It shows it, trains again by it, and gives it back in Python."""
    assert "image of any size, scaled to 12 x 10 pixels" in run(capsys, "show", artifact)[1]
    stored = json.loads((artifact / "manifest.json").read_text())
    assert stored["schema"]["scaling"] == "stretch, bicubic"
    assert stored["source"]["image_size"] == "12x10"
    code, output, _ = run(capsys, "verify", artifact, "--models", "2", "--jobs", "1")
    assert (code, "identical to the byte" in output) == (0, True)
    assert PrivateClassifier.load(artifact).image_size == (12, 10)
    opened = Artifact.open(artifact)
    assert len(public_rows(opened, home / "new")) == 16  # as `audit --public` reads them


def test_everybody_is_asked_about_the_same_pixels(capsys, artifact, home):
    """By files, arrays and over HTTP a picture is one query: the same label, and it is charged once."""
    files = sorted((home / "new").iterdir())
    first, n_charged = answers(capsys, artifact, home / "new")
    labels, sequence = first["label"].tolist(), first["sequence"].tolist()
    assert n_charged > 0
    again, n_charged = answers(capsys, artifact, home / "new")
    assert again.equals(first)
    assert n_charged == 0
    assert answers(capsys, artifact, files[3])[0].loc[0].tolist() == first.loc[3].tolist()
    with Deployment.open(artifact) as deployment, LiveServer(deployment.curator) as server:
        (about,) = server.http.get(f"/v2/models/{NAME}").json()["inputs"]
        assert about["shape"] == [-1, -1, -1, 3]
        encoded = [base64.b64encode(file.read_bytes()).decode() for file in files]
        pixels = [np.asarray(Image.open(file).convert("RGB")).tolist() for file in files]
        assert len({np.shape(image) for image in pixels} - {(12, 10, 3)}) == 16
        records = [{"image": one} for one in encoded]
        for body in ({"instances": encoded}, {"dataframe_records": records}, {"instances": pixels}):
            answer = server.http.post("/invocations", json=body).json()
            assert answer["predictions"] == labels
            assert answer["parameters"] == {"sequence": sequence, "charge_nats": [0.0] * 16}
        about = {"name": "image", "datatype": "UINT8", "shape": [1, *np.shape(pixels[5])]}
        answer = server.infer([about | {"data": np.ravel(pixels[5]).tolist()}]).json()
        assert answer["outputs"][0]["data"] == labels[5:6]
        assert answer["parameters"] == {"sequence": sequence[5:6], "charge_nats": [0.0]}
        assert server.n_released == max(sequence)


def test_a_student_reads_what_its_deployment_reads(capsys, artifact, home, tmp_path):
    """Its program has the pixels that were asked about, to the bit; with them the student is trained again the same."""
    student = tmp_path / "student"
    chosen = ("--features", home / "model.onnx", "--feature-cache", "none", "--jobs", "1")
    code, _, errors = run(capsys, "distill", artifact, home / "new", *chosen, "--out", student)
    assert code == 0, errors
    code, output, _ = run(capsys, "distill", artifact, home / "new", "--verify", student)
    assert (code, "model and student.json are identical to the byte" in output) == (0, True)
    program, schema = runpy.run_path(str(student / "predict.py")), Artifact.open(artifact).schema
    for file in (home / "new").iterdir():
        assert np.array_equal(program["pixels"](file), schema.rows([file.read_bytes()]).pixels[0])
