"""What is said about training data before anything is trained."""

import numpy as np
import pandas as pd
import pytest
from records import labels_of, mixed_pool, mixed_table

from pacpredict.exceptions import InvalidTable
from pacpredict.training.pool import FEWEST_UNITS, Pool

TABLE = pd.DataFrame({"x": np.arange(20.0), "y": np.arange(20.0) % 3})
LABELS = np.arange(20) % 2


def with_infinity():
    table = TABLE.copy()
    table.loc[3, "x"] = np.inf
    return table


@pytest.mark.parametrize(
    ("table", "labels", "words"),
    [
        (TABLE, np.zeros(20, int), "the target has 1 class"),
        (TABLE[:9], LABELS[:9], r"too few records .* \(n_samples = 9\): at least 10"),
        (TABLE, LABELS[:19], "20 records and 19 labels"),
        (TABLE.set_axis(["x", "x"], axis=1), LABELS, "column names must be unique; 'x'"),
        (with_infinity(), LABELS, "column 'x' has infinite numbers"),
        (
            TABLE,
            np.where(LABELS, 1.0, np.nan),
            "the target has 10 missing values; drop these records: .* and 5 more",
        ),
        (
            TABLE,
            [None, *LABELS[1:]],
            r"the target has 1 missing values; drop these records: row 0 \(from 0\)$",
        ),
        (TABLE.assign(y=None), LABELS, "column 'y' has no values; drop it"),
        (TABLE, [[1]] * 20, "labels must be hashable"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(table, labels, words):
    """One class, too few records, duplicate columns, infinities, missing labels: said in words, by what is wrong."""
    with pytest.raises(InvalidTable, match=words):
        Pool.of(table, labels)


def test_the_least_that_can_be_learned_from():
    """Ten records of two classes are a pool."""
    pool = Pool.of(TABLE[:FEWEST_UNITS], LABELS[:FEWEST_UNITS])
    assert len(pool) == 10
    assert repr(pool) == "Pool(10 records, 2 columns, 2 classes)"


def test_a_column_becomes_the_target():
    """Of a frame one column is taken as labels, the others are the table."""
    frame = TABLE.assign(kind=np.where(LABELS, "odd", "even"))
    pool = Pool.of_frame(frame, "kind")
    assert [column.name for column in pool.schema.columns] == ["x", "y"]
    assert pool.classes.values == ("even", "odd")
    assert pool.labels.tolist() == LABELS.tolist()
    with pytest.raises(InvalidTable, match="no column 'sort' to predict; the columns are 'x', 'y', 'kind'"):
        Pool.of_frame(frame, "sort")


def test_digest_is_of_the_records():
    """The same records have the same digest whatever form they come in; a value, a label or the order changes it."""
    table = mixed_table()
    labels = labels_of(table)
    digest = mixed_pool().digest()
    assert Pool.of(table.to_dict("list"), list(labels)).schema.columns[0].name == "age"
    types = {"grade": ["low", "mid", "high"]}
    assert Pool.of(table.astype({"age": "Int32"}), pd.Series(labels), types=types).digest() == digest
    value = table.copy()
    value.loc[5, "hours"] = 1.0
    text = table.copy()
    text.loc[text["note"].notna().idxmax(), "note"] += "!"
    for changed in (value, text, table[::-1]):
        assert Pool.of(changed, labels, types=types).digest() != digest
    assert Pool.of(table, labels[::-1], types=types).digest() != digest


def test_nothing_of_a_record_prints():
    """A pool says how large it is, and shows no record."""
    assert repr(mixed_pool()) == "Pool(120 records, 6 columns, 2 classes)"
