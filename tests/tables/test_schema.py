"""Training tables become schemas; queries that mean the same become the same rows."""

import hashlib
import json
import struct
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from pacpredict.exceptions import InvalidInput, InvalidModel, InvalidTable
from pacpredict.tables.categories import LONGEST_CATEGORY
from pacpredict.tables.declared import MOST_CATEGORIES
from pacpredict.tables.schema import Column, Schema
from pacpredict.tables.words import N_WORD_FEATURES

REVIEW = "A sentence that is much longer than what anybody would call a category. " * 2


def people():
    return pd.DataFrame(
        {
            "age": [39, 50, 38, 53],
            "work": ["private", "state", None, "private"],
            "member": [True, False, True, True],
            "grade": pd.Categorical(["low", "high", "low", None], categories=["low", "middle", "high"]),
            "weight": [70.5, np.nan, 81.25, 90.0],
            "note": [REVIEW, "short", None, ""],
        }
    )


def same(rows, others):
    return rows.texts == others.texts and np.array_equal(rows.numbers, others.numbers, equal_nan=True)


def kinds(table):
    return [column.kind for column in Schema.infer(table).columns]


def one_column(values, **options):
    return Schema.infer(pd.DataFrame({"x": values}), **options)


def test_kinds_of_columns():
    """Each column gets the kind of its values, with its categories; those of a dtype that do not occur are none."""
    assert Schema.infer(people()).columns == (
        Column("age", "number"),
        Column("work", "category", ("private", "state")),
        Column("member", "boolean"),
        Column("grade", "category", ("low", "high"), is_dtype=True),
        Column("weight", "number"),
        Column("note", "text"),
    )


@pytest.mark.parametrize(
    ("values", "kind", "has_missing"),
    [
        (pd.array([1, None, 3], dtype="Int64"), "number", True),
        (pd.array([1, 2, 3], dtype="Int64"), "number", False),
        (pd.array([1.5, None, 3], dtype="Float32"), "number", True),
        (pd.array([True, None, False], dtype="boolean"), "boolean", True),
        (pd.array(["a", None, "b"], dtype="string"), "category", True),
        (pd.array([1, None, 3], dtype="int64[pyarrow]"), "number", True),
        (pd.array([1.5, 2.5, 3], dtype="double[pyarrow]"), "number", False),
        (pd.array([True, None, False], dtype="bool[pyarrow]"), "boolean", True),
        (pd.array(["a", "b", "b"], dtype="string[pyarrow]"), "category", False),
        (pd.arrays.SparseArray([0.0, 0.0, 1.0]), "number", False),
        (np.array([1, 2.5, None], dtype=object), "number", True),
        (np.array([Decimal("1.5"), Fraction(1, 2), np.float32(3)], dtype=object), "number", False),
        (np.array([True, None, np.False_], dtype=object), "boolean", True),
        (np.array([True, 2, 3], dtype=object), "number", False),
        (np.array(["a", pd.NA, np.nan], dtype=object), "category", True),
        (np.array([1, 2, 3], dtype=np.uint8), "number", False),
        (np.array([1, 2, 3], dtype=np.float16), "number", False),
    ],
    ids=str,
)
def test_dtypes_of_a_column(values, kind, has_missing):
    """Nullable, Arrow-backed, sparse and object columns are what their values are."""
    schema = one_column(values)
    (column,) = schema.columns
    assert column.kind == kind
    rows = schema.rows(pd.DataFrame({"x": values}))
    assert np.isnan(rows.numbers).any() == has_missing
    assert same(rows, schema.rows({"x": [None if pd.isna(value) else value for value in values]}))


def test_arrays_and_lists_have_no_names():
    """Arrays, lists and frames with default names make columns x0, x1, ..., each with a kind of its own."""
    rows = [[1, "a", True, None], [2, "b", False, 0.5]]
    for table in (rows, np.array(rows, dtype=object), pd.DataFrame(rows), [tuple(row) for row in rows]):
        schema = Schema.infer(table)
        assert not schema.is_named
        assert [column.name for column in schema.columns] == ["x0", "x1", "x2", "x3"]
        assert [column.kind for column in schema.columns] == ["number", "category", "boolean", "number"]
    assert kinds(np.eye(3)) == ["number"] * 3
    assert kinds(np.eye(3, dtype=np.bool_)) == ["boolean"] * 3
    assert kinds(np.array([["a"], ["b"]])) == ["category"]


