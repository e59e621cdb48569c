"""Labels of any hashable type have codes, and come back as what they were."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pacpredict.core.validate import MOST_CLASSES
from pacpredict.exceptions import InvalidModel, InvalidTable
from pacpredict.tables.classes import Classes

DAY = date(2024, 2, 29)
NOON = datetime(2024, 2, 29, 12)  # noqa: DTZ001  # labels may well have no time zone


@pytest.mark.parametrize(
    ("labels", "values", "dtype"),
    [
        (["b", "a", "b"], ("a", "b"), "U"),
        ([2, 1, 2], (1, 2), "i"),
        (np.array([2, 1, 2], dtype=np.int8), (1, 2), "i"),
        (np.array([2, 1], dtype=np.uint64), (1, 2), "i"),
        ([2**63, 1], (1, 2**63), "O"),
        ([2**70, 1], (1, 2**70), "O"),
        ([2**63, -1], (-1, 2**63), "O"),
        ([0.5, -0.5], (-0.5, 0.5), "f"),
        ([True, False], (False, True), "b"),
        (np.array([True, False]), (False, True), "b"),
        (np.array(["b", "a"]), ("a", "b"), "U"),
        (np.array(["b", "a"], dtype=object), ("a", "b"), "U"),
        ([np.str_("b"), np.int64(1)], ("b", 1), "O"),
        (["a\0", "a"], ("a", "a\0"), "O"),
        ([(1, "x"), (0, "y")], ((0, "y"), (1, "x")), "O"),
        ([(1, 2), "a"], ((1, 2), "a"), "O"),
        (["a", 1, 2.5], ("a", 1, 2.5), "O"),
        ([b"b", b"a"], (b"a", b"b"), "O"),
        ([frozenset({1}), frozenset({2})], (frozenset({1}), frozenset({2})), "O"),
        ([NOON, datetime(2020, 1, 1)], (datetime(2020, 1, 1), NOON), "O"),  # noqa: DTZ001
        (pd.Series(["b", "a"]), ("a", "b"), "U"),
        (pd.Series(["b", "a"], dtype="category"), ("a", "b"), "U"),
        (pd.Series([2, 1], dtype="Int64"), (1, 2), "i"),
        (pd.Series([True, False], dtype="boolean"), (False, True), "b"),
        (pd.Series([2, 1], dtype="int64[pyarrow]"), (1, 2), "i"),
        (pd.Series([pd.Timestamp(NOON), pd.Timestamp(DAY)]), (datetime(2024, 2, 29), NOON), "O"),  # noqa: DTZ001
        (np.array(["2024-02-29T12", "2024-02-29"], dtype="M8[ns]"), (datetime(2024, 2, 29), NOON), "O"),  # noqa: DTZ001
    ],
    ids=str,
)
def test_labels_and_codes(labels, values, dtype):
    """Classes are sorted, or in order of appearance, and codes lead back to the labels in their own type."""
    classes = Classes.infer(labels)
    assert classes.values == values
    assert list(map(type, classes.values)) == list(map(type, values))
    assert len(classes) == len(values)
    codes = classes.codes(labels)
    assert codes.dtype == np.int64
    again = classes.labels(codes)
    assert again.dtype.kind == dtype
    assert again.shape == (len(labels),)
    assert [values[code] for code in codes] == again.tolist()
    assert (classes.codes(again) == codes).all()


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["a", None, "b", None], "2 missing values"),
        ([1.0, np.nan, 2.0], "1 missing"),
        (np.array([1.0, np.nan, np.nan]), "2 missing"),
        (pd.Series([1, None, 2], dtype="Int64"), "1 missing"),
        (pd.Series(["a", None, "b"]), "1 missing"),
        (pd.Series([True, None], dtype="boolean"), "1 missing"),
        (pd.Series(pd.to_datetime(["2024-01-01", None])), "1 missing"),
        (np.ma.MaskedArray([1, 2], mask=[True, False]), "1 missing"),
        ([1.0, np.inf], "infinite"),
        (["a", "b\ud800"], r"'b\\ud800' is not valid Unicode"),
        ([1, 1, 1], "1 class;"),
        ([True, 1, 1.0], "1 class;"),
        ([], "0 class;"),
        (range(2), "one-dimensional, .*; got range"),
        (np.array([[1, 2]]), r"got an array of shape \(1, 2\)"),
        (pd.DataFrame({"a": [1, 2]}), r"got an array of shape \(2, 1\)"),
        ("ab", "got str"),
        (None, "got NoneType"),
        ([["a"], ["b"]], "hashable"),
        (np.arange(MOST_CLASSES + 1), "32,768 classes, .* at most 32,767"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refused_targets(labels, words):
    """A target that cannot be learned is refused before any training."""
    with pytest.raises(InvalidTable, match=words):
        Classes.infer(labels)


def test_as_many_classes_as_votes_can_name():
    """The largest number of classes is accepted."""
    assert len(Classes.infer(np.arange(MOST_CLASSES))) == MOST_CLASSES


def test_unknown_labels():
    """A label that is no class has no code, and is named."""
    classes = Classes.infer(["a", "b"])
    for labels, words in (
        (["a", "c"], "'c' is none of the classes 'a', 'b'"),
        ([["a"]], "type list"),
        ([None], "None"),
    ):
        with pytest.raises(InvalidTable, match=words):
            classes.codes(labels)


scalars = (
    st.text(max_size=5)
    | st.integers()
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.binary()
    | st.dates()
    | st.datetimes()
    | st.datetimes(timezones=st.just(UTC))
)
labels = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)


@given(values=st.lists(labels, min_size=2, max_size=6).filter(lambda values: len(set(values)) > 1))
def test_storage(values):
    """Classes are the same after JSON: values, types and order."""
    classes = Classes.infer(values)
    again = Classes.from_json(json.loads(json.dumps(classes.to_json(), allow_nan=False)))
    assert again == classes
    # Which of two equal times on a clock that was set back is meant, only repr tells.
    assert repr(again.values) == repr(classes.values).replace(", fold=1", "")
    assert again.labels([0, 1]).dtype == classes.labels([0, 1]).dtype


def test_timestamps_are_stored_as_datetimes():
    """A pandas timestamp is the datetime that it equals, if it has no nanoseconds."""
    stamps = [pd.Timestamp(NOON), pd.Timestamp(DAY)]
    assert Classes.from_json(Classes.infer(stamps).to_json()) == Classes.infer(stamps)
    with pytest.raises(InvalidModel, match="type Timestamp cannot be stored"):
        Classes.infer([pd.Timestamp(1), pd.Timestamp(2)]).to_json()


@pytest.mark.parametrize("value", [frozenset({1}), Decimal(1), 1j, (None,), (float("nan"),), (float("inf"),)])
def test_types_that_cannot_be_stored(value):
    """What JSON would not bring back is refused when it is stored, not when it is loaded."""
    with pytest.raises(InvalidModel, match="cannot be stored; classes can be texts, integers"):
        Classes.infer([value, "a"]).to_json()


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (None, "must be a list"),
        ({"a": 1}, "must be a list"),
        (["a"], "must be a list of 2"),
        (list(range(MOST_CLASSES + 1)), "must be a list of 2"),
        (["a", "a"], "differ"),
        ([1, True], "differ"),
        (["a", None], "not one that we can read: None"),
        (["a", float("nan")], "not one that we can read: nan"),
        (["a", ["b"]], "not one that we can read"),
        (["a", {}], "not one that we can read"),
        (["a", {"date": "2024-02-29", "x": 1}], "not one that we can read"),
        (["a", {"date": "2024-02-30"}], "not one that we can read"),
        (["a", {"datetime": 5}], "not one that we can read"),
        (["a", {"bytes": "xyz"}], "not one that we can read"),
        (["a", {"tuple": "xyz"}], "not one that we can read"),
        (["a", {"tuple": [None]}], "not one that we can read"),
        (["a", {"set": [1]}], "not one that we can read"),
    ],
)
def test_damaged_classes(stored, words):
    """Stored classes that were changed are refused."""
    with pytest.raises(InvalidModel, match=words):
        Classes.from_json(stored)
