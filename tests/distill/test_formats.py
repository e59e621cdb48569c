"""Students as files: programs that have never heard of pacpredict get the same labels from them."""

import json
import runpy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from records import labels_of, mixed_table
from small_extractors import averages
from student_files import trained, written
from students import as_csv, run_program
from tiny_networks import TINY_BERT, TINY_RESNET, coloured_images, plain_texts

from pacpredict.cli.queries import read_columns, with_missing
from pacpredict.distill.columns import PublicRows
from pacpredict.distill.formats import check_format, files_of
from pacpredict.distill.student import check_student, student_named, student_of
from pacpredict.exceptions import InvalidInput, InvalidQuery
from pacpredict.learners.registry import learner_named
from pacpredict.rows.infer import learn_rows

SMALL = {
    "xgboost": {"n_estimators": 8, "max_depth": 3},
    "logistic": None,
    "random-forest": {"n_estimators": 5},
    "hist-gradient-boosting": {"max_iter": 5, "early_stopping": False},
    "ridge": None,
    "sklearn.neighbors.KNeighborsClassifier": {"n_neighbors": 3},
    "sklearn.naive_bayes.GaussianNB": None,
}


def dated_table(n, seed):
    """Return a table with every kind of column: numbers, categories, booleans, texts, dates, and values that miss."""
    table = mixed_table(n, seed)
    days = np.random.default_rng(seed).integers(0, 3000, n)
    table["seen"] = (pd.Timestamp("2015-03-01") + pd.to_timedelta(days, unit="D")).strftime("%d.%m.%Y")
    return table


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_tables(tmp_path, name, n_classes):
    """From a CSV file, with values that miss and categories that no public row has, come the student's own labels."""
    table = dated_table(150, seed=1)
    schema, _ = learn_rows(table, types={"seen": "date:%d.%m.%Y"})
    codes = np.unique(labels_of(table, n_classes), return_inverse=True)[1]
    chosen = (table["job"] != "smith").to_numpy()  # which the deployment knows, and no public row has
    public = PublicRows.of(schema, table[chosen])
    student = trained(
        student_named(name, SMALL[name]), public.schema, public.rows, codes[chosen], "abc"[:n_classes]
    )
    assert "smith" not in files_of(student)["student.json"].decode()
    home = written(student, tmp_path)
    expected = student.predict(student.schema.rows(table))
    header, *found = run_program(home, as_csv(table, tmp_path / "asked.csv"))
    assert header == "label"
    assert found == ["abc"[i] for i in expected]
    assert len(set(found)) == n_classes


