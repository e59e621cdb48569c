"""Queries that do not fit are refused with words; nothing that comes by a network raises anything else."""

import json
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pacpredict.exceptions import InvalidQuery
from pacpredict.show import show
from pacpredict.tables.schema import Schema

TRAINING = pd.DataFrame(
    {
        "age": [39, 50, 38],
        "work": ["private", "state", "local"],
        "member": [True, False, True],
        "level": pd.Categorical([1, 2, 3]),
        "weight": [70.5, np.nan, 81.25],
        "note": ["words " * 30, "other", "more"],
    }
)
SCHEMA = Schema.infer(TRAINING)
GOOD = {"age": 39, "work": "private", "member": True, "level": 1, "weight": None, "note": "text"}


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"age": "abc"}, "column 'age', row 0 .*: expected a number, got 'abc'"),
        ({"age": ""}, r"expected a number, got '' \(a missing value is null in JSON, None in Python\)$"),
        ({"weight": " "}, r"expected a number, got ' ' \(a missing value is null in JSON, None in Python\)$"),
        ({"age": "x" * 10**6}, r"'x{40}'\.\.\. \(1,000,000 characters\)$"),
        ({"age": "1_000"}, "expected a number"),
        ({"age": "٣٩"}, "expected a number"),
        ({"age": "nan"}, "expected a number"),
        ({"age": "inf"}, "expected a number"),
        ({"age": "1e400"}, "expected a number"),
        ({"age": "0x10"}, "expected a number"),
        ({"age": 10**400}, "expected a number, got an integer of 1,329 bits"),
        ({"age": -(10**5000)}, "expected a number, got an integer of 16,610 bits"),
        ({"age": float("inf")}, "column 'age', row 0 .*: expected a finite number"),
        ({"age": [39]}, "expected a number, got a value of type list"),
        ({"age": {"value": 39}}, "expected a number, got a value of type dict"),
        ({"age": nested(100_000)}, "type list"),
        ({"age": b"39"}, "type bytes"),
        ({"age": 1j}, "type complex"),
        ({"age": pd.Timestamp(0)}, "type Timestamp"),
        ({"age": pd.Timedelta(1)}, "type Timedelta"),
        ({"age": np.timedelta64(1, "s")}, "got 1 seconds"),
        ({"age": np.array(39)}, "type ndarray"),
        ({"work": ["private"]}, "expected a category, got a value of type list"),
        ({"work": b"private"}, "expected a category, got a value of type bytes"),
        ({"level": np.datetime64(1, "ns")}, "type datetime64"),
        ({"member": "yes"}, "expected true, false, 1 or 0, got 'yes'"),
        ({"member": 2}, "expected true, false, 1 or 0, got 2"),
        ({"member": 0.5}, "expected true, false, 1 or 0, got 0.5"),
        ({"member": {}}, "expected a boolean, got a value of type dict"),
        ({"note": 5}, "expected a text, got 5"),
        ({"note": ["a"]}, "expected a text, got a value of type list"),
        ({"note": "\udfff"}, "is not valid Unicode"),
        ({"more": 1}, "columns 'more' are not known; the model was fitted with 'age', 'work'"),
        ({5: 1, "\ud800": 2}, r"columns 5, '\\ud800' are not known"),
        ({f"{i}" * 1000: 1 for i in range(1, 1000)}, "and 994 more are not known"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_refused(changes, words):
    """A value that does not fit is refused, naming column, row and value, in few words."""
    record = {**GOOD, **changes}
    with pytest.raises(InvalidQuery, match=words) as refused:
        SCHEMA.rows([record])
    assert len(str(refused.value)) < 1000
    str(refused.value).encode()  # it can be sent


def test_row_is_named():
    """In a batch the error says which row it was."""
    records = [GOOD] * 5 + [{**GOOD, "age": "abc"}]
    for table in (records, pd.DataFrame(records)):
        with pytest.raises(InvalidQuery, match="column 'age', row 5"):
            SCHEMA.rows(table)
    with pytest.raises(InvalidQuery, match=r"column 'x1', row 2 .*: expected a finite"):
        Schema.infer(np.eye(3)).rows(np.array([[0, 0, 0], [0, 0, 0], [0, np.inf, 0]]))


def test_absent_columns_are_named():
    """Columns that are missing and columns that are unknown are named together."""
    with pytest.raises(InvalidQuery, match="columns 'age' are missing and columns 'Age' are not known"):
        SCHEMA.rows(TRAINING.rename(columns={"age": "Age"}))
    with pytest.raises(InvalidQuery, match="columns 'age', 'note' are missing;"):
        SCHEMA.rows(TRAINING.drop(columns=["age", "note"]))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([], "no rows"),
        (TRAINING.iloc[:0], "no rows"),
        ({name: [] for name in TRAINING}, "no rows"),
        (np.empty((0, 6)), "no rows"),
        ({}, "are missing"),
        ([{}], "are missing"),
        ([[]], "expected 6 values per row, .*; got 0"),
        ([[1, 2]], "expected 6 values per row, .*; got 2"),
        ([list(GOOD.values()), [1]], "row 1 .* has 1 values"),
        ([GOOD, {"age": 1}], "row 1 .* same columns"),
        ([GOOD, 5], "row 1 .* same columns"),
        ([list(GOOD.values()), 5], "row 1 .* must be a list"),
        (["private"], "row 0 .* must be a list"),
        (5, "type int is not understood"),
        (None, "type NoneType is not understood"),
        ("private", "type str is not understood"),
        (TRAINING["age"], "type Series is not understood"),
        (np.zeros(6), "two-dimensional"),
        (np.zeros((1, 2, 3)), "two-dimensional"),
        ({**{name: [value] for name, value in GOOD.items()}, "age": 39}, "column 'age' must be a list"),
        (
            {**{name: [value] for name, value in GOOD.items()}, "work": "private"},
            "column 'work' must be a list",
        ),
        (
            {**{name: [value] for name, value in GOOD.items()}, "age": np.eye(1)},
            "column 'age' must be a list",
        ),
        ({**{name: [value] for name, value in GOOD.items()}, "age": {0: 39}}, "column 'age' must be a list"),
        ({**{name: [value] for name, value in GOOD.items()}, "note": ["a", "b"]}, "differ in length"),
        (pd.concat([TRAINING, TRAINING], axis=1), "occur more than once"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refused_tables(table, words):
    """A table that is none, is empty or has the wrong shape is refused."""
    with pytest.raises(InvalidQuery, match=words):
        SCHEMA.rows(table)


@pytest.mark.parametrize("shape", [(3,), (2, 2), (2, 4), (0, 3), (1, 3, 3)])
def test_refused_matrices(shape):
    """Tables of numbers only, which take a shorter way, are held to the same shape."""
    with pytest.raises(InvalidQuery):
        Schema.infer(np.eye(3)).rows(np.zeros(shape))


def test_long_doubles_become_infinite():
    """A number that only a long double holds is refused as infinite, in an array as in a column."""
    for table in (
        np.array([["1e4000"]], dtype=np.longdouble),
        {"x0": np.array(["1e4000"], dtype=np.longdouble)},
    ):
        with pytest.raises(InvalidQuery, match="expected a finite number"):
            Schema.infer(np.eye(1)).rows(table)


def test_dates_are_not_integers():
    """An array of dates is not looked up among integer categories by its nanoseconds."""
    columns = {name: [value] for name, value in GOOD.items()}
    with pytest.raises(InvalidQuery, match=r"column 'level', row 0 .*type datetime64"):
        SCHEMA.rows({**columns, "level": np.array([1], dtype="M8[ns]")})


def test_schema_without_names():
    """Queries to a model without names come by position, by default names or as x0, x1, ..., and by no others."""
    schema = Schema.infer(np.eye(2))
    expected = schema.digests(schema.rows([[1, 2]]))
    assert schema.digests(schema.rows(pd.DataFrame([[1, 2]]))) == expected
    assert schema.digests(schema.rows({"x1": [2], "x0": [1]})) == expected
    with pytest.raises(InvalidQuery, match="'x0', 'x1' are missing and columns 'a', 'b' are not known"):
        schema.rows(pd.DataFrame({"a": [1], "b": [2]}))


@pytest.mark.parametrize(
    "value",
    ["federal", "Private", "", "other", "\ud800", "a\0b", 5, 1.5, -(10**5000), np.inf, True],
    ids=show,
)
def test_unknown_categories_are_one(value):
    """Whatever scalar is no category that the column lists is "other" to models, and a query of its own."""
    rows = SCHEMA.rows([{**GOOD, "work": value, "level": 4}, {**GOOD, "work": "unheard of", "level": 4}])
    digests = SCHEMA.digests(rows)
    assert rows.numbers[0, [1, 3]].tolist() == [3, 3]
    assert np.array_equal(rows.numbers[0], rows.numbers[1], equal_nan=True)
    assert digests[0] != digests[1]
    assert digests[0] != SCHEMA.digests(SCHEMA.rows([{**GOOD, "work": None, "level": None}]))[0]


def test_long_text_is_a_query():
    """Megabytes of text and NUL characters are a text like others."""
    texts = ["x y " * 10**6, "a\0b", "", "\U0001f600"]
    rows = SCHEMA.rows([{**GOOD, "note": text} for text in texts])
    assert list(rows.texts[5]) == texts
    assert len(set(SCHEMA.digests(rows))) == 4
    assert np.isfinite(SCHEMA.features(rows)[:, 5:]).all()


json_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([0, -0.0, 1, 1.0, "1", "true", "private", 10**400, "1e999", "\ud800", "\0"])
    | st.floats()
    | st.text(st.characters(exclude_categories=[]))
)
json_values = st.recursive(
    json_scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
records = st.dictionaries(st.sampled_from(list(GOOD)), json_values, max_size=2).map(
    lambda odd: {**GOOD, **odd}
)
tables = (
    json_values
    | st.lists(records, min_size=1, max_size=3)
    | st.dictionaries(st.sampled_from(list(GOOD)), st.lists(json_values, max_size=2), min_size=6)
    | st.lists(records.map(lambda record: list(record.values())), max_size=2)
)


def answer(schema, table):
    """Return the rows, or the words with which they are refused."""
    try:
        return schema.rows(table), ""
    except InvalidQuery as refused:
        return None, str(refused)


@settings(deadline=None, max_examples=300)
@given(table=tables)
def test_any_json_is_answered_or_refused(table):
    """Whatever JSON can say is canonical rows or an InvalidQuery that can be sent, and nothing else."""
    rows, refusal = answer(SCHEMA, table)
    assert len(refusal.encode()) < 2000
    if rows is not None:
        assert not np.isinf(rows.numbers).any()
        assert len(SCHEMA.digests(rows)) == len(SCHEMA.features(rows)) == len(rows) > 0


@settings(deadline=None, max_examples=300)
@given(values=st.fixed_dictionaries({name: st.lists(json_scalars, min_size=1, max_size=1) for name in GOOD}))
def test_any_columns_are_answered_or_refused(values):
    """The same holds for columns by name, one scalar each."""
    try:
        rows = SCHEMA.rows_from_columns(values)
    except InvalidQuery:
        return
    assert SCHEMA.digests(rows) == SCHEMA.digests(
        SCHEMA.rows([{name: value[0] for name, value in values.items()}])
    )


fitting = st.fixed_dictionaries(
    {
        "age": st.none()
        | st.integers(-3, 3)
        | st.floats(allow_infinity=False)
        | st.sampled_from(["0", "-0", "1.0"]),
        "work": st.none() | st.sampled_from(["private", "state", "local", "federal"]),
        "member": st.sampled_from([None, True, False, 0, 1, 1.0, "true", "False"]),
        "level": st.sampled_from([None, 1, 1.0, "1", 2, "2.0", 7, True]),
        "weight": st.none() | st.floats(allow_infinity=False, width=32),
        "note": st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    }
)


def bits(rows, i):
    return rows.numbers[i].tobytes(), tuple(texts[i] for texts in rows.texts.values())


@settings(deadline=None, max_examples=300)
@given(records=st.lists(fitting, min_size=1, max_size=8))
def test_digests_are_equal_if_and_only_if_rows_are(records):
    """A digest stands for a canonical row: the ledger finds repeated queries, and only these, by it."""
    rows = SCHEMA.rows(records)
    digests = SCHEMA.digests(rows)
    for i in range(len(rows)):
        for j in range(i):
            assert (digests[i] == digests[j]) == (bits(rows, i) == bits(rows, j))


@settings(deadline=None, max_examples=200)
@given(records=st.lists(fitting, min_size=1, max_size=8))
def test_rows_survive_frames_and_storage(records):
    """Rows are the same by themselves, in JSON and for a schema that was stored; after a frame, to models."""
    digests = SCHEMA.digests(SCHEMA.rows(records))
    in_frames = [{**record, "level": None if record["level"] == 7 else record["level"]} for record in records]
    framed = SCHEMA.rows(SCHEMA.frame(SCHEMA.rows(records)))
    assert np.array_equal(framed.numbers, SCHEMA.rows(in_frames).numbers, equal_nan=True)
    assert framed.texts == SCHEMA.rows(in_frames).texts
    assert [SCHEMA.digests(SCHEMA.rows([record]))[0] for record in records] == digests
    assert SCHEMA.digests(SCHEMA.rows(json.loads(json.dumps(records)))) == digests
    stored = Schema.from_json(json.loads(json.dumps(SCHEMA.to_json())))
    assert stored.digests(stored.rows(records)) == digests


def best_time(function, repetitions):
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def test_single_rows_are_fast():
    """One row of 14 columns takes well under 100 microseconds, digest included."""
    table = pd.DataFrame({f"n{i}": [1.5, 2.5] for i in range(7)} | {f"c{i}": ["a", "b"] for i in range(7)})
    schema = Schema.infer(table)
    query = {name: [value] for name, value in table.iloc[0].items()}
    assert best_time(lambda: schema.digests(schema.rows_from_columns(query)), 500) < 100e-6


def test_large_frames_are_fast():
    """A frame of 30,000 rows and 14 columns takes well under a second."""
    table = pd.DataFrame(
        {f"n{i}": np.arange(30_000) / 7 for i in range(7)} | {f"c{i}": ["a", "b"] * 15_000 for i in range(7)}
    )
    schema = Schema.infer(table)
    assert best_time(lambda: schema.digests(schema.rows(table)), 2) < 1


def test_servers_need_no_pandas():
    """A stored schema reads queries, digests and features of numbers without pandas or scikit-learn."""
    small = Schema.infer(TRAINING.drop(columns="note"))
    query = {name: [value] for name, value in GOOD.items() if name != "note"}
    code = f"""
import json, sys
from pacpredict.show import show
from pacpredict.tables.schema import Schema
schema = Schema.from_json(json.loads({json.dumps(small.to_json())!r}))
rows = schema.rows_from_columns({query!r})
schema.features(rows)
print(schema.digests(rows)[0].hex(), "pandas" in sys.modules, "sklearn" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    (digest,) = small.digests(small.rows(query))
    assert done.stdout.split() == [digest.hex(), "False", "False"]