def test_masked_values_are_missing():
    """What a masked array hides is missing, not the number beneath."""
    masked = np.ma.MaskedArray([[1.0, 2.0], [3.0, 4.0]], mask=[[False, True], [False, False]])
    schema = Schema.infer(masked)
    assert np.isnan(schema.rows(masked).numbers).tolist() == [[False, True], [False, False]]


def test_free_text_or_category():
    """Texts are categories up to 254 of them and 100 characters each, and free text beyond."""
    assert kinds([[f"{i}"] for i in range(MOST_CATEGORIES)] * 2) == ["category"]
    assert kinds([[f"{i}"] for i in range(MOST_CATEGORIES + 1)] * 2) == ["text"]
    assert kinds([["x" * LONGEST_CATEGORY]]) == ["category"]
    assert kinds([["x" * (LONGEST_CATEGORY + 1)]]) == ["text"]


def test_categories_do_not_tell_the_order_of_records():
    """A schema is the same for the same records in any order."""
    table = people()
    assert Schema.infer(table.iloc[::-1]) == Schema.infer(table)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "'a' occur more than once"),
        (pd.DataFrame(index=range(3)), "no columns"),
        (pd.DataFrame({"a": []}), "no rows"),
        ([], "no rows"),
        ([[]], "no columns"),
        (np.empty((0, 3)), "no rows"),
        (np.empty((3, 0)), "no columns"),
        (np.zeros(3), "two-dimensional"),
        (np.zeros((3, 1), dtype=[("a", float)]), "two-dimensional"),
        ([[1, 2], [3]], "row 1 .* has 1 values, but the first has 2"),
        ([1, 2], "row 0 .* must be a list"),
        ("table.csv", "type str is not understood"),
        ({"a": [1, 2], "b": [1]}, "differ in length"),
        (pd.DataFrame({5: [1], 7: [2]}), "must be texts, got 5, 7"),
        ({"a\ud800": [1]}, "not valid Unicode"),
        (pd.DataFrame({"a": [1.0, np.inf]}), "'a' has infinite numbers"),
        (pd.DataFrame({"a": np.array([1, -np.inf], dtype=object)}), "'a' has infinite numbers"),
        (pd.DataFrame({"a": np.array([1.5, Decimal("1e999")], dtype=object)}), "infinite numbers"),
        (pd.DataFrame({"a": [None, None]}), "'a' has no values; drop it"),
        (pd.DataFrame({"a": [np.nan, np.nan]}), "'a' has no values; drop it"),
        (pd.DataFrame({"a": pd.Categorical([None], categories=["x"])}), "'a' has no values; drop it"),
        (pd.DataFrame({"a": [2**53, 1]}), r"integers of 2\*\*53 or more"),
        (
            pd.DataFrame({"a": [2**53 + 2, 1, None]}),
            r"integers of 2\*\*53 or more",
        ),  # floats, as pandas reads it
        (pd.DataFrame({"a": np.array([-(2**53), 1], dtype=object)}), r"integers of 2\*\*53 or more"),
        (pd.DataFrame({"a": np.array([10**400, 1], dtype=object)}), r"integers of 2\*\*53 or more"),
        (pd.DataFrame({"a": pd.array([2**53 + 1, None], dtype="Int64")}), r"integers of 2\*\*53 or more"),
        (pd.DataFrame({"a": [[1], [2]]}), "type list"),
        (pd.DataFrame({"a": [{"b": 1}]}), "type dict"),
        (pd.DataFrame({"a": [b"x"]}), "type bytes"),
        (pd.DataFrame({"a": [1j]}), "type complex"),
        (pd.DataFrame({"a": np.array(["x", 1], dtype=object)}), r"type int, str; .*astype\(str\)"),
        (
            pd.DataFrame({"a": pd.to_datetime(["2024-01-01"])}),
            "has dates, such as 2024-01-01; .*--types a=date",
        ),
        (pd.DataFrame({"a": pd.to_datetime(["2024-01-01"]).tz_localize("UTC")}), "has dates"),
        (pd.DataFrame({"a": pd.to_timedelta([1], unit="s")}), "such as hours"),
        (pd.DataFrame({"a": pd.period_range("2024", periods=2)}), "type Period"),
        (pd.DataFrame({"a": pd.cut([1, 2], 2)}), r"category a value of type Interval; .*astype\(str\)"),
        (pd.DataFrame({"a": pd.Categorical([2.0, np.inf])}), "category inf"),
        (pd.DataFrame({"a": pd.Categorical([1, 2**53])}), "category 9007199254740992"),
        ({"a": ["\ud800"]}, "not valid Unicode"),
    ],
    ids=lambda value: None if isinstance(value, str) else "",
)
def test_what_cannot_be_learned_from(table, words):
    """A training table with something unusable is refused with words that say what and where."""
    with pytest.raises(InvalidTable, match=words):
        Schema.infer(table)


