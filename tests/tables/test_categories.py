"""A category is listed if enough units have it; all other values are one, and one unit decides nothing else."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pacpredict.exceptions import InvalidTable
from pacpredict.tables.cells import settle_cells
from pacpredict.tables.options import TableOptions
from pacpredict.tables.schema import Schema
from pacpredict.tables.survey import survey
from pacpredict.training.pool import Pool


def categories(table, **options):
    return [column.categories for column in Schema.infer(table, **options).columns]


def listed_by_hand(table, persons, least):
    """Count with sets, as the definition says it; without persons, equal rows are one, also once values are pooled."""
    pooled = [list(row) for row in table]
    while True:
        units = persons if persons is not None else [tuple(row) for row in pooled]
        rare = {
            (j, value)
            for j in range(len(pooled[0]))
            for value in {row[j] for row in pooled} - {None, "other"}
            if len({unit for unit, row in zip(units, pooled, strict=True) if row[j] == value}) < least
        }
        if not rare:
            return [sorted({row[j] for row in pooled} - {None, "other"}) for j in range(len(pooled[0]))]
        pooled = [["other" if (j, value) in rare else value for j, value in enumerate(row)] for row in pooled]


tables = st.integers(1, 3).flatmap(
    lambda width: st.lists(
        st.tuples(*[st.sampled_from([None, "other", *"abcd"])] * width), min_size=4, max_size=40
    ).filter(lambda rows: all(any(row[j] is not None for row in rows) for j in range(width)))
)


@settings(deadline=None, max_examples=300)
@given(table=tables, least=st.integers(1, 4), named=st.booleans(), data=st.data())
def test_categories_are_those_that_enough_units_have(table, least, named, data):
    """Listed are exactly the categories that so many persons have or, where none are named, so many different rows."""
    ids = data.draw(st.lists(st.integers(0, 8), min_size=len(table), max_size=len(table))) if named else None
    types = {f"x{j}": "category" for j in range(len(table[0]))}
    persons = None if ids is None else np.unique(ids, return_inverse=True)[1]
    found = categories([list(row) for row in table], types=types, min_category=least, persons=persons)
    assert [list(each) for each in found] == listed_by_hand(table, ids, least)


@settings(deadline=None, max_examples=200)
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["category", None]))
def test_what_one_unit_alone_has_changes_nothing(seed, kind):
    """With and without a person whose values nobody else has, schema and canonical queries are the same."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"a": rng.choice(list("uvw"), 60), "b": rng.normal(size=60), "c": rng.choice(list("xy"), 60)}
    )
    hers = pd.DataFrame({"a": ["z", None], "b": [np.nan, 1.0], "c": ["long " * 40, "q"]})
    types = None if kind is None else {"a": kind, "c": kind}
    persons = np.repeat(np.arange(31), 2)
    without = Schema.infer(table, types, min_category=10, persons=persons[:60])
    whole = Schema.infer(pd.concat([table, hers]), types, min_category=10, persons=persons)
    assert whole == without
    asked = pd.concat([table[:5], hers, pd.DataFrame({"a": ["?"], "b": [0.0], "c": [""]})])
    assert whole.digests(whole.rows(asked)) == without.digests(without.rows(asked))


@pytest.mark.parametrize("dtype", [str, "category", object])
def test_a_dtype_is_no_declaration(dtype):
    """astype("category") takes its categories from the records: rare ones are not listed either, nor unused ones."""
    values = pd.Series(["a"] * 10 + ["b"] * 10 + ["c"] * 9).astype(dtype)
    if dtype == "category":
        values = values.cat.set_categories(["d", "c", "b", "a"])
    expected = ("b", "a") if dtype == "category" else ("a", "b")
    assert categories(pd.DataFrame({"x": values}), min_category=10, persons=np.arange(29)) == [expected]


