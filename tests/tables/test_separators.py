"""Numbers with separators: read as they are declared, never by guess, and the same query however they are written."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pacpredict.exceptions import InvalidInput, InvalidModel, InvalidQuery, InvalidTable
from pacpredict.tables.declared import declared_types
from pacpredict.tables.read import read_table
from pacpredict.tables.schema import Schema
from pacpredict.tables.separators import guess_forms, number_written

FORMS = [
    "1,234.5",
    "1.234,5",
    "1 234,5",
    "1'234.5",
    "1234,5",
    "€ 1 234,5",
    "1.234,5 €",
    "$1,234.5",
    "1,234.5 %",
]


def written(number, form):
    """Write a number as the example shows, by Python's own formatting of thousands."""
    before, after = form.split("1", 1)[0], form.rsplit("5", 1)[1]
    core = form[len(before) : len(form) - len(after)]
    group, decimal = core[1 : core.index("234")], core[-2]
    text = f"{abs(number):,.2f}".replace(".", "D").replace(",", group).replace("D", decimal)
    return f"{'-' if number < 0 else ''}{before}{text}{after}"


@given(number=st.integers(-(10**13), 10**13), form=st.sampled_from(FORMS))
def test_what_python_writes_is_read_to_the_last_bit(number, form):
    """Any amount to the cent, with thousands set apart as Python does, is the float that the plain number is."""
    assert number_written(written(number / 100, form), form) == number / 100


@pytest.mark.parametrize(
    ("text", "form", "number"),
    [
        ("1,234", "1,234.5", 1234.0),
        ("1,234", "1.234,5", 1.234),
        ("1.234", "1.234,5", 1234.0),
        ("1.234", "1,234.5", 1.234),
        ("17454", "1,234.5", 17454.0),
        ("€ 1\u00a0200", "€ 1 234,5", 1200.0),
        ("€1\u202f200,50", "€ 1 234,5", 1200.5),
        ("1200", "€ 1 234,5", 1200.0),
        ("-€ 12", "€ 1 234,5", -12.0),
        ("€ -12", "€ 1 234,5", -12.0),
        ("\u221212,5", "1.234,5", -12.5),
        ("1\u2019234.5", "1'234.5", 1234.5),
        (",5", "1.234,5", 0.5),
        (" 12 %", "1,234.5 %", 12.0),
    ],
    ids=str,
)
def test_the_declared_form_decides(text, form, number):
    """The same text is another number in another form; blanks, apostrophes and minus signs may be typeset."""
    assert number_written(text, form) == number


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("1234.5", "1.234,5"),
        ("1,23", "1,234.5"),
        ("1,2345", "1,234.5"),
        ("12,34,567", "1,234.5"),
        ("1.234.5", "1.234,5"),
        ("1.234,5", "1234,5"),
        ("$ 12", "€ 1 234,5"),
        ("-€ -12", "€ 1 234,5"),
        ("12 kg", "1,234.5"),
        ("", "1,234.5"),
        ("€", "€ 1 234,5"),
        ("-", "1,234.5"),
        ("1e3", "1,234.5"),
        ("١٢", "1,234.5"),
        ("9" * 400, "1,234.5"),
        ("-" + " " * 10**6 + "x", "1,234.5"),
        ("1" + "," * 10**6, "1,234.5"),
    ],
    ids=lambda text: text[:12],
)
def test_what_does_not_fit_is_no_number(text, form):
    """Groups of other lengths, other separators, other units, exponents and what never ends are not read."""
    assert number_written(text, form) is None