@pytest.mark.parametrize("min_category", [0, -1, 1.5, "10", None, True, float("nan")])
def test_minimum_must_be_a_number_of_units(min_category):
    """A minimum that is no count is refused before the table is looked at."""
    with pytest.raises(InvalidInput, match="min_category must be a whole number of units from 1 on"):
        Schema.infer(people(), min_category=min_category)


def forms_of(table):
    """Return the same rows in every form that a query can come in."""
    records = table.astype(object).where(table.notna(), None).to_dict("records")
    texts = [{k: v if v is None or k == "note" else str(v) for k, v in record.items()} for record in records]
    return {
        "frame": table,
        "other order": table[table.columns[::-1]],
        "other index": table.set_axis([7, 7, 8, 9]),
        "objects": table.astype(object),
        "nullable": table.convert_dtypes(),
        "arrow": table.convert_dtypes(dtype_backend="pyarrow"),
        "float32": table.astype({"age": np.float32, "weight": np.float32}),
        "plain strings": table.astype({"grade": object}),
        "other categories": table.astype({"work": pd.CategoricalDtype(["x", "state", "private"])}),
        "booleans as integers": table.astype({"member": np.int8}),
        "booleans as floats": table.astype({"member": np.float64}),
        "records": records,
        "records in JSON": json.loads(json.dumps(records)),
        "records of text": texts,
        "columns": {name: list(table[name]) for name in table},
        "series": {name: table[name] for name in reversed(list(table))},
        "list of lists": table.to_numpy().tolist(),
        "tuples": tuple(map(tuple, table.to_numpy().tolist())),
        "array": table.to_numpy(),
        "list of arrays": list(table.to_numpy()),
        "default names": table.set_axis(range(6), axis=1),
    }


@pytest.mark.parametrize("form", forms_of(people()))
def test_every_form_is_the_same_query(form):
    """Rows and digests depend on what a table means, not on its form, types or order of columns."""
    schema = Schema.infer(people())
    rows, expected = schema.rows(forms_of(people())[form]), schema.rows(people())
    assert same(rows, expected)
    assert schema.digests(rows) == schema.digests(expected)


def test_canonical_numbers():
    """Numbers stay, booleans are 0 and 1, categories are codes, NaN is missing, and texts are beside."""
    rows = Schema.infer(people()).rows(people())
    assert rows.numbers.dtype == np.float64
    assert rows.numbers.flags.c_contiguous
    nan = np.nan
    expected = [
        [39, 0, 1, 0, 70.5, 0],
        [50, 1, 0, 1, nan, 0],
        [38, nan, 1, 0, 81.25, nan],
        [53, 0, 1, nan, 90, 0],
    ]
    np.testing.assert_array_equal(rows.numbers, expected)
    assert rows.texts == {5: (REVIEW, "short", "", "")}


