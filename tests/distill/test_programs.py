"""The programs of students take what people have, and say in a line what they cannot use."""

import io
import json
import runpy
import unicodedata
import zlib

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from records import labels_of, mixed_table
from small_extractors import averages, onnx_folder, static_folder
from student_files import trained, written
from students import as_csv, program_refuses, run_program
from tiny_networks import coloured_images, plain_texts

from pacpredict.distill.student import student_named
from pacpredict.exceptions import InvalidQuery
from pacpredict.features.onnx_texts import StaticTexts
from pacpredict.rows.infer import learn_rows

COLOURS = ("red", "green", "blue")


@pytest.fixture
def of_images(tmp_path):
    """A student of images, in a folder; returns it with images and the student's labels for them."""
    images, labels = coloured_images(45)
    schema, rows = learn_rows(images)
    features = {"features": averages(tmp_path / "m.onnx"), "cache": None}
    student = trained(student_named("heads", features), schema, rows, labels, COLOURS)
    expected = [COLOURS[i] for i in student.predict(rows)]
    return written(student, tmp_path / "student"), images, expected


def test_folders_of_images(of_images, tmp_path):
    """All images of a folder and of those in it have labels, in the order of their names; other files do not count."""
    home, images, expected = of_images
    for i, image in enumerate(images[:6]):
        folder = tmp_path / "asked" / ("b" if i % 2 else "a")
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{i}.{'bmp' if i == 3 else 'png'}")
    (tmp_path / "asked" / "notes.txt").write_text("nothing")
    order = [0, 2, 4, 1, 3, 5]
    found = run_program(home, tmp_path / "asked", tmp_path / "asked" / "a" / "2.png")[1:]
    assert [line.rpartition(",")[2] for line in found] == [expected[i] for i in [*order, 2]]
    assert [line.rpartition(",")[0][-5:] for line in found[:6]] == [
        f"{i}.{'bmp' if i == 3 else 'png'}"[-5:] for i in order
    ]


def test_images_that_cannot_be_used(of_images, tmp_path):
    """A damaged file, another size, more bits and no image at all: the file is named, and no label is printed."""
    home, images, _ = of_images
    good, other = tmp_path / "good.png", tmp_path / "other.png"
    Image.fromarray(images[0]).save(good)
    Image.fromarray(images[0]).resize((9, 8)).save(other)
    assert program_refuses(home, good, other) == f"{other} cannot be used: it has 8 x 9 pixels, not 32 x 32"
    other.write_bytes(good.read_bytes()[:60])
    assert program_refuses(home, good, other).startswith(f"{other} cannot be used: ")
    Image.fromarray(np.zeros((32, 32), np.uint16)).save(other)
    assert "more than 8 bits" in program_refuses(home, other)
    assert "name images" in program_refuses(home)
    assert "name images" in program_refuses(home, good, "--help")
    (tmp_path / "empty").mkdir()
    assert "name images" in program_refuses(home, tmp_path / "empty")


def odd_files(folder):
    """Write image files of every kind that people have: some that a deployment takes, and some that it does not."""
    rng = np.random.default_rng(0)
    colours, grey = rng.integers(0, 256, (40, 25, 3), np.uint8), rng.integers(0, 256, (31, 50), np.uint8)
    clear = np.dstack([colours, rng.integers(0, 256, (40, 25), np.uint8)])
    frames = [Image.fromarray(colours), Image.fromarray(255 - colours)]
    png, deep = as_png(frames[0]), as_png(Image.fromarray(np.zeros((32, 32), np.uint16)))
    pictures = {
        **{f"colours.{kind}": as_png(frames[0], kind) for kind in ("png", "jpeg", "webp", "bmp")},
        "exact.png": as_png(Image.fromarray(rng.integers(0, 256, (32, 32, 3), np.uint8))),
        "grey.png": as_png(Image.fromarray(grey)),
        "grey.jpg": as_png(Image.fromarray(grey), "jpeg"),
        "bits.png": as_png(Image.fromarray(grey).convert("1")),
        "palette.png": as_png(frames[0].quantize(17), transparency=bytes(range(17))),
        "clear.png": as_png(Image.fromarray(clear)),
        "clear.webp": as_png(Image.fromarray(clear), "webp", lossless=True),
        "print.jpg": as_png(frames[0].convert("CMYK"), "jpeg"),
        "phone.jpg": as_png(frames[0], "mpo", save_all=True, append_images=frames[1:]),
        "moving.webp": as_png(frames[0], "webp", save_all=True, append_images=frames[1:]),
        "moving.png": as_png(frames[0], save_all=True, append_images=frames[1:]),
        "deep.png": deep,
        "deep colours.png": png_of(32, 32, 16, 2),
        "wide.png": png_of(1, 16_385, 8, 2),
        "large.png": png_of(6_000, 6_000, 8, 2),
        "cut.png": png[:-12],
        "wrong.png": png[:-20] + bytes([png[-20] ^ 1]) + png[-19:],
        "noted.png": with_note(png, valid=True),
        "badly noted.png": with_note(png, valid=False),
        "other.png": as_png(frames[0], "tiff"),
        "empty.png": b"",
    }
    folder.mkdir()
    for name, data in pictures.items():
        (folder / name).write_bytes(data)
    return [folder / name for name in pictures]