def test_cells_as_people_write_them(tmp_path):
    """Codes that mean missing, other spellings and values below a limit are read as the deployment reads them."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "ward": [str(i) for i in rng.integers(1, 4, 80)],
            "lab": [f"<{i}" if i == 1 else str(i) for i in rng.integers(1, 9, 80)],
            "smoker": rng.choice(["true", "false"], 80),
            "paid": [f"{i // 1000}.{i % 1000:03},5" for i in rng.integers(1000, 9999, 80)],
        }
    )
    codes = (table["ward"] == "2").to_numpy().astype(int)
    types = {"ward": "category", "lab": "number", "smoker": "boolean", "paid": "number:1.234,5"}
    schema, rows = learn_rows(table, types=types)
    schema = replace(schema, missing=("n/a", "lab=8"))
    student = trained(student_named("xgboost", SMALL["xgboost"]), schema, rows, codes, "ab")
    written(student, tmp_path)
    asked = table.copy()
    asked.loc[::3, "ward"], asked.loc[::4, "lab"], asked.loc[::5, "smoker"] = "n/a", "n/a", "True"
    expected = student.predict(schema.rows(asked))
    assert run_program(tmp_path, as_csv(asked, tmp_path / "asked.csv"))[1:] == ["ab"[i] for i in expected]


CELLS = {
    "grade": ["A", "a", "B", "b", " b", "b ", "C", "TRUE", "", "n/a", "N/A"],
    "code": ["1", "1.0", "01", "1e0", "1_0", "10", "٣", "nan", "true", "x"],
    "known": ["True", "true", "FALSE", "1", "1.0", "0", "yes", "2", "t", "true "],
    "age": [
        "1",
        "1.5",
        "-0",
        "1_000",
        "nan",
        "inf",
        "1e999",
        "٣",
        "<5",
        "=5",
        "1,5",
        " 7 ",
        "7 ",
        "n/a",
        "9",
    ],
    "lab": ["<5", ">= 5", "≤5", "< <5", "=5", "<", "5", "<nan", "5>"],
    "paid": [
        "1.234,5",
        "1234,5",
        "\u22125",
        "1,5e3",
        "12 kg",
        "€ 5",
        "5 €",
        "1.23,5",
        "- €5",
        "+-5",
        ",5",
        "",
        "n/a",
        "5-",
    ],
    "seen": ["01.02.2020", "1.2.2020", "2020-02-01", " 01.02.2020 ", "31.02.2020", "n/a", "01.02.2020 10:00"],
    "when": [
        "2020-02-01",
        "2020-02-01T07:13:11.123457",
        "2020-02-01T00:00+05:30",
        "0001-01-01T00:00+23:00",
        "1",
    ],
    "note": ["", "none", "None of it", "Words  and WORDS", "ein Ärger"],
}


@pytest.mark.parametrize("name", CELLS)
def test_every_cell_is_read_as_the_deployment_reads_it(tmp_path, name):
    """What a cell means to a student, it means to its program; what one refuses, the other does."""
    table = pd.DataFrame(
        {
            "grade": ["A", "a", "b", "b "],
            "code": ["1", "2", "10", "3"],
            "known": ["true", "false", "true", "false"],
            "age": ["1", "2", "3", "4.5"],
            "lab": ["<5", "1", "2", "3"],
            "paid": ["€ 1.234,5", "1,5", "2", "3"],
            "seen": ["01.02.2020", "02.02.2020", "03.02.2020", "04.02.2020"],
            "when": ["2020-02-01", "2020-02-02", "2020-02-03", "2020-02-04"],
            "note": ["a few words", "and others", "n/a", "more"],
        }
    )
    types = {
        "grade": "category",
        "code": "category",
        "known": "boolean",
        "age": "number",
        "lab": "number",
        "paid": "number:€ 1.234,5",
        "seen": "date:%d.%m.%Y",
        "when": "date",
        "note": "text",
    }
    schema, rows = learn_rows(table, types=types)
    schema = replace(schema, missing=("n/a", "age=9", "note=none"))
    student = trained(student_named("ridge"), schema, rows, [0, 1, 0, 1], "ab")
    program = runpy.run_path(str(written(student, tmp_path) / "predict.py"))
    for cell in CELLS[name]:
        path = as_csv(table[:1].assign(**{name: [cell]}), tmp_path / "asked.csv")
        try:
            asked = schema.rows(with_missing(read_columns(path), ()))
        except InvalidQuery:
            with pytest.raises(ValueError, match=f"column {name}: "):
                program["matrix"](program["read"](path))
            continue
        expected = schema.features(asked)
        found = program["matrix"](program["read"](path))
        assert np.array_equal(found, expected, equal_nan=True), cell


@pytest.mark.parametrize("name", ["heads", "wide-resnet"])
def test_images(tmp_path, name):
    """From image files come the student's own labels, with the extractor in the folder or by a graph of PyTorch."""
    images, labels = coloured_images(45)
    schema, rows = learn_rows(images)
    params = (
        TINY_RESNET if name == "wide-resnet" else {"features": averages(tmp_path / "m.onnx"), "cache": None}
    )
    student = trained(student_named(name, params), schema, rows, labels, ("red", "green", "blue"))
    home = written(student, tmp_path / "student")
    files = []
    for i, image in enumerate(images[:12]):
        files.append(tmp_path / f"{i}.png")
        Image.fromarray(image).save(files[-1])
    expected = student.predict(rows.take(np.arange(12)))
    _, *found = run_program(home, *files)
    assert found == [f"{file},{('red', 'green', 'blue')[i]}" for file, i in zip(files, expected, strict=True)]
    assert len({line.rpartition(",")[2] for line in found}) == 3


@pytest.mark.parametrize("name", ["heads", "bert-small"])
def test_texts(tmp_path, name):
    """From lines of text come the student's own labels, by hashed words or as transformers loads them."""
    texts, labels = plain_texts(60)
    schema, rows = learn_rows(texts)
    params = TINY_BERT if name == "bert-small" else {"features": "tfidf"}
    student = trained(student_named(name, params), schema, rows, labels, ("bad", "good"))
    home = written(student, tmp_path / "student")
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n")
    _, *found = run_program(home, tmp_path / "texts.txt")
    assert found == [("bad", "good")[i] for i in student.predict(rows)]
    assert len(set(found)) == 2


