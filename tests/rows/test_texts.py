"""Texts as whole values: one canonical form, one digest, and errors that name the row."""

import hashlib

import numpy as np
import pandas as pd
import pytest

from pacpredict.exceptions import InvalidModel, InvalidQuery, InvalidTable
from pacpredict.rows.infer import schema_from_json
from pacpredict.rows.texts import LONGEST_TEXT, Texts, TextSchema

SCHEMA = TextSchema()


def digest(text):
    return SCHEMA.digests(SCHEMA.rows([text]))[0]


@pytest.mark.parametrize(
    "other", ["caf\u00e9 au\nlait", "cafe\u0301 au\nlait", "caf\u00e9 au\r\nlait", "  caf\u00e9 au\rlait\n"]
)
def test_texts_that_mean_the_same_are_one_query(other):
    """Composed or not, with lines ended in three ways and blanks around: the digest is that of the canonical text."""
    expected = hashlib.sha256(b"pacpredict text 1\n" + "caf\u00e9 au\nlait".encode()).digest()
    assert digest(other) == expected


@pytest.mark.parametrize("other", ["Text", "text.", "te xt", "text\n\ntext", "\u200btext"])
def test_texts_that_differ_are_two_queries(other):
    """Case, punctuation and blanks inside count."""
    assert digest(other) != digest("text")


@pytest.mark.parametrize("other", ["a\u2028b", "a\u2029b", "a\x85b", "a\x0bb", "a\x0cb", "a\n\rb"])
def test_other_signs_that_separate_lines_stay_what_they_are(other):
    """Only what files end lines by is made one."""
    assert digest(other) != digest("a\nb")


@pytest.mark.parametrize(
    "given",
    [
        ["a b", "c"],
        ("a b", "c"),
        np.array(["a b", "c"]),
        np.array([["a b"], ["c"]], dtype=object),
        pd.Series(["a b", "c"]),
        pd.DataFrame({"text": ["a b", "c"], "label": [0, 1]}),
        pd.DataFrame({"review": ["a b", "c"]}),
        {"text": ["a b", "c"]},
        [{"text": "a b"}, {"text": "c"}],
    ],
    ids=lambda given: type(given).__name__,
)
def test_forms(given):
    """Texts come bare, as the column of their name, or as the only column of a table."""
    assert SCHEMA.rows(given).texts == ("a b", "c")


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("", "is empty"),
        (" \n\t", "is empty"),
        ("x" * (LONGEST_TEXT + 1), "32,769 characters, more than the limit of 32,768"),
        ("\ufb2c" * 20_000, "60,000 characters, more than the limit of 32,768"),  # in the normal form
        ("e\u0301" * 20_000, "40,000 characters, more than the limit of 32,768"),  # as it comes
        (None, "is missing"),
        (float("nan"), "is missing"),
        (7, "expected a text, got 7"),
        (b"text", "expected a text"),
        ("\ud800", "not valid Unicode"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_row(bad, said):
    """The error names the row, and is of training data or of a query as the case may be."""
    with pytest.raises(InvalidQuery, match=rf"row 1 \(from 0\).*{said}"):
        SCHEMA.rows(["good", bad])
    with pytest.raises(InvalidTable, match=rf"row 1 \(from 0\).*{said}"):
        TextSchema.learn(["good", bad])


@pytest.mark.parametrize(
    "given",
    [
        [],
        7,
        "x",
        np.array("x"),
        {"text": "x"},
        {"a": ["x"], "b": ["y"]},
        pd.DataFrame({"a": ["x"], "b": ["y"]}),
    ],
)
def test_what_holds_no_texts_is_refused(given):
    """Nothing, a number, and tables in which the column is not found."""
    with pytest.raises(InvalidQuery):
        SCHEMA.rows(given)


def test_take_and_join():
    """Parts of rows, put together again, are the rows."""
    rows = SCHEMA.rows(["a", "b", "c"])
    assert rows.take([2, 0]).texts == ("c", "a")
    assert rows.take(np.array([True, False, True])).texts == ("a", "c")
    assert Texts.join([rows.take([0]), rows.take([1, 2])]).texts == rows.texts


def test_schema_survives_json():
    """An artifact's schema is read back as it was, and a damaged one is refused."""
    schema = TextSchema("review", 500)
    assert schema_from_json(schema.to_json()) == schema
    for damaged in (
        {"kind": "text"},
        {**schema.to_json(), "longest": "500"},
        {**schema.to_json(), "more": 1},
    ):
        with pytest.raises(InvalidModel):
            schema_from_json(damaged)


def test_all_that_cannot_be_used_is_named_at_once():
    """Whoever mends a table of texts learns of all rows that have none in one go; a query says which was the first."""
    with pytest.raises(InvalidTable, match=r"row 1 \(from 0\): .* empty.*; row 3 \(from 0\): .* missing"):
        TextSchema.learn(["a", " ", "b", None])
    with pytest.raises(InvalidQuery) as refusal:
        TextSchema().rows(["a", " ", "b", None])
    assert refusal.value.row == 1