def as_png(image, kind="png", **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def chunk(kind, data):
    return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")


def png_of(height, width, bits, colour):
    """Return a PNG of black, in red, green and blue."""
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([bits, colour, 0, 0, 0])
    data = zlib.compress(bytes(height * (1 + width * 3 * bits // 8)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def with_note(png, *, valid):
    """Put a text, of which no pixel depends, after the head of a PNG: with its checksum, or with another one."""
    note = chunk(b"tEXt", b"Comment\0words")
    return png[:33] + (note if valid else note[:-1] + bytes([note[-1] ^ 1])) + png[33:]


@pytest.mark.parametrize("size", [None, (32, 32), (20, 45)], ids=["unscaled", "scaled", "stretched"])
def test_every_image_is_read_as_the_deployment_reads_it(tmp_path, size):
    """To the bit the pixels that it answers about, whether or not it scales; what it refuses, the program refuses."""
    images, labels = coloured_images(45)
    schema, rows = learn_rows(images, image_size=size)
    features = {"features": averages(tmp_path / "m.onnx"), "cache": None}
    student = trained(student_named("heads", features), schema, rows, labels, COLOURS)
    program = runpy.run_path(str(written(student, tmp_path / "student") / "predict.py"))
    n_read = 0
    for file in odd_files(tmp_path / "odd"):
        try:
            expected = schema.rows([file.read_bytes()]).pixels[0]
        except InvalidQuery:
            with pytest.raises(Exception):  # noqa: B017, PT011  # libraries raise anything; main() says which file
                program["pixels"](file)
            continue
        assert np.array_equal(program["pixels"](file), expected), file.name
        n_read += 1
    assert n_read == (1 if size is None else 14)


def test_a_way_of_scaling_that_a_program_does_not_know(of_images, tmp_path):
    """A student that was made otherwise gets no labels from images that are scaled as others are."""
    home, images, _ = of_images
    about = json.loads((home / "student.json").read_text())
    (home / "student.json").write_text(json.dumps(about | {"scaling": "crop"}))
    Image.fromarray(images[0]).save(tmp_path / "one.png")
    assert "this program cannot scale it by crop" in program_refuses(home, tmp_path / "one.png")


def extractor_of(kind, folder, texts):
    return StaticTexts(static_folder(folder, texts)) if kind == "static" else onnx_folder(folder, texts)


@pytest.mark.parametrize("kind", ["onnx", "static"])
def test_texts_by_vectors(tmp_path, kind):
    """With features of a model in ONNX, and of static vectors, come the student's own labels."""
    texts, labels = plain_texts(60)
    schema, rows = learn_rows(texts)
    params = {"features": extractor_of(kind, tmp_path / "extractor", texts[:50]), "cache": None}
    student = trained(student_named("heads", params), schema, rows, labels, ("bad", "good"))
    home = written(student, tmp_path / "student")
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    found = run_program(home, tmp_path / "texts.txt")[1:]
    assert found == [("bad", "good")[i] for i in student.predict(rows)]
    assert len(set(found)) == 2


@pytest.fixture
def of_texts(tmp_path):
    """A student of texts whose words have accents, in a folder."""
    texts = [f"{'café' if i % 2 else 'thé'} numéro {i % 7}" for i in range(40)]
    schema, rows = learn_rows(texts)
    learner = student_named("heads", {"features": "hashing"})
    student = trained(learner, schema, rows, np.arange(40) % 2, ("tea", "coffee"))
    return written(student, tmp_path / "student")


def test_texts_in_a_table(of_texts, tmp_path):
    """A CSV file has texts in the column of that name or in its only one, over several lines and in any spelling."""
    asked = ["café\nnuméro 3", unicodedata.normalize("NFD", "thé numéro 3"), "  café "]
    many = as_csv({"id": [1, 2, 3], "text": asked}, tmp_path / "many.csv")
    one = as_csv({"said": asked}, tmp_path / "one.csv")
    assert run_program(of_texts, many)[1:] == run_program(of_texts, one)[1:] == ["coffee", "tea", "coffee"]


@pytest.mark.parametrize(("separator", "suffix"), [(",", "csv"), (";", "csv"), ("\t", "tsv"), ("\t", "tab")])
def test_tables_of_texts_as_programs_write_them(of_texts, tmp_path, separator, suffix):
    """Names of columns and cells of other columns are never taken for texts, however they are separated."""
    others = ["thé " * 9, "café " * 9]  # would decide, if they were read as part of the text
    table = pd.DataFrame({"drink": others, "text": ["café; numéro 3", "thé, numéro 3"]})
    path = tmp_path / f"asked.{suffix}"
    table.to_csv(path, index=False, sep=separator, encoding="utf-8-sig")
    assert run_program(of_texts, path) == ["label", "coffee", "tea"]


def test_half_a_text_is_not_answered(of_texts, tmp_path):
    """A comma without quotes cuts a text in two; names on the first of many lines are no text."""
    path = tmp_path / "asked.csv"
    path.write_text("text\ncafé\nthé, café\n")
    assert program_refuses(of_texts, path).endswith("line 3 has 2 cells, and the first line 1")
    path.write_text('text\n"café\n')
    assert program_refuses(of_texts, path).startswith(f"{path} cannot be used: ")
    lines = tmp_path / "asked.txt"
    lines.write_text("text\ncafé\n")
    assert program_refuses(of_texts, lines).endswith("name of a column, so call it asked.csv")


def test_texts_that_cannot_be_used(of_texts, tmp_path):
    """No column of texts, an empty text, an empty file and none at all are said in one line."""
    path = as_csv({"a": ["x"], "b": ["y"]}, tmp_path / "asked.csv")
    assert program_refuses(of_texts, path) == f"{path} cannot be used: it has no column 'text', but a, b"
    path.write_text("text,text\ncafé,thé\n")
    assert program_refuses(of_texts, path) == f"{path} cannot be used: it has more than one column 'text'"
    lines = tmp_path / "asked.txt"
    lines.write_text("café\n \nthé\n")
    assert program_refuses(of_texts, lines) == f"{lines} cannot be used: text 2 is empty"
    lines.write_text("")
    assert "it has no texts" in program_refuses(of_texts, lines)
    assert "No such file" in program_refuses(of_texts, tmp_path / "nobody.txt")
    assert "name one file" in program_refuses(of_texts)
    assert "name one file" in program_refuses(of_texts, "--help")


@pytest.fixture
def of_rows(tmp_path):
    """A student of a table, in a folder; returns it with the table and its labels for it."""
    table = mixed_table(120).drop(columns="note")
    schema, rows = learn_rows(table)
    codes = np.unique(labels_of(table), return_inverse=True)[1]
    student = trained(student_named("xgboost", {"n_estimators": 5}), schema, rows, codes, "ab")
    return written(student, tmp_path / "student"), table, ["ab"[i] for i in student.predict(rows)]


def test_a_library_of_texts_that_is_not_there(of_texts, tmp_path):
    """A line says which package to install, by the name that registries know it by."""
    (tmp_path / "asked.txt").write_text("a text\n")
    said = program_refuses(of_texts, tmp_path / "asked.txt", absent=["sklearn"])
    assert said == "this student needs sklearn: pip install scikit-learn"


def test_a_library_of_tables_that_is_not_there(of_rows, tmp_path):
    """The same of rows."""
    home, table, _ = of_rows
    path = as_csv(table, tmp_path / "asked.csv")
    assert (
        program_refuses(home, path, absent=["xgboost"]) == "this student needs xgboost: pip install xgboost"
    )


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_tables_as_programs_write_them(of_rows, tmp_path, separator):
    """Semicolons, tabs and the mark that spreadsheets put at the beginning of a file make no difference."""
    home, table, expected = of_rows
    table.to_csv(tmp_path / "asked.csv", index=False, sep=separator, encoding="utf-8-sig")
    assert run_program(home, tmp_path / "asked.csv")[1:] == expected


def test_tables_that_cannot_be_used(of_rows, tmp_path):
    """A column that misses, a cell that is no number and a file without rows are said in one line."""
    home, table, _ = of_rows
    path = tmp_path / "asked.csv"
    as_csv(table.drop(columns="age"), path)
    assert program_refuses(home, path) == f"{path} cannot be used: it has no column age"
    as_csv(table.astype({"age": object}).assign(age=["old", *table["age"][1:]]), path)
    assert program_refuses(home, path) == f"{path} cannot be used: row 1, column age: 'old' is no number"
    as_csv(table.astype({"age": object}).assign(age=["inf", *table["age"][1:]]), path)
    assert program_refuses(home, path) == f"{path} cannot be used: row 1, column age: 'inf' is no number"
    as_csv(pd.concat([table, table[["age"]] + 1], axis=1), path)
    assert program_refuses(home, path) == f"{path} cannot be used: it has more than one column age"
    as_csv(table[:0], path)
    assert "it has no rows" in program_refuses(home, path)
    path.write_text(",".join(table.columns) + "\n1\n")
    assert program_refuses(home, path).endswith(f"line 2 has 1 cells, and the first line {table.shape[1]}")
    path.write_text(",".join(table.columns) + '\n1,"2')
    assert program_refuses(home, path).startswith(f"{path} cannot be used: ")
    assert "name one file" in program_refuses(home)
    assert program_refuses(home, "--help").startswith("name one file with rows: python predict.py")
