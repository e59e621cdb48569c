"""Schemas of published data sets, from the files as they are."""

import json

import numpy as np
import pandas as pd
import pytest
from real_data import real_file

from pacpredict.tables.classes import Classes
from pacpredict.tables.csv_files import read_texts
from pacpredict.tables.read import read_table
from pacpredict.tables.schema import Schema

CENSUS = [
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *(
        "relationship",
        "race",
        "sex",
        "capital-gain",
        "capital-loss",
        "hours-per-week",
        "native-country",
        "income",
    ),
]


def census():
    return read_table(real_file("adult", "adult.data"), missing=["?"], names=CENSUS)


def bank():
    return read_table(real_file("bank", "bank-additional-full.csv"))


def test_census():
    """Census income has six numbers, eight categories, and two classes."""
    table = census()
    schema = Schema.infer(table.drop(columns="income"))
    assert len(table) == 32_561
    categories = {
        column.name: len(column.categories) for column in schema.columns if column.kind == "category"
    }
    assert categories == {
        "workclass": 8,
        "education": 16,
        "marital-status": 7,
        "occupation": 14,
        "relationship": 6,
        "race": 5,
        "sex": 2,
        "native-country": 41,
    }
    assert sum(column.kind == "number" for column in schema.columns) == 6
    assert Classes.infer(table["income"]).values == ("<=50K", ">50K")


def test_bank():
    """Bank marketing, separated by semicolons, has ten numbers, ten categories and two classes."""
    table = bank()
    schema = Schema.infer(table.drop(columns="y"))
    assert len(table) == 41_188
    kinds = [column.kind for column in schema.columns]
    assert (kinds.count("number"), kinds.count("category")) == (10, 10)
    assert Classes.infer(table["y"]).values == ("no", "yes")


@pytest.mark.parametrize(("load", "target"), [(census, "income"), (bank, "y")], ids=["census", "bank"])
def test_protocols_agree(load, target, tmp_path):
    """A real query has one digest, whether it comes from a frame, CSV, text, Parquet, JSON or a frame of rows."""
    table = load().drop(columns=target)
    schema = Schema.infer(table)
    rows = schema.rows(table)
    digests = schema.digests(rows)
    assert len(set(digests)) == len(table.drop_duplicates())
    assert schema.digests(schema.rows(schema.frame(rows))) == digests
    np.testing.assert_array_equal(schema.features(rows), rows.numbers)

    table.to_csv(tmp_path / "table.csv", index=False)
    table.to_parquet(tmp_path / "table.parquet")
    assert schema.digests(schema.rows(read_table(tmp_path / "table.csv"))) == digests
    texts = {
        name: [cell or None for cell in cells] for name, cells in read_texts(tmp_path / "table.csv").items()
    }
    assert schema.digests(schema.rows(texts)) == digests
    assert schema.digests(schema.rows(read_table(tmp_path / "table.parquet"))) == digests

    some = table.iloc[:500]
    records = json.loads(some.to_json(orient="records", double_precision=15))
    assert schema.digests(schema.rows(records)) == digests[:500]
    assert schema.digests(schema.rows(some.convert_dtypes(dtype_backend="pyarrow"))) == digests[:500]


def test_reviews_are_text():
    """Reviews are free text, which becomes hashed words."""
    table = pd.read_csv(real_file("imdb", "test.csv.gz"), nrows=300)
    schema = Schema.infer(table[["text"]])
    assert schema.columns[0].kind == "text"
    assert schema.features(schema.rows(table[["text"]])).shape == (300, 64)