def test_what_is_declared_is_listed():
    """A declared list is taken as it is, whoever has what; other values are "other", also in the training data."""
    table = pd.DataFrame({"ward": [1, 2, 2, 7]})
    for types in ({"ward": "category:3,2,1"}, {"ward": ["3", "2", "1"]}, {"ward": [3, 2, 1, "other"]}):
        schema = Schema.infer(table, types, min_category=10)
        assert list(map(str, schema.columns[0].categories)) == ["3", "2", "1"]
        assert schema.columns[0].is_declared
        assert schema.rows({"ward": [1, "2", 3.0, 7, "other", None]}).numbers.ravel().tolist()[:5] == [
            2,
            1,
            0,
            3,
            3,
        ]


def test_a_pool_lists_ten_by_default():
    """Ten units make a category, persons where they are named and rows where each is of another one."""
    values = ["a"] * 20 + ["b"] * 10 + ["c"] * 9
    labels, numbers = ["u", "v", "v"] * 13, np.arange(39.0)
    table = pd.DataFrame({"x": values, "n": numbers})
    assert Pool.of(table, labels).schema.columns[0].categories == ("a", "b")
    assert Pool.of(table, labels, person_per_row=True).schema.columns[0].categories == ("a", "b")
    persons = [i // 2 for i in range(39)]
    assert Pool.of(table, labels, persons=persons, types={"x": "category"}).schema.columns[0].categories == (
        "a",
    )
    assert Pool.of(table, labels, min_category=9).schema.columns[0].categories == ("a", "b", "c")


def test_records_that_differ_in_rare_values_are_two():
    """Records with different rare categories are different units, though models see them alike."""
    table = pd.DataFrame({"x": ["a"] * 30 + ["b", "c"], "n": [*range(30), 5.5, 5.5]})
    pool = Pool.of(table, ["u", "v"] * 16)
    assert pool.units.count == 32
    assert pool.contents[-1] != pool.contents[-2]
    assert np.array_equal(pool.rows.numbers[-1], pool.rows.numbers[-2])


def test_texts_that_hardly_anybody_shares_are_free_text():
    """Where more than half of the units have a value that is not listed, a column is free text; one more decides it."""
    shared = ["a"] * 20
    for alone, kind in ((20, "category"), (21, "text")):
        table = pd.DataFrame({"x": shared + [f"v{i}" for i in range(alone)]})
        (column,) = Schema.infer(table, min_category=10, persons=np.arange(len(table))).columns
        assert column.kind == kind
    assert categories(table, types={"x": "category"}, min_category=10, persons=np.arange(41)) == [("a",)]


def test_too_many_common_categories():
    """More than 254 listed values are refused by name if they are declared to be categories, and text otherwise."""
    table = pd.DataFrame({"x": [f"v{i}" for i in range(255)] * 3})
    persons = np.arange(len(table))
    assert Schema.infer(table, min_category=3, persons=persons).columns[0].kind == "text"
    with pytest.raises(InvalidTable, match=r"'x' has 255 different values .*a category can have 254"):
        Schema.infer(table, {"x": "category"}, min_category=3, persons=persons)
    assert len(Schema.infer(table[:-1], min_category=3, persons=persons[:-1]).columns[0].categories) == 254


def test_persons_must_fit():
    """A person for each record, or none."""
    with pytest.raises(InvalidTable, match="2 records and 3 labels or persons"):
        Schema.infer([[1], [2]], persons=np.arange(3))


def test_what_a_dry_run_says():
    """It counts and names what becomes "other", says what can be done, and warns of classes that few units have."""
    table = pd.DataFrame(
        {
            "x": ["a"] * 40 + ["b"] * 3 + ["c"] * 2,
            "z": ["p"] * 44 + ["q"],
            "n": np.arange(45.0),
            "who": [*range(43), 43, 43],
            "y": ["u", "v"] * 21 + ["u", "v", "w"],
        }
    )
    found = survey(table, TableOptions("y"))
    reports = {one.name: one for one in found.columns}
    assert (reports["x"].pooled, reports["x"].action) == (("b", "c"), "1 categories, 2 pooled")
    (pooled,) = [hint for hint in found.hints if "'other'" in hint]
    assert pooled == (
        "categories that fewer than 10 records have are pooled into 'other': 2 in 'x' ('b', 'c'), 1 in 'z' ('q'); say "
        "--person-per-row if each row is of another person, or declare a list that is public (--types "
        "COLUMN=category:A,B)"
    )
    assert any(
        "classes of fewer than 10 records ('w'): clients are told the classes" in one
        for one in found.warnings
    )
    named = survey(table, TableOptions("y", person="who", types={"x": ["a", "b", "c"]}))
    (pooled,) = named.hints
    assert "fewer than 10 persons have are pooled into 'other': 1 in 'z' ('q'); declare a list" in pooled
    assert not survey(table, TableOptions("y", min_category=1)).hints
    assert named.to_json()["columns"][1]["pooled"] == ("q",)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1.5", "2", "x"] + ["3"] * 40, "number"),
        (["<0.5", "> 9"] + ["3"] * 40, "number"),
        (["x"] * 9 + ["3"] * 400, "number"),
        (["x"] * 10 + ["3"] * 400, "category"),  # ten records do not have the same mistake
        (["x", "y", "z"] + ["3"] * 40, "category"),  # more than one in twenty is no mistake
        (["<18", ">18"] * 20, "category"),
        (["True", "false", "maybe"] + ["TRUE"] * 40, "boolean"),
        (["a", "b"] * 20, "category"),
    ],
    ids=str,
)
def test_cells_of_a_file(cells, kind, tmp_path):
    """A column of a CSV file is of numbers or booleans if all but few rare cells are; these are missing."""
    table = pd.DataFrame({"x": cells, "y": ["u", "v"] * (len(cells) // 2) + ["u"] * (len(cells) % 2)})
    options = TableOptions("y", person_per_row=True)
    settled, readings = settle_cells(table, options)
    pool = Pool.of_frame(settled, options)
    assert pool.schema.columns[0].kind == kind
    assert bool(readings) is (kind != "category")
    mistakes = [cell for cell in cells if cell in {"x", "maybe"}]
    if readings:
        assert np.isnan(pool.rows.numbers).sum() == len(mistakes)
        said = " ".join(survey(settled, options, readings).warnings)
        assert (
            (f"'{mistakes[0]}' in few records, which is taken as missing" in said) if mistakes else not said
        )


def test_cells_that_are_declared_stay():
    """What the owner has declared, or what is not learned from, is not read as anything else."""
    cells = ["1", "x"] + ["3"] * 40
    table = pd.DataFrame({"x": cells, "y": cells, "id": cells, "gone": cells})
    options = TableOptions("y", types={"x": "category"}, person="id", drop=("gone",))
    settled, readings = settle_cells(table, options)
    assert not readings
    assert settled.equals(table)


def test_one_person_makes_no_word_common():
    """Twelve rows of one person with the same mistake are one unit's, which does not make it a category."""
    cells = ["x"] * 12 + ["3"] * 400
    table = pd.DataFrame({"x": cells, "y": ["u", "v"] * 206, "who": [0] * 12 + list(range(1, 401))})
    _, readings = settle_cells(table, TableOptions("y", person="who"))
    assert readings["x"].mistakes == ["x"]
    _, readings = settle_cells(table, TableOptions("y", person_per_row=True))
    assert not readings


def test_values_that_are_not_listed_are_different_queries():
    """Two unlisted values have different digests, one value has one digest however it is spelled, batched or joined."""
    schema = Schema.infer({"ward": ["a"] * 12 + ["b"] * 12, "age": list(range(24))}, min_category=10)

    def digests(*wards):
        return schema.digests(schema.rows({"ward": list(wards), "age": [1.0] * len(wards)}))

    one, two, other, listed, none = digests("zzz", "lepra", "other", "a", None)
    assert len({one, two, other, listed, none}) == 5
    assert digests("lepra") == [two], "whatever it came with"
    assert digests("a", None) == [listed, none]
    assert digests(7)[0] == digests("7")[0] == digests(7.0)[0] == digests("7.0")[0] != digests("8")[0]
    rows = schema.rows({"ward": ["zzz", "a", "lepra"], "age": [1.0] * 3})
    assert schema.digests(rows.take([2, 1])) == [two, listed]
    assert schema.digests(rows.join([rows.take([1]), rows.take([0, 2])])) == [listed, one, two]
    assert np.array_equal(schema.features(rows)[0], schema.features(rows)[2]), "models see no difference"
