"""Columns whose type is declared, and dates: days by choice, refused otherwise, never text."""

import json
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest

from pacpredict.exceptions import InvalidInput, InvalidQuery, InvalidTable
from pacpredict.tables.dates import guess_format
from pacpredict.tables.declared import declared_types
from pacpredict.tables.schema import Schema

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def declared(values, kind, **options):
    return Schema.infer(pd.DataFrame({"x": values}), types={"x": kind}, **options)


def numbers(schema, values):
    return schema.rows({"x": values}).numbers[:, 0].tolist()


MOMENTS = ["1969-12-31", "2024-02-29", "2024-02-29 12:30", "2024-02-29T23:59:59.5", "1890-05-17"]


@pytest.mark.parametrize(
    "as_given",
    [
        list,
        lambda texts: [datetime.fromisoformat(text) for text in texts],
        lambda texts: np.array(texts, dtype="datetime64[us]"),
        lambda texts: pd.to_datetime(pd.Series(texts), format="ISO8601"),
        lambda texts: pd.to_datetime(pd.Series(texts), format="ISO8601").dt.tz_localize("UTC"),
        lambda texts: [np.datetime64(text) for text in texts],
    ],
    ids=["texts", "datetimes", "array", "series", "with zone", "scalars"],
)
def test_dates_become_days(as_given):
    """A declared date is its days since 1970, whatever type it comes in: Python's own arithmetic says the same."""
    values = as_given(MOMENTS)
    expected = [
        (datetime.fromisoformat(text).replace(tzinfo=UTC) - EPOCH) / timedelta(days=1) for text in MOMENTS
    ]
    schema = declared(values, "date")
    assert numbers(schema, values) == expected
    assert numbers(schema, MOMENTS) == expected  # a query may come as text
    assert schema.columns[0].kind == "date"
    assert schema.features(schema.rows({"x": values})).shape == (5, 1)


def test_dates_of_another_zone_and_days_without_time():
    """A moment is the same moment in every zone; a plain date is its midnight."""
    schema = declared([date(2024, 1, 2), None], "date")
    there = datetime(2024, 1, 2, 1, tzinfo=timezone(timedelta(hours=1)))
    assert numbers(schema, [date(2024, 1, 2), there, "2024-01-02T01:00+01:00"]) == [19724.0] * 3
    assert np.isnan(numbers(schema, [None, pd.NaT, np.datetime64("NaT")])).all()


@pytest.mark.parametrize(
    ("form", "texts"),
    [
        ("", ["2024-02-01", "2023-12-24 10:00"]),
        ("%d.%m.%Y", ["01.02.2024", "24.12.2023"]),
        ("%d.%m.%y", ["01.02.24", "24.12.23"]),
        ("%m/%d/%Y", ["02/01/2024", "12/24/2023"]),
        ("%d/%m/%Y", ["01/02/2024", "24/12/2023"]),
        ("%d.%m.%Y %H:%M", ["01.02.2024 7:30", "24.12.2023 18:00"]),
        ("%Y/%m/%d", ["2024/02/01", "2023/12/24"]),
        ("%d-%b-%Y", ["01-FEB-2024", "24-Dec-2023"]),
        ("%b %d, %Y", ["Feb 1, 2024", "Dec 24, 2023"]),
    ],
    ids=str,
)
def test_dates_are_not_taken_as_text(form, texts):
    """A column of dates is refused with the words that make days of it, and with these it is taken."""
    assert guess_format(texts) == form
    wanted = f"date:{form}" if form else "date"
    with pytest.raises(InvalidTable, match="has dates, such as") as refused:
        Schema.infer(pd.DataFrame({"x": texts * 9}))
    assert f"--types x={wanted}," in str(refused.value)
    days = numbers(declared(texts, wanted), texts)
    assert [int(day) for day in days] == [19754, 19715]
    with pytest.raises(InvalidTable, match="has dates, and cannot be text"):
        declared([*texts, None], "text")
    assert len(declared(texts, "category").columns[0].categories) == 2  # a wave of a survey, say: by choice


@pytest.mark.parametrize(
    "texts",
    [
        ["1.2.3", "1.2.4"],
        ["12-34", "56-78"],
        ["a", "2024-01-01"],
        ["2024", "2023"],
        ["10/11", "2/3"],
        ["A-1-2020"],
    ],
    ids=str,
)
def test_other_things_are_no_dates(texts):
    """Versions, codes, years and single dates among other texts stay categories."""
    assert Schema.infer(pd.DataFrame({"x": texts})).columns[0].kind == "category"


