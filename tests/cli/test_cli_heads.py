"""Images and texts on the terminal: from a folder, a file or arrays to an artifact and to answers."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from whole_values import SIDE, images, png, texts

from pacpredict.artifact.artifact import Artifact
from pacpredict.cli import main
from pacpredict.cli.audit import public_rows

QUICK = ("--models", "4", "--jobs", "1", "--seed", "1", "--feature-cache", "none")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Write a small public extractor: the mean of each channel, in ONNX."""
    onnx = pytest.importorskip("onnx")
    kind, helper = onnx.TensorProto.FLOAT, onnx.helper
    node = helper.make_node("ReduceMean", ["x"], ["y"], axes=[2, 3], keepdims=0)
    x, y = (
        helper.make_tensor_value_info("x", kind, ["n", 3, "h", "w"]),
        helper.make_tensor_value_info("y", kind, None),
    )
    graph = helper.make_graph([node], "means", [x], [y])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path_factory.mktemp("extractor") / "means.onnx"
    onnx.save(made, path)
    return path


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


def refused(capsys, *arguments):
    code, output, errors = run(capsys, *arguments)
    assert (code, output) == (2, "")
    return errors.splitlines()[-1]


def predicted(capsys, *arguments):
    code, output, _ = run(capsys, "predict", *arguments, "--json")
    assert code == 0
    return json.loads(output)["labels"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The same images as a folder of classes, as Parquet and as arrays."""
    home, (pixels, labels) = tmp_path_factory.mktemp("data"), images(60)
    order = np.argsort(labels, kind="stable")
    pixels, labels = pixels[order], labels[order]
    for i, (image, label) in enumerate(zip(pixels, labels, strict=True)):
        (home / "folder" / label).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(home / "folder" / label / f"{i:03d}.png")
    pd.DataFrame({"label": labels, "image": [png(image) for image in pixels]}).to_parquet(
        home / "images.parquet"
    )
    np.savez(home / "images.npz", image=pixels, label=labels)
    return home


def test_folders_parquet_and_arrays_are_the_same_records(capsys, data, model, tmp_path):
    """The same images make the same models, whatever they come in; queries come in all of these, too."""
    sources = {"folder": (), "images.parquet": ("--target", "label"), "images.npz": ("--target", "label")}
    for name, target in sources.items():
        out = tmp_path / f"{name}.pac"
        code, _, errors = run(capsys, "fit", data / name, *target, "--features", model, *QUICK, "--out", out)
        assert code == 0, errors
        assert "60/60 features" in errors
    made = [Artifact.open(tmp_path / f"{name}.pac") for name in sources]
    assert len({one.manifest["records_sha256"] for one in made}) == 1
    assert len({one.model_bytes(2) for one in made}) == 1
    np.save(tmp_path / "queries.npy", np.load(data / "images.npz")["image"][:5])
    artifact = tmp_path / "folder.pac"
    first = predicted(capsys, artifact, tmp_path / "queries.npy")
    assert predicted(capsys, artifact, data / "images.npz")[:5] == first
    assert predicted(capsys, artifact, data / "images.parquet")[:5] == first
    code, output, _ = run(capsys, "verify", artifact, "--models", "2", "--jobs", "1")
    assert (code, "2 models" in output) == (0, True)
    schema = made[0].schema
    public = [
        schema.digests(public_rows(made[0], data / name)) for name in sources
    ]  # as `audit --public` does
    assert public[0] == public[1] == public[2]


def test_evaluate_shows_how_far_features_are(capsys, data, model, tmp_path):
    """Features, most of the work, have a bar of their own; without a cache each fold computes those that it needs."""
    common = ("evaluate", data / "folder", "--features", model, *QUICK[:-2], "--folds", "2", "--trials", "5")
    code, _, errors = run(capsys, *common, "--feature-cache", tmp_path / "kept")
    assert code == 0
    assert errors.index("60/60 features") < errors.index("models of heads")
    assert any((tmp_path / "kept").rglob("*"))
    assert "features" not in run(capsys, *common, "--feature-cache", "none")[2]


def test_an_artifact_carries_its_extractor(capsys, data, model, tmp_path):
    """It answers without the file that the features came from."""
    copy = tmp_path / "copy.onnx"
    copy.write_bytes(model.read_bytes())
    out = tmp_path / "images.pac"
    run(capsys, "fit", data / "folder", "--features", copy, *QUICK, "--out", out)
    copy.unlink()
    assert (out / "files" / "0" / "model.onnx").read_bytes() == model.read_bytes()
    assert len(predicted(capsys, out, data / "folder" / "red")) > 0
    code, output, _ = run(capsys, "show", out, "--columns")
    assert (code, f"image of {SIDE} x {SIDE} pixels" in output) == (0, True)
    assert "4 x heads on copy" in run(capsys, "show", out)[1]


def test_one_image_is_asked_about_by_its_file(capsys, data, model, tmp_path):
    """A file of an image is a query; one that is not there is named."""
    out = tmp_path / "images.pac"
    run(capsys, "fit", data / "folder", "--features", model, *QUICK, "--out", out)
    file = next((data / "folder" / "red").iterdir())
    code, output, errors = run(capsys, "predict", out, file, "--keep", "file")
    assert (code, output.splitlines()[1].split(",")[0]) == (0, file.name)
    assert errors.startswith("1 row answered, ")
    assert "there is no file" in refused(capsys, "predict", out, tmp_path / "absent.png")


def test_a_folder_has_the_images_of_any_column(capsys, data, model, tmp_path):
    """Whatever the column of the training images was called, queries may come as a folder."""
    table = pd.read_parquet(data / "images.parquet").rename(columns={"image": "photo", "label": "colour"})
    table.to_parquet(tmp_path / "photos.parquet")
    out = tmp_path / "photos.pac"
    chosen = ["--target", "colour", "--input", "photo", "--features", model]
    assert run(capsys, "fit", tmp_path / "photos.parquet", *chosen, *QUICK, "--out", out)[0] == 0
    expected = predicted(capsys, out, tmp_path / "photos.parquet")
    assert predicted(capsys, out, data / "folder") == expected
    # Where there is a column of that name, it counts.
    both = table.assign(image=table["photo"].to_numpy()[::-1])
    both.to_parquet(tmp_path / "both.parquet")
    assert predicted(capsys, out, tmp_path / "both.parquet") == expected


def test_texts(capsys, tmp_path):
    """A CSV of reviews, with the column named where there are others; queries may bring further columns."""
    reviews, labels = texts(80)
    table = pd.DataFrame({"label": labels, "stars": range(80), "text": reviews})
    table.to_csv(tmp_path / "reviews.csv", index=False)
    common = (
        tmp_path / "reviews.csv",
        "--target",
        "label",
        "--learner",
        "heads",
        "--features",
        "tfidf",
        *QUICK,
    )
    assert "--input COLUMN" in refused(capsys, "fit", *common, "--out", tmp_path / "a.pac")
    code, output, _ = run(capsys, "fit", *common, "--input", "text", "--dry-run", "--json")
    assert (code, json.loads(output)["classes"]) == (0, table["label"].value_counts().sort_index().to_dict())
    code, output, _ = run(capsys, "fit", *common, "--input", "text", "--out", tmp_path / "a.pac", "--json")
    assert (code, json.loads(output)["columns"]) == (0, {"text": 1})
    table[:6].to_csv(tmp_path / "queries.csv", index=False)
    assert len(predicted(capsys, tmp_path / "a.pac", tmp_path / "queries.csv")) == 6
    table[:6].drop(columns="text").to_csv(tmp_path / "other.csv", index=False)
    said = refused(capsys, "predict", tmp_path / "a.pac", tmp_path / "other.csv")
    assert "there is no column 'text'; the columns are 'label', 'stars'" in said


@pytest.mark.parametrize("name", ["lines.txt", "lines.csv"])
def test_a_first_line_that_is_no_name(capsys, tmp_path, name):
    """A file with a text on each line is refused: the first would pass for a name, and every label be of the next."""
    reviews, labels = texts(40)
    pd.DataFrame({"text": reviews, "label": labels}).to_csv(tmp_path / "reviews.csv", index=False)
    fitted = ("fit", tmp_path / "reviews.csv", "--target", "label", "--features", "tfidf", *QUICK)
    assert run(capsys, *fitted, "--out", tmp_path / "a.pac")[0] == 0
    (tmp_path / name).write_text("a lovely film\ndull and loud\n")
    said = refused(capsys, "predict", tmp_path / "a.pac", tmp_path / name)
    assert "the only column is called 'a lovely film'" in said
    assert "write 'text' on a line above it" in said
    (tmp_path / name).write_text("text\na lovely film\ndull and loud\n")
    assert len(predicted(capsys, tmp_path / "a.pac", tmp_path / name)) == 2


def letters(folder, **columns):
    reviews, labels = texts(80)
    table = pd.DataFrame({"label": labels, **columns, "text": reviews})
    table.to_csv(folder / "letters.csv", index=False)
    return folder / "letters.csv", "--target", "label", "--input", "text", "--features", "tfidf", *QUICK


def test_persons_beside_texts_are_pointed_out(capsys, tmp_path):
    """A column that looks like persons with several texts is named by a dry run, by evaluate and by fit."""
    whose = [f"P{i // 3:03d}" for i in range(80)]
    common = letters(tmp_path, letter_id=range(80), patient=whose)
    said = "column 'patient' looks like an identifier (27 different values in 80 records)"
    code, output, _ = run(capsys, "fit", *common, "--dry-run")
    assert (code, said in " ".join(output.split())) == (0, True)
    assert "80 records, all different" in output
    found = json.loads(run(capsys, "fit", *common, "--dry-run", "--json")[1])
    assert [warning.startswith(said) for warning in found["warnings"]] == [True]
    assert said in run(capsys, "evaluate", *common, "--folds", "2", "--trials", "5")[2]
    assert said in run(capsys, "fit", *common, "--out", tmp_path / "a.pac")[2]


@pytest.mark.parametrize("settled", [("--person", "patient"), ("--drop", "patient"), ("--person-per-row",)])
def test_who_is_who_beside_texts_can_be_settled(capsys, tmp_path, settled):
    """Once it is said whose texts they are, or that the column tells nothing, a dry run shows that and asks no more."""
    common = letters(tmp_path, patient=[f"P{i // 3:03d}" for i in range(80)])
    found = json.loads(run(capsys, "fit", *common, *settled, "--dry-run", "--json")[1])
    assert found["warnings"] == []
    if settled[0] == "--person":
        assert (found["units"], found["unit"], found["largest_unit"]) == (27, "person", 3)
        output = run(capsys, "fit", *common, *settled, "--dry-run")[1]
        assert "27 persons, with up to 3 records each" in output


def test_columns_beside_texts_that_name_nobody_twice(capsys, tmp_path):
    """Numbers of records, stars and days are no persons with several texts."""
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(80) // 2, unit="D")
    common = letters(tmp_path, id=range(80), stars=np.arange(80) % 5, day=days.strftime("%d.%m.%Y"))
    assert json.loads(run(capsys, "fit", *common, "--dry-run", "--json")[1])["warnings"] == []


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda table: table.loc.__setitem__((7, "text"), "\u3000"), "row 7 (from 0): the text is empty"),
        (lambda table: table.loc.__setitem__((7, "text"), "x" * 40_000), "more than the limit of 32,768"),
        (lambda table: table.loc.__setitem__((7, "text"), None), "row 7 (from 0): the text is missing"),
    ],
)
def test_bad_texts_are_refused_before_training(capsys, tmp_path, spoil, said):
    """The error names the row; nothing is left behind."""
    reviews, labels = texts(40)
    table = pd.DataFrame({"label": labels, "text": reviews})
    spoil(table)
    table.to_csv(tmp_path / "reviews.csv", index=False)
    out = tmp_path / "a.pac"
    common = ("--target", "label", "--features", "tfidf", *QUICK, "--out", out)
    assert said in refused(capsys, "fit", tmp_path / "reviews.csv", *common)
    assert not list(tmp_path.glob("a.pac*"))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda file: file.write_bytes(file.read_bytes()[:40]), "damaged or of another format"),
        (
            lambda file: Image.fromarray(np.zeros((9, 9, 3), np.uint8)).save(file),
            "9 x 9 pixels, expected 6 x 6",
        ),
    ],
)
def test_bad_images_are_refused_before_training(capsys, tmp_path, model, spoil, said):
    """A corrupt image and one of another size: the error names row and file, and nothing is left behind."""
    for i, image in enumerate(images(20)[0]):
        folder = tmp_path / "pets" / ("cat" if i % 2 else "dog")
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{i:02d}.png")
    spoil(tmp_path / "pets" / "dog" / "18.png")
    errors = refused(
        capsys, "fit", tmp_path / "pets", "--features", model, *QUICK, "--out", tmp_path / "a.pac"
    )
    assert "row 19 (from 0), file 'dog/18.png'" in errors
    assert said in errors
    assert not list(tmp_path.glob("a.pac*"))


def test_a_folder_for_each_person(capsys, tmp_path, model):
    """Images of a person in a folder within the class: fit asks about it, and protects them together if told so."""
    for i, image in enumerate(images(60)[0]):
        folder = tmp_path / "scans" / ("ill" if i % 2 else "well") / f"patient {i // 4}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{i:02d}.png")
    (tmp_path / "scans" / "ill" / "old.tiff").write_bytes(b"x")
    common = ("fit", tmp_path / "scans", "--features", model, *QUICK)
    errors = run(capsys, *common, "--out", tmp_path / "a.pac")[2]
    assert "column 'folder' may tell persons apart (15 different values in 60 records)" in errors
    assert "(--person folder, or groups= in Python)" in errors
    assert "1 file is left out" in errors
    assert "'ill/old.tiff'" in errors
    found = json.loads(run(capsys, *common, "--person", "folder", "--dry-run", "--json")[1])
    assert (found["units"], found["unit"], found["largest_unit"]) == (15, "person", 4)
    assert [warning for warning in found["warnings"] if "persons" in warning] == []
    code, _, errors = run(capsys, "predict", tmp_path / "a.pac", tmp_path / "scans" / "ill", "--keep", "file")
    assert (code, "1 file is left out" in errors) == (0, True)


def test_options_that_do_not_fit_together(capsys, data, tmp_path):
    """Each is said in one line, before anything is read or trained."""
    out = ("--out", tmp_path / "a.pac")
    assert "are for --learner heads" in refused(
        capsys, "fit", data / "folder", "--learner", "logistic", "--head", "ridge", *out
    )
    assert "heads need features" in refused(capsys, "fit", data / "folder", "--learner", "heads", *out)
    assert "there are no features 'nothing'" in refused(
        capsys, "fit", data / "folder", "--features", "nothing", *out
    )
    for source in ("folder", "images.npz"):
        for how in (out, ("--dry-run",)):
            said = refused(capsys, "fit", data / source, "--target", "label", *how)
            assert "the learner takes tables; images and texts need --features, such as lite2" in said
    said = run(capsys, "fit", data / "images.parquet", "--target", "label", "--dry-run")[2]
    assert "if it has images, learn from these: --input image --features lite2" in said
    assert "look like images, but the learner takes texts" in refused(
        capsys, "fit", data / "folder", "--features", "tfidf", *out
    )
    both = ("--learner", "heads", "--learner", "logistic", "--features", "tfidf")
    assert "do not learn from the same records" in refused(capsys, "fit", data / "folder", *both, *out)