def test_spellings_of_numbers():
    """A number is the same query as an integer, float of any width, decimal or text."""
    schema = one_column([1.0, 2.0])
    spellings = [
        39,
        39.0,
        "39",
        " 39 ",
        "39.0",
        "3.9e1",
        np.float32(39),
        np.int8(39),
        Decimal(39),
        Fraction(39),
    ]
    assert len(set(schema.digests(schema.rows({"x": spellings})))) == 1
    assert schema.rows({"x": [True, "0.1", 10**30]}).numbers.ravel().tolist() == [1.0, 0.1, 1e30]


def test_zeros_and_nans_are_one_each():
    """The sign of zero and the bits of a NaN do not make another query."""
    schema = one_column([1.0, np.nan])
    odd_nan = np.array([0x7FF8000000000123], dtype=np.uint64).view(np.float64)[0]
    zeros = schema.digests(schema.rows({"x": [0.0, -0.0, 0, "-0", False]}))
    nans = schema.digests(schema.rows({"x": np.array([np.nan, -np.nan, odd_nan])}))
    nans += schema.digests(
        schema.rows({"x": [None, odd_nan, pd.NA, pd.NaT, Decimal("NaN"), np.float32("nan")]})
    )
    assert len(set(zeros)) == len(set(nans)) == 1
    assert zeros[0] != nans[0]


@pytest.mark.parametrize("value", [1, 1.0, "1", "1.0", np.int64(1), np.float32(1), np.str_("1"), Decimal(1)])
@pytest.mark.parametrize("categories", [[0, 1], [0.0, 1.0]])
def test_spellings_of_categories(categories, value):
    """A category that is a number is found by its value."""
    schema = one_column(pd.Categorical(categories))
    assert schema.rows({"x": [value]}).numbers.tolist() == [[1.0]]


def test_numbers_are_found_among_texts():
    """A category that is a text is found by the number or truth that it spells, however that is written."""
    schema = one_column(["0", "0.5", "7", "True"])
    values = [0, 0.0, np.int8(0), "0.0", "00", 0.5, Decimal("0.5"), 7.0, "7", True, np.True_, "true"]
    assert schema.rows({"x": values}).numbers.ravel().tolist() == [0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 3]
    others = [1, "1", False, "false", "TRUE?", "", "other", "x" * 10**6, np.inf, 10**400, "\ud800"]
    assert schema.rows({"x": others}).numbers.ravel().tolist() == [4] * len(others)


def test_exact_category_comes_first():
    """Where 1 and "1" are both categories, each is itself."""
    schema = one_column(pd.Categorical([1, "1"]))
    assert schema.rows({"x": ["1", 1]}).numbers.ravel().tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    "categories", [[False, True], np.array([False, True]), pd.Categorical([False, True])]
)
def test_spellings_of_booleans(categories):
    """Booleans may come as 0 and 1, as floats and as text in any case."""
    schema = one_column(categories)
    true = [True, 1, 1.0, "true", "True", "TRUE", "1", np.True_, np.int8(1)]
    false = [False, 0, -0.0, "false", "False", "0", np.False_]
    assert schema.rows({"x": true}).numbers.ravel().tolist() == [1.0] * len(true)
    assert schema.rows({"x": false}).numbers.ravel().tolist() == [0.0] * len(false)


def test_single_rows_are_what_they_are_in_a_batch():
    """Rows, digests and features of a row do not depend on the rows beside it, to the last bit."""
    schema = Schema.infer(people())
    rows = schema.rows(people())
    for i in range(len(rows)):
        single = schema.rows(people().iloc[i : i + 1])
        assert same(single, rows.take([i]))
        assert schema.digests(single) == schema.digests(rows)[i : i + 1]
        assert schema.features(single).tobytes() == schema.features(rows)[i].tobytes()