@pytest.mark.parametrize(
    ("texts", "forms"),
    [
        (["1,234.56", "12.5"], ["1,234.5"]),
        (["1.234,56", "950,1"], ["1.234,5"]),
        (["175,2", "168,4"], ["1.234,5"]),
        (["17,454", "9,120", "950"], ["1,234.5", "1.234,5"]),
        (["1 200", "17 454"], ["1 234,5"]),
        (["€ 1 200", "€ 950"], ["€ 1 234,5"]),
        (["$1,200.00", "$3"], ["$1,234.5"]),
        (["12 %", "7,5 %"], ["1.234,5 %"]),
        (["1,234.5"] * 30 + ["n/a"], ["1,234.5"]),
        (["1", "2.5", "3e4"], []),
        (["a", "1,5"], []),
        (["1.2.3", "1.2.4"], []),
        (["P0012", "P0013"], []),
        (["01-0000", "01-0001"], []),
        (["2024-01-31", "10:30"], []),
        ([], []),
    ],
    ids=str,
)
def test_how_texts_may_be_meant(texts, forms):
    """Every meaning that texts can have is named, one form for each; plain numbers, codes and names have none."""
    assert guess_forms(texts) == forms


def test_a_declared_column_is_one_query_in_every_spelling():
    """17,454 and 17454, as text or number, have one digest; so they have after the schema was stored and read."""
    table = pd.DataFrame({"x": ["17,454", "950.25", None]})
    schema = Schema.infer(table, types={"x": "number:1,234.5"})
    assert schema.columns[0].kind == "number"
    assert declared_types(schema.columns) == {"x": "number:1,234.5"}
    again = Schema.from_json(json.loads(json.dumps(schema.to_json())))
    assert again == schema
    ways = ["17,454", "17454", "17,454.00", 17454, 17454.0, np.float32(17454)]
    assert len({again.digests(again.rows({"x": [way]}))[0] for way in ways}) == 1
    assert again.features(again.rows(table))[:2, 0].tolist() == [17454.0, 950.25]
    with pytest.raises(InvalidQuery, match=r"row 1 .*expected a number written as 1,234.5, got '17\.454,0'"):
        again.rows({"x": ["1", "17.454,0"]})


def test_limits_may_have_separators():
    """A limit of detection is read as the other numbers of its column are."""
    schema = Schema.infer(pd.DataFrame({"x": ["<0,5", "1.200"]}), types={"x": "number:1.234,5"})
    assert schema.rows({"x": ["<0,5", "> 1.200", "3"]}).numbers[:, 0].tolist() == [0.5, 1200.0, 3.0]


def test_a_number_with_separators_is_refused_with_what_to_do():
    """Where numbers are plain the refusal names the ways in which the value could be read."""
    schema = Schema.infer(pd.DataFrame({"the sum": [1.0, 2.0]}))
    with pytest.raises(InvalidQuery, match="expected a number, got '17,454'; write it without") as refused:
        schema.rows({"the sum": ["17,454"]})
    assert "--types 'the sum=number:1,234.5' or --types 'the sum=number:1.234,5'" in str(refused.value)
    with pytest.raises(InvalidTable, match=r"--types x=number:1\.234,5 \(in Python types=\)"):
        Schema.infer(pd.DataFrame({"x": ["175,2"]}), types={"x": "number"})
    with pytest.raises(InvalidQuery, match=r"got 'many'$"):
        schema.rows({"the sum": ["many"]})


@pytest.mark.parametrize("form", ["1,234", "1234", "%d", "1,234,5", "-1,234.5", "1_234.5", "2,345.6"])
def test_examples_that_show_nothing(form):
    """An example must be 1234.5, so that it shows both signs; what a stored schema has is checked as well."""
    with pytest.raises(InvalidInput, match=r"must show how 1234\.5 is written there"):
        Schema.infer(pd.DataFrame({"x": ["1"]}), types={"x": f"number:{form}"})
    stored = Schema.infer(pd.DataFrame({"x": [1.0]})).to_json()
    stored["columns"][0]["form"] = form
    with pytest.raises(InvalidModel, match="numbers in the unknown form"):
        Schema.from_json(stored)


def test_files_leave_such_columns_as_they_are_written(tmp_path):
    """1.234 in a file is text where separators are declared: read as a number it would be a thousandth."""
    path = tmp_path / "a.csv"
    path.write_text("x;y\n1.234;1.234\n950;2\n;3\n")
    table = read_table(path, texts=["x"])
    assert table["x"].tolist()[:2] == ["1.234", "950"]
    assert table["x"].isna().tolist() == [False, False, True]
    assert table["y"].tolist() == [1.234, 2.0, 3.0]
