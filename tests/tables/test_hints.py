"""What is pointed out about columns that name somebody, and records that are nearly the same."""

import shlex

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from pacpredict.evaluation.evaluate import evaluate
from pacpredict.exceptions import PrivacyWarning
from pacpredict.tables.identifiers import identifier_hint
from pacpredict.tables.options import TableOptions
from pacpredict.tables.resemblance import near_duplicates, resemblance_hint
from pacpredict.tables.schema import Schema
from pacpredict.tables.survey import survey
from pacpredict.training.pool import Pool

PATIENTS = np.random.default_rng(0).integers(0, 500, 1000)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("patient_id", PATIENTS),
        ("PatientID", PATIENTS.astype(float)),
        ("patient id", [None, *PATIENTS.tolist()]),
        ("email", [f"{i}@example.org" for i in PATIENTS]),
        ("who", [f"P{i:04d}" for i in PATIENTS]),
        ("who", [f" {i:x}-9c " for i in PATIENTS + 4096]),
        ("who", [f"m.{i}@example.org" for i in PATIENTS]),
        ("subject", [f"01-{i:04d}" for i in PATIENTS]),
        ("who", [f"01-{i:04d}" for i in PATIENTS]),
        ("person", PATIENTS),
        ("customer_no", 10_000 + 7 * PATIENTS),
        ("AccountNumber", PATIENTS),
        ("Kundennummer", PATIENTS),
        ("KundenNr", PATIENTS),
        ("row", np.arange(1000)),
        ("row", np.arange(1000.0) + 7),
    ],
)
def test_identifiers_are_pointed_out(name, values):
    """A telling name, values like P0012 or whole numbers that never repeat: the hint says what to do."""
    hint = identifier_hint(name, values)
    assert hint is not None
    assert f"'{name}' looks like an identifier" in hint
    assert f"--person {shlex.quote(name)}" in hint


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("store_id", np.arange(1000) % 12),  # 12 stores are a category
        ("valid", np.arange(1000) % 2 == 0),
        ("age", 17 + np.arange(1000) % 70),
        ("weight", np.random.default_rng(1).normal(size=1000)),
        ("income", [float(i) + 0.5 for i in range(1000)]),
        ("lab", [f"<{i / 10}" for i in range(1000)]),
        ("born", [f"{1900 + i % 100}-{1 + i % 12:02d}-11" for i in range(1000)]),
        ("seen", [f"2024-05-11T{i % 24:02d}:00Z" for i in range(1000)]),
        ("note", [f"came {i} times" for i in range(1000)]),
        ("amount", np.random.default_rng(2).permutation(1_000_000)[:1000]),  # which never repeats
        ("written_off", [None] * 880 + np.random.default_rng(2).permutation(50_000)[:120].tolist()),
        ("patient_age", 17 + np.arange(1000) % 70),
        ("account_balance", np.random.default_rng(2).integers(0, 10**6, 1000)),
        ("number_of_visits", np.arange(1000) % 60),
        ("account", ["savings", "current"] * 500),
        ("blood_pressure", [f"{90 + i % 60}/{60 + i % 35}" for i in range(1000)]),
        ("age_group", [f"{10 * (i % 9)}-{10 * (i % 9) + 9}" for i in range(400)]),
        ("few", np.arange(50)),
        ("nothing", [None, None]),
        ("none", []),
        ("nested_id", [[1]] * 100),
    ],
)
def test_quantities_categories_dates_and_sentences_are_not(name, values):
    """Ordinary columns are left alone."""
    assert identifier_hint(name, values) is None