def test_limits_of_detection_are_numbers():
    """Laboratories write <0.5; a column of numbers takes that as 0.5 in any query, whether or not training had it."""
    values = ["1.5", "<0.5", "> 100", "≤2", None, "7"]
    assert Schema.infer(pd.DataFrame({"x": values})).columns[0].kind == "category"
    schema = declared(values, "number")
    assert numbers(schema, ["1.5", "<0.5", ">100", "≤2", 7]) == [1.5, 0.5, 100.0, 2.0, 7.0]
    again = Schema.from_json(json.loads(json.dumps(schema.to_json())))
    assert again == schema
    assert numbers(again, ["<0.25"]) == [0.25]
    plain = declared(["1.5", "7"], "number")
    assert numbers(plain, ["<0.5"]) == [0.5]
    with pytest.raises(InvalidQuery, match="expected a number, got '<'"):
        plain.rows({"x": ["<"]})


def test_numbers_can_be_categories():
    """Codes of wards are names, not quantities, if somebody says so."""
    schema = declared([3, 1, 2, 3], "category")
    assert schema.columns[0].categories == (1, 2, 3)
    assert schema.feature_categories == (4,)
    assert numbers(schema, ["3", 1.0, 2]) == [2.0, 0.0, 1.0]
    assert declared([3.0, np.nan, 1.0], "category").columns[0].categories == (1.0, 3.0)


def test_short_texts_can_be_text_and_ones_booleans():
    """What would be a category can be declared free text, and 0 and 1 a boolean."""
    assert declared(["good", "bad", None], "text").columns[0].kind == "text"
    assert numbers(declared([0, 1, 1], "boolean"), [True, "false", 1]) == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("values", "kind", "error", "words"),
    [
        (
            ["1", "pending"],
            "number",
            InvalidTable,
            r"'x', row 1 \(from 0\): expected a number, got 'pending'; .*--missing",
        ),
        ([1.0, np.inf], "number", InvalidTable, "infinite numbers"),
        ([2**53, 1], "number", InvalidTable, r"2\*\*53"),
        ([1, 2], "boolean", InvalidTable, r"row 1 .*expected true, false, 1 or 0, got 2"),
        ([1, 2], "text", InvalidTable, "expected a text, got 1"),
        (["2024-01-01", "soon"], "date", InvalidTable, "row 1 .*expected a date like 2024-12-31, got 'soon'"),
        (
            ["31.12.2024", "12.31.2024"],
            "date:%d.%m.%Y",
            InvalidTable,
            "row 1 .*a date like 31.12.2024, got '12.31",
        ),
        ([20240101], "date", InvalidTable, "expected a date like 2024-12-31, got 20240101"),
        (
            [str(i) for i in range(256)],
            "category",
            InvalidTable,
            "256 different values .*a category can have 254",
        ),
        (["a", 1], "category", InvalidTable, "mixes text and numbers"),
        ([None, None], "number", InvalidTable, "no values"),
        (
            [1, 2],
            "integer",
            InvalidInput,
            "must be one of number, boolean, category, text, date, or date:FORMAT",
        ),
        ([1, 2], "text:%d", InvalidInput, "got 'text:%d'"),
        ([1, 2], None, InvalidInput, "got None"),
    ],
    ids=str,
)
def test_declarations_that_do_not_fit(values, kind, error, words):
    """What a column cannot be is said with the row, the value and what to do."""
    with pytest.raises(error, match=words):
        declared(pd.Series(values, dtype=object), kind)


def test_columns_that_are_not_there():
    """A declaration of an unknown column is a mistake, not nothing."""
    with pytest.raises(InvalidTable, match="types are declared of 'y', but the columns are 'x'"):
        Schema.infer(pd.DataFrame({"x": [1]}), types={"y": "number"})
    assert Schema.infer(np.array([[1, 2]]), types={"x1": "category"}).columns[1].kind == "category"


def test_declarations_are_found_again():
    """A schema tells the types that its training data needs, so that fitting again makes the same columns."""
    table = pd.DataFrame(
        {"d": ["2024-01-02"], "e": ["02.01.2024"], "w": [3], "n": [1.5], "c": ["a"], "b": [True]}
    )
    types = {"d": "date", "e": "date:%d.%m.%Y", "w": "category", "c": ["b", "a"]}
    schema = Schema.infer(table, types)
    assert declared_types(schema.columns) == types
    assert Schema.infer(table, types=declared_types(schema.columns)) == schema


def test_dates_in_frames_are_days():
    """A pipeline gets the days as numbers, as every learner does."""
    schema = declared(["2024-01-02", "2024-01-03"], "date")
    assert schema.frame(schema.rows({"x": ["2024-01-02"]}))["x"].tolist() == [19724.0]


def test_what_may_mean_missing_is_said_for_both_ways():
    """Whoever fits in Python has no option: the error says what to put there instead."""
    with pytest.raises(InvalidTable, match="say so: --missing, or NaN instead of it in Python"):
        Schema.infer({"x": ["1", "unknown"]}, types={"x": "number"})