def test_take():
    """Rows are taken by position, in any order and more than once, or where a boolean is true."""
    schema = Schema.infer(people())
    rows = schema.rows(people())
    assert same(rows.take([3, 0, 3]), schema.rows(people().iloc[[3, 0, 3]]))
    assert same(rows.take(people()["member"].to_numpy()), schema.rows(people()[people()["member"]]))
    assert len(rows.take([3, 0, 3])) == 3


def test_digests_tell_texts_apart():
    """No two rows have the same digest because their texts run into each other, or because one is missing."""
    schema = Schema(tuple(Column(name, "text") for name in "ab"))
    rows = schema.rows(
        [["ab", "c"], ["a", "bc"], ["", "abc"], ["abc", ""], [None, "abc"], ["abc", None], ["a\0", "bc"]]
    )
    assert len(set(schema.digests(rows))) == len(rows)


def test_digest_is_of_these_bytes():
    """Digests never change: a ledger of years ago knows queries by the SHA-256 of numbers and texts with lengths."""
    table = people().assign(more="né" * 60)
    schema = Schema.infer(table)
    text, more = REVIEW.encode(), ("né" * 60).encode()
    expected = b"pacpredict row 2\n" + struct.pack("<7d", 39, 0, 1, 0, 70.5, 0, 0)
    expected += struct.pack("<Q", len(text)) + text + struct.pack("<Q", len(more)) + more
    assert schema.digests(schema.rows(table))[0] == hashlib.sha256(expected).digest()


def test_features():
    """Text columns are replaced in place by hashed words; other features are the numbers."""
    table = people().assign(last=[1.5, 2.5, 3.5, 4.5])
    schema = Schema.infer(table)
    rows = schema.rows(table)
    features = schema.features(rows)
    assert features.shape == (4, schema.n_features) == (4, 5 + N_WORD_FEATURES + 1)
    np.testing.assert_array_equal(features[:, :5], rows.numbers[:, :5])
    np.testing.assert_array_equal(features[:, -1], table["last"])
    np.testing.assert_allclose(np.linalg.norm(features[:, 5:-1], axis=1), [1, 1, 0, 0])
    assert schema.feature_categories == (0, 3, 0, 3, 0) + (0,) * (N_WORD_FEATURES + 1)
    assert schema.feature_names[4:7] == ("weight", "note#0", "note#1")
    assert len(schema.feature_names) == schema.n_features


def test_features_of_text_know_nothing_of_the_training_data():
    """The words of a query are hashed the same whatever the schema was inferred from."""
    first, second = one_column([REVIEW, "one"]), one_column([REVIEW * 3, "two", "three"])
    query = {"x": ["some words", REVIEW]}
    np.testing.assert_array_equal(first.features(first.rows(query)), second.features(second.rows(query)))


def test_frame_has_the_names_and_dtypes_of_training():
    """Pipelines that select columns by name or dtype find them."""
    schema = Schema.infer(people())
    frame = schema.frame(schema.rows(people()))
    grades = pd.CategoricalDtype(["low", "high", "other"])
    expected = people().astype({"age": np.float64, "member": "boolean", "grade": grades})
    pd.testing.assert_frame_equal(frame, expected)
    assert schema.frame(schema.rows(people().iloc[2:3])).dtypes.equals(expected.dtypes)


def test_frame_of_booleans():
    """Booleans are nullable, whether or not the training data had missing ones."""
    schema = one_column([True, False])
    assert schema.frame(schema.rows({"x": [True]}))["x"].dtype == "boolean"
    assert schema.frame(schema.rows({"x": [True, None]}))["x"].isna().tolist() == [False, True]


def test_frame_of_other_categories():
    """Unknown categories are "other" among texts, and missing among numbers of a category dtype."""
    columns = {"a": ["x", "y"], "b": pd.Categorical(["x", "y"]), "c": pd.Categorical([1, 2])}
    schema = Schema.infer(pd.DataFrame(columns))
    frame = schema.frame(schema.rows({"a": ["z"], "b": ["z"], "c": [3]}))
    assert frame.iloc[0, :2].tolist() == ["other", "other"]
    assert frame["c"].isna().all()


