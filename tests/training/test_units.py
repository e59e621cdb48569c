"""Which records stand and fall together."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import quick_fit, recipe
from sklearn.neighbors import KNeighborsClassifier

from pacpredict.exceptions import InvalidInput, InvalidSubsets, InvalidTable
from pacpredict.learners.registry import learner_for
from pacpredict.tables.options import TableOptions
from pacpredict.training.pool import Pool
from pacpredict.training.units import Units

NAMES = ["ann", "bob", "ann", "cy", "bob", "ann"]


@pytest.mark.parametrize(
    "form", [list, np.array, pd.Series, lambda names: pd.Series(names, dtype="category")]
)
def test_persons_are_numbered_as_they_come(form):
    """Records with the same name are one unit, whatever form the names come in."""
    units = Units.persons(form(NAMES), 6)
    assert units.of_record.tolist() == [0, 1, 0, 2, 1, 0]
    assert (units.count, units.kind) == (3, "person")
    assert units.sizes().tolist() == [3, 2, 1]
    assert repr(units) == "Units(3 persons, 6 records)"


def test_names_can_be_anything_that_is_equal_to_itself():
    """Numbers, tuples and dates name persons; 1, 1.0 and True are one, as everywhere in Python."""
    assert Units.persons([1, 1.0, True, 2, (1, 2), (1, 2)], 6).of_record.tolist() == [0, 0, 0, 1, 2, 2]


def test_one_person_in_several_spellings():
    """Accents as one character or two, blanks around a name and numbers as texts do not make two persons of one."""
    accents = ["José", "Jose\u0301", " José", "José\u00a0", "Jose"]
    assert Units.persons(accents, 5).of_record.tolist() == [0, 0, 0, 0, 1]
    numbers = [12, "12", " 12", 12.0, np.int64(12), Decimal(12), "012", 12.5, Decimal("12.5"), 1e300, np.inf]
    assert Units.persons(numbers, 11).of_record.tolist() == [0, 0, 0, 0, 0, 0, 1, 2, 2, 3, 4]
    fractions = [12, "12.0", 12.5, "12.5", np.float64(-3), "-3.0", "A.0", "A", "1.10", "1.1"]
    assert Units.persons(fractions, 10).of_record.tolist() == [0, 0, 1, 1, 2, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (NAMES[:5], "6 records and 5 persons: name one for each record"),
        ([*NAMES[:5], None], "1 records name no person"),
        ([*NAMES[:4], "", " "], r"2 records name no person.*: row 4, 5 \(from 0\)$"),
        (np.array([1, 2, np.nan, np.nan, 3, 4]), r"2 records name no person.*: row 2, 3 \(from 0\)$"),
        (pd.Series([1, 2, 3, 4, 5, pd.NA], dtype="Int64"), "1 records name no person"),
        ([["ann"]] * 6, "named by texts or numbers"),
        (np.zeros((6, 2)), "must be a list or a one-dimensional array"),
        ("ann", "must be a list or a one-dimensional array"),
    ],
)
def test_names_that_leave_doubt_are_refused(names, words):
    """A record of nobody knows whom could belong to somebody's, so it is not given a unit of its own."""
    with pytest.raises(InvalidTable, match=words):
        Units.persons(names, 6)


@given(names=st.lists(st.integers(0, 5), min_size=1, max_size=30), data=st.data())
def test_a_unit_is_chosen_whole(names, data):
    """The records of some units are those, all of those, and in order."""
    units = Units.persons(names, len(names))
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=units.count, max_size=units.count)))
    records = units.records(chosen)
    assert records.tolist() == [i for i, unit in enumerate(units.of_record) if chosen[unit]]
    with pytest.raises(InvalidSubsets, match="a choice among"):
        units.records(np.append(chosen, True))


def test_numbers_with_gaps_are_no_units():
    """Units that have no record would be in subsets without a trace."""
    for of_record in ([], [1, 2], [0, 2], [-1, 0]):
        with pytest.raises(InvalidSubsets):
            Units(np.array(of_record, dtype=np.int64), "person")
    with pytest.raises(InvalidSubsets, match="person, record, not 'animal'"):
        Units(np.arange(3), "animal")


def table_of(n=40, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3)), np.arange(n) % 2


def test_identical_records_are_one_unit():
    """Equal rows are one unit, also if their labels differ: the content is what an attacker asks about."""
    table, labels = table_of()
    table[7] = table[3]
    table[[20, 30]] = table[10]
    pool = Pool.of(table, labels)
    assert (pool.units.count, pool.units.kind) == (37, "record")
    assert len(set(pool.units.of_record[[10, 20, 30]])) == len(set(pool.units.of_record[[3, 7]])) == 1
    labels[7] = 1 - labels[7]
    assert np.array_equal(Pool.of(table, labels).units.of_record, pool.units.of_record)
    assert np.array_equal(pool.contents, pool.units.of_record)