def test_the_same_student_again():
    """The same labels give the same bytes, so that a student can be made again by whoever checks it."""
    table = mixed_table(100)
    schema, rows = learn_rows(table)
    codes = np.unique(labels_of(table), return_inverse=True)[1]
    for name in ("xgboost", "logistic", "random-forest"):
        once, again = (
            files_of(trained(student_named(name, SMALL[name]), schema, rows, codes, "ab")) for _ in range(2)
        )
        assert once == again


def test_columns_tell_nothing_of_the_pool():
    """A student lists the categories of public rows and all of these, as texts; lists that were declared stay."""
    pool = pd.DataFrame(
        {"town": ["ash", "oak", "elm", "fir"] * 5, "ward": [1, 2] * 10, "n": range(20), "bed": ["A"] * 20}
    )
    schema, _ = learn_rows(pool, types={"ward": "category", "bed": ["B", "A"]})
    table = pd.DataFrame(
        {"town": ["oak", "yew", "elm", None, "oak"], "ward": [2, 7, 2.0, 7, 1.5], "n": range(5), "bed": "C"}
    )
    public = PublicRows.of(schema, table)
    student = trained(
        learner_named("xgboost", SMALL["xgboost"]), public.schema, public.rows, [0, 1, 0, 1, 0], "ab"
    )
    columns = json.loads(files_of(student)["student.json"])["columns"]
    listed = [["elm", "oak", "yew"], ["1.5", "2", "7"], [], ["B", "A"]]
    assert [column["categories"] for column in columns] == listed
    assert not any(word in files_of(student)["student.json"].decode() for word in ("ash", "fir"))
    assert public.rows.numbers[:, 0].tolist()[:3] == [1, 2, 0]
    assert schema.columns[0].decode(public.asked.numbers[:3, 0]) == ["oak", "other", "elm"]


def test_a_public_column_of_many_values(tmp_path):
    """Of more values than a category can have, a student lists the most frequent; a column may also have none."""
    schema, _ = learn_rows(pd.DataFrame({"a": ["x", "y"] * 9, "b": ["x", "y"] * 9}))
    values = [f"v{i:03}" for i in range(300)] + [f"v{i:03}" for i in range(40, 290)]
    table = pd.DataFrame({"a": values, "b": [None] * len(values)})
    public = PublicRows.of(schema, table)
    listed = [column.categories for column in public.schema.columns]
    assert listed == [tuple(f"v{i:03}" for i in [*range(4), *range(40, 290)]), ()]
    codes = np.arange(len(values)) % 2
    for name in ("xgboost", "logistic"):
        student = trained(student_named(name, SMALL[name]), public.schema, public.rows, codes, "ab")
        home = written(student, tmp_path / name)
        asked = table.assign(b="new")
        expected = ["ab"[i] for i in student.predict(student.schema.rows(asked))]
        assert run_program(home, as_csv(asked, tmp_path / "asked.csv"))[1:] == expected


def test_weights_and_copies(tmp_path):
    """A learner that takes weights is given them; one that takes none gets light classes several times."""
    images, _ = coloured_images(30, n_classes=3)
    labels = np.where(np.arange(30) < 24, 0, 1)
    schema, rows = learn_rows(images)
    seen = []

    class Watched(type(learner_named("wide-resnet", TINY_RESNET))):
        def fit(self, records, schema, seed):
            seen.append(records)
            return super().fit(records, schema, seed)

    learner = Watched(learner_named("wide-resnet", TINY_RESNET).settings)
    weights = np.where(labels == 0, 30 / 48, 30 / 12)
    trained(learner, schema, rows, labels, "ab", weights)
    assert np.bincount(seen[0].labels).tolist() == [24, 24]
    assert seen[0].weights is None
    # Copies have one unit, so that none is trained on while another is held out.
    assert np.unique(seen[0].units).size == 30
    with pytest.raises(InvalidInput, match="soft targets are weights"):
        check_student(learner, "image", soft=True)


def test_what_cannot_be_published():
    """Features that are a function of somebody's own have no file; misspelt classifiers are named."""
    with pytest.raises(InvalidInput, match="features of a function of your own"):
        check_format(
            student_named("heads", {"features": lambda image: image.mean(axis=(0, 1)), "cache": None})
        )
    for name in ("sklearn.nowhere.Nobody", "sklearn.linear_model.Nobody"):
        with pytest.raises(InvalidInput, match="cannot be made"):
            student_named(name)
    with pytest.raises(InvalidInput, match="does not predict classes"):
        student_named("sklearn.linear_model.LinearRegression")


def test_an_estimator_as_it_is():
    """Whoever brings an estimator gets a student of it."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    assert student_of(LogisticRegression(C=3)).estimator.C == 3