def test_frame_without_names():
    """A pipeline fitted without names is not given any."""
    schema = Schema.infer(np.eye(3))
    assert schema.frame(schema.rows(np.eye(3))).columns.tolist() == [0, 1, 2]


def test_frames_are_read_back():
    """A frame of rows is the same query as the rows."""
    schema = Schema.infer(people())
    rows = schema.rows(people())
    assert same(schema.rows(schema.frame(rows)), rows)


def test_json_round_trip():
    """A stored schema is the same schema: same digests, floats to the last bit, types of categories kept."""
    table = people().assign(
        level=pd.Categorical([0.1, 1 / 3, 1e-300, 0.1]), flag=pd.Categorical([1, 2, 1, 2])
    )
    schema = Schema.infer(table, {"work": ["state", "private", "none"]}, min_category=2)
    again = Schema.from_json(json.loads(json.dumps(schema.to_json())))
    assert again == schema
    assert [list(map(type, c.categories)) for c in again.columns] == [
        list(map(type, c.categories)) for c in schema.columns
    ]
    assert again.digests(again.rows(table)) == schema.digests(schema.rows(table))


def damaged():
    """Yield a stored schema with one thing wrong at a time, and what the error says of it."""

    def change(**fields):
        return {**Schema.infer(people()).to_json(), **fields}

    def change_column(j, **fields):
        columns = Schema.infer(people()).to_json()["columns"]
        columns[j].update(fields)
        return change(columns=columns)

    good = Schema.infer(people()).to_json()
    yield None, "must have the fields columns"
    yield [], "must have the fields columns"
    yield {key: good[key] for key in ("columns", "min_category")}, "must have the fields columns"
    yield change(more=1), "must have the fields columns"
    yield change(columns=[]), "not empty"
    yield change(columns={}), "must be a list"
    yield change(is_named=1), "'is_named'"
    yield change(is_named=False), "x0, x1"
    yield change(min_category=0), "'min_category'"
    yield change(min_category=True), "'min_category'"
    yield change(unknown="refuse"), "must have the fields columns"
    yield change(columns=good["columns"] * 2), "different names"
    yield change(columns=["age"]), "fields name, kind"
    yield change_column(0, more=1), "fields name, kind"
    yield change_column(0, name=1), "'name' of a stored column must be a str"
    yield change_column(0, name="\ud800"), "not valid Unicode"
    yield change_column(0, kind="time"), "unknown kind 'time'"
    yield change_column(0, has_missing=False), "fields name, kind"
    yield change_column(0, form=1), "'form'"
    yield change_column(0, form="%Y"), "in the unknown form '%Y'"
    yield change_column(1, form="%Y"), "what only dates or numbers have"
    yield change_column(0, categories=["a"]), "'age' of kind number has what only categories have"
    yield change_column(0, is_dtype=True), "'age' of kind number has what only categories have"
    yield change_column(1, categories=["a", "a"]), "categories of column 'work'"
    yield change_column(1, categories=[1, True]), "categories of column 'work'"
    yield change_column(1, categories=[None]), "categories of column 'work'"
    yield change_column(1, categories=[[]]), "categories of column 'work'"
    yield change_column(1, categories=[float("nan")]), "categories of column 'work'"
    yield change_column(1, categories=[2**53]), "categories of column 'work'"
    yield change_column(1, is_declared="yes"), "'is_declared'"


@pytest.mark.parametrize(
    ("stored", "words"), list(damaged()), ids=lambda value: value if type(value) is str else ""
)
def test_damaged_schema(stored, words):
    """A stored schema that was changed is refused by name, never half read."""
    with pytest.raises(InvalidModel, match=words):
        Schema.from_json(stored)


def test_rows_do_not_print_values():
    """A log line with rows in it says how many, not what they hold."""
    assert repr(Schema.infer(people()).rows(people())) == "Rows(4 rows, 6 columns)"


def test_any_value_may_be_missing():
    """A query may lack any value, whether or not the training data lacked one."""
    schema = Schema.infer(people())
    rows = schema.rows([dict.fromkeys(people())])
    assert np.isnan(rows.numbers).all()