def facts(table):
    return {
        one.name: [warning for warning in one.warnings if "may tell persons apart" in warning]
        for one in survey(table.assign(y=["a", "b"] * (len(table) // 2)), TableOptions("y")).columns
        if any("may tell persons apart" in warning for warning in one.warnings)
    }


def cohort(n_persons=300, n=900):
    """Return visits of persons, with facts about them, what was measured, and what follows from it."""
    rng = np.random.default_rng(3)
    who = rng.integers(0, n_persons, n)
    table = pd.DataFrame({"w": 1000 + 3 * who, "age": rng.integers(18, 95, n)})
    table["sex"], table["born"] = (
        rng.choice(["f", "m"], n_persons)[who],
        rng.integers(1930, 2000, n_persons)[who],
    )
    table["group"], table["old"] = table["age"] // 10, table["age"] > 65
    table["lab"] = rng.normal(size=n).round(2)
    return table


def test_a_column_within_which_others_never_vary_may_name_persons():
    """Whole numbers by which sex and birth never vary are pointed out, whatever their name; others are not."""
    table = cohort()
    found = facts(table)
    assert found.keys() == {"w"}
    n = table["w"].nunique()
    assert f"({n} different values in 900 records, and 'sex', 'born' never vary within one)" in found["w"][0]
    assert "--person w," in found["w"][0]
    hints = Pool.of(table, ["a", "b"] * 450).hints()
    assert [hint for hint in hints if hint.startswith("column 'w' may tell persons apart")]
    assert not Pool.of(table.drop(columns="w"), ["a", "b"] * 450, persons=table["w"]).hints()


@pytest.mark.parametrize(
    "change",
    [
        {
            "sex": lambda t: np.where(t.index == 7, "x", t["sex"])
        },  # one record is not as the others: one fact is left
        {"sex": "f"},
        {"w": lambda t: t["w"] / 7},
        {"w": lambda t: t["w"] % 10},
    ],
    ids=["varies", "constant", "fractions", "few"],
)
def test_less_than_that_is_no_sign(change):
    """One fact, a constant, quantities with fractions and few values name nobody."""
    table = cohort()
    assert "w" not in facts(table.assign(**change))


def test_what_follows_from_a_quantity_is_no_fact_about_somebody():
    """An age has one group and one answer to whether it is old, and a price its tax: neither names persons."""
    table = cohort().drop(columns=["w", "sex", "born"])
    assert facts(table.assign(price=table["age"] * 100, tax=table["age"] * 19)) == {}


def resemblance(table):
    schema = Schema.infer(table)
    return near_duplicates(schema, schema.rows(table))


def visits(n=300):
    rng = np.random.default_rng(0)
    facts = {"age": rng.integers(20, 90, n), "note": [f"case number {i} of {n} in words" for i in range(n)]}
    facts |= {name: rng.normal(size=n) for name in "abc"}
    return pd.DataFrame(facts)


def test_records_that_differ_in_one_column_are_found():
    """Forty records that come again with another value in one column are counted, twice each, and the column named."""
    table = visits()
    again = table[:40].assign(b=0.5)
    assert resemblance(pd.concat([table, again])) == ("b", 80)
    again = table[:40].assign(note="another one")
    assert resemblance(pd.concat([table, again])) == ("note", 80)
    again.loc[0, "age"] += 1  # one that differs in two
    assert resemblance(pd.concat([table, again])) == ("note", 78)
    assert resemblance(pd.concat([table, table[:40]])) is None  # identical ones are one unit already
    assert resemblance(table) is None
    assert resemblance(pd.concat([table, table[:4].assign(b=0.5)])) is None


def test_the_hint_says_what_to_do():
    """It names the column, counts the records and says how to name persons."""
    table = pd.concat([visits(), visits()[:40].assign(b=0.5)])
    schema = Schema.infer(table)
    hint = resemblance_hint(schema, schema.rows(table))
    assert hint.startswith(
        "80 records differ from another one in 'b' alone; if these are records of one person"
    )
    assert "--person COLUMN" in hint


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_digits])
def test_well_known_tables_are_left_alone(load):
    """Iris has records that agree in three of four columns, as many as chance makes; nobody is warned."""
    table = load(as_frame=True).data
    assert resemblance(table) is None
    assert not any(identifier_hint(name, table[name].to_numpy()) for name in table)


def test_tables_of_few_values_are_left_alone():
    """Where records are alike by chance that is no sign of persons; neither is one column, or a picture."""
    rng = np.random.default_rng(0)
    assert resemblance(rng.integers(0, 4, (2000, 6)).astype(float)) is None
    assert resemblance(np.arange(50.0)[:, None]) is None
    assert resemblance(np.tile(np.arange(40.0), (30, 10))[:, :300] + np.eye(30, 300)) is None


def test_an_evaluation_in_python_warns_as_a_fit_does():
    """evaluate() points out columns that name persons, with the words of fit."""
    table = cohort()
    quick = {"n_models": 4, "folds": 2, "trials": 2, "step_budgets": [2.0**-8], "n_jobs": 1}
    with pytest.warns(PrivacyWarning, match="column 'w' may tell persons apart"):
        evaluate(table, ["a", "b"] * 450, "decision-tree", **quick)