def test_what_is_identical_is_what_models_see():
    """39 and 39.0, and a missing value however it is written, are the same; the type of a column does not matter."""
    table = pd.DataFrame({"age": [39, 40] * 10, "x": np.arange(20.0), "job": ["a", None] * 10})
    table.loc[10, "x"] = table.loc[0, "x"]
    other = table.astype({"age": float}).astype(object).where(table.notna(), np.nan)
    other["x"] = other["x"].astype(float)
    assert Pool.of(table, np.arange(20) % 2).units.count == 19
    assert Pool.of(other.convert_dtypes(), np.arange(20) % 2).units.count == 19


def test_persons_are_not_joined_by_what_their_records_hold():
    """With persons named, two of them may have the same record; it is then counted as one content of both."""
    table, labels = table_of()
    table[5] = table[6]
    persons = np.arange(40) // 2
    pool = Pool.of(table, labels, persons=persons)
    assert pool.units.count == 20
    assert np.array_equal(pool.units.of_record, persons)
    assert len(set(pool.contents)) == 39
    each = Pool.of(table, labels, person_per_row=True)
    assert (each.units.count, each.units.kind) == (40, "person")


def test_too_few_units_are_refused():
    """A table of three contents, or of nine persons, has no subsets to draw, and is told what to do."""
    table, labels = np.arange(60.0)[:, None] % 3, np.arange(60) % 2
    with pytest.raises(InvalidTable, match=r"too few different records .*\(3 in 60 rows.*--person-per-row"):
        Pool.of(table, labels)
    assert Pool.of(table, labels, person_per_row=True).units.count == 60
    with pytest.raises(InvalidTable, match=r"too few different persons .*\(9 in 60.*more persons"):
        Pool.of(table, labels, persons=np.arange(60) % 9)
    with pytest.raises(InvalidTable, match="not both"):
        Pool.of(table, labels, persons=np.arange(60), person_per_row=True)


def test_subsets_without_anybody_are_refused():
    """Among 4,000 halves of ten persons some are empty: said before anything is trained."""
    with pytest.raises(InvalidSubsets, match="one of the 4000 subsets has none of the 10 persons"):
        recipe(n_models=4000).subsets(Units.persons(list(range(10)), 10))


@pytest.mark.parametrize("construction", ["balanced", "half-partitions"])
def test_models_are_trained_on_whole_persons(construction):
    """Each model has all records of a person or none, and each person is in exactly half of the subsets."""
    persons, (table, labels) = np.random.default_rng(1).integers(0, 30, 120), table_of(120)
    how = recipe(n_models=8, construction=construction)
    made = quick_fit(
        Pool.of(table, labels, persons=persons), learner_for(KNeighborsClassifier(1)), how
    )  # whose models keep what they were trained on
    trained = np.array([np.isin(table[:, 0], one.model[-1]._fit_X[:, 0]) for one in made.models])
    for i in range(8):
        assert np.array_equal(np.flatnonzero(trained[i]), made.trained_on(i))
    for person in set(persons):
        own = trained[:, persons == person]
        assert (own == own[:, :1]).all()
        assert own[:, 0].sum() == 4


def test_columns_of_a_frame():
    """The person's column is no feature unless that is asked for."""
    frame = pd.DataFrame(
        {"who": np.arange(40) // 2, "x": np.arange(40.0) ** 1.5, "y": np.where(np.arange(40) % 2, "a", "b")}
    )
    named = Pool.of_frame(frame, TableOptions("y", person="who"))
    names = [column.name for column in named.schema.columns]
    assert names == ["x"]
    both = Pool.of_frame(frame, TableOptions("y", person="who", person_is_feature=True))
    assert [column.name for column in both.schema.columns] == ["who", "x"]
    assert both.units.count == 20
    assert Pool.of_frame(frame, TableOptions("y", person_per_row=True)).units.count == 40
    with pytest.raises(InvalidTable, match="no column 'whom' of persons"):
        Pool.of_frame(frame, TableOptions("y", person="whom"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"person": "y"}, "column 'y' is said to be two things at once"),
        ({"person": "who", "person_per_row": True}, "each row is of another one: not both"),
        ({"person_is_feature": True}, "no column of persons is named"),
        ({"person": "who", "types": {"who": "number"}}, "not learned from, so that it needs no type"),
    ],
)
def test_what_is_said_about_persons_must_fit_together(options, words):
    """Contradictions are refused when they are said."""
    with pytest.raises(InvalidInput, match=words):
        TableOptions("y", **options)
    assert TableOptions("y", person="who", person_is_feature=True, types={"who": "number"}).person == "who"


def test_a_part_of_a_pool_keeps_its_units():
    """Records of one person stay together in a part; those that have none there are not counted."""
    persons = np.random.default_rng(2).integers(0, 15, 60)
    pool = Pool.of(*table_of(60), persons=persons)
    chosen = persons < 12
    part = pool.part(chosen)
    assert (len(part), part.units.count) == (chosen.sum(), len(set(persons[chosen])))
    assert len(set(zip(persons[chosen], part.units.of_record, strict=True))) == part.units.count
    assert np.array_equal(part.rows.numbers, pool.rows.numbers[chosen])
