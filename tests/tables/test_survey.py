"""What is said about a table before anything is trained."""

import re

import numpy as np
import pandas as pd
import pytest
from hospital import OPTIONS, TARGET, hospital
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from pacpredict.exceptions import InvalidInput, InvalidTable
from pacpredict.tables.association import cells_of_numbers, share_explained
from pacpredict.tables.options import TableOptions, read_options
from pacpredict.tables.survey import survey
from pacpredict.training.pool import Pool

STAYS = hospital()


def look(table, target="y", **options):
    found = survey(table, TableOptions(target, **options))
    return {one.name: one for one in found.columns}


def with_target(**columns):
    n = len(next(iter(columns.values())))
    return pd.DataFrame({**columns, "y": ["a", "b"] * (n // 2) + ["a"] * (n % 2)})


def test_a_messy_table():
    """Ids, dates, limits of detection, constants and other outcomes are each pointed out, and nothing else is."""
    found = look(STAYS, TARGET)
    said = {name: one.warnings for name, one in found.items() if one.warnings}
    assert set(said) == {"record_id", "patient_id", "ward", "crp", "site", "died", "length_of_stay"}
    assert "looks like an identifier (500 different values" in said["patient_id"][0]
    assert "--person patient_id" in said["patient_id"][0]
    assert said["crp"] == ("has numbers beside 'n/a', '<0.5': --types crp=number --missing 'n/a'",) or said[
        "crp"
    ] == ("has numbers beside '<0.5', 'n/a': --types crp=number --missing 'n/a'",)
    assert said["site"] == ("has one value only: --drop site",)
    assert said["died"][0].startswith("sounds like an outcome ('died')")
    problems = {name: one.problem for name, one in found.items() if one.problem}
    assert set(problems) == {"admitted", "born"}
    assert "--types admitted=date" in problems["admitted"]
    assert "--types born=date:%d.%m.%Y" in problems["born"]
    assert (found["creatinine"].missing, found[TARGET].distinct) == (STAYS["creatinine"].isna().sum(), 3)


def test_what_was_decided_is_not_doubted_again():
    """With types declared and columns dropped, only the patient is left to be asked about, and a fit can begin."""
    options = TableOptions.from_json(OPTIONS)
    table = STAYS.replace("n/a", None)
    found = survey(table, options)
    assert [one.name for one in found.columns if one.warnings] == ["patient_id"]
    assert not found.problems
    kinds = {one.name: one.type for one in found.columns}
    assert [kinds[name] for name in ("admitted", "crp", "ward", "site", TARGET)] == [
        *("date", "number", "category", "dropped", "target"),
    ]
    pool = Pool.of_frame(table, options)
    assert {column.name: column.kind for column in pool.schema.columns} == {
        name: kind for name, kind in kinds.items() if kind not in {"dropped", "target"}
    }


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([20240131, 20231224, 19990101], "look like dates: --types x=date:%Y%m%d"),
        (["1", "2", "none", "3"], "has numbers beside 'none': --types x=number --missing 'none'"),
        (["1", "2", "3", ">= 7", "4"], "beside '>= 7': --types x=number$"),
        (["1.234,56", "950,1"], r"separators, such as '1.234,56': --types x=number:1.234,5$"),
        (
            ["17,454", "9,120", "950"],
            r"'17,454': --types x=number:1,234.5 if that is 17454, or --types x=number:1.234,5 if that is 17.454$",
        ),
        (
            ["1.234", *(f"{i} 200" for i in range(1, 40))],
            r"'1 200': --types 'x=number:1 234,5' if that is 1200, or --types 'x=number:1 234.5' if that is 1200",
        ),
        (["€ 1 200", "€ 12 950"], "'€ 1 200': --types 'x=number:€ 1 234,5'$"),
        ([*(f"{i},5" for i in range(40)), "n/a"], "--types x=number:1.234,5 --missing 'n/a'$"),
        ([*(f"{i},5" for i in range(40)), "<0,5"], "such as '0,5': --types x=number:1.234,5$"),
        (["<0,5", "0,7", "> 1.200", "1,5"], "such as '0,7': --types x=number:1.234,5$"),
        (["<0,5", *(f"{i},5" for i in range(40)), "n/a"], "--types x=number:1.234,5 --missing 'n/a'$"),
        ([1.0, None, None, None], "missing in 75.0%"),
        (["k", "k", "k"], "one value only: --drop x"),
    ],
    ids=str,
)
def test_doubts(values, words):
    """Each doubt is said with the option that settles it."""
    assert any(re.search(words, warning) for warning in look(with_target(x=values * 6))["x"].warnings)


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 3, 4],
        [0.5, 1.25, 8.0, 2.0],
        ["a", "b", "c", "a"],
        [True, False, True, False],
        ["1", "x", "y", "z"],
    ],
    ids=str,
)
def test_ordinary_columns_are_left_alone(values):
    """Numbers, categories and booleans give no reason to doubt."""
    rng = np.random.default_rng(0)
    table = with_target(x=rng.permutation(values * 10))
    assert look(table, person_per_row=True)["x"].warnings == ()


@pytest.mark.parametrize("name", ["branch_code", "site", "PostCode", "zip", "plz"])
def test_codes_that_are_taken_as_quantities(name):
    """Whole numbers in a column named like a code may be names: as a category, or left out if there are many."""
    few, many = np.arange(300) % 40 + 100, np.arange(300) * 97 + 10_000
    said = " ".join(look(with_target(**{name: few}))[name].warnings)
    assert f"sounds like a code: if its numbers are names, --types {name}=category" in said
    said = " ".join(look(with_target(**{name: many}))[name].warnings)
    assert f"if its numbers are names, --drop {name}" in said
    assert not look(with_target(**{name: few}), types={name: "number"})[name].warnings
    assert not look(with_target(amount=few))["amount"].warnings


def test_a_limit_is_shown_by_its_own_example():
    """What a limit counts as is said of one that the column has."""
    found = look(with_target(x=["12", "<10", "15", "> 99"] * 5), types={"x": "number"})
    assert found["x"].action == "<10 counts as 10"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([*[1, 2, 3, 4] * 9, *[-99] * 3], "has '-99' (3 records): if that means missing, --missing x=-99"),
        ([*[0, 1] * 9, *[99] * 3], "has '99' (3 records)"),
        ([*range(20, 80), -9, -9, -9], "has '-9' (3 records): if that means missing, --missing x=-9"),
        ([*range(40), -1, -1, -1, -1], "has '-1' (4 records): if that means missing, --missing x=-1"),
        ([*range(9), *[99] * 5], "has '99' (5 records): if that means missing, --missing x=99"),
        ([*np.linspace(-5, 30, 40), *[-999.0] * 3], "has '-999' (3 records)"),
        ([*range(18, 90), *[999] * 4, *[-9] * 3], "has '-9' (3 records), '999' (4 records)"),
        ([*"abc" * 9, "unknown"], "has 'unknown' (1 record): if that means missing, --missing x=unknown"),
        ([*"abc" * 9, "?", "n/a"], "--missing 'x=?' --missing x=n/a"),
        ([*"abc" * 9, "NA", " - "], "--missing x=NA --missing 'x= - '"),
    ],
    ids=str,
)
def test_codes_that_may_mean_missing(values, words):
    """Codes apart from all other numbers, and words of people who do not know, are named with the option."""
    said = " ".join(look(with_target(x=values))["x"].warnings)
    assert words in said


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([*"mwwm" * 9, "M"], "has 'M' beside 'm'"),
        ([*"mwwm" * 9, "m ", "W"], "has 'm ' beside 'm', 'W' beside 'w'"),
        (["New York", "Bern", "new  york"] * 10, "has 'new  york' beside 'New York'"),
    ],
    ids=str,
)
def test_categories_that_differ_in_spelling_alone(values, words):
    """Another case or other blanks make another category, which a reader would hardly notice."""
    (said,) = look(with_target(x=values), person_per_row=True)["x"].warnings
    assert said == f"{words}: they are different categories; spell alike what is meant to be the same"


@pytest.mark.parametrize(
    ("labels", "n_warnings"), [(["yes"] * 20 + ["Yes "] * 20, 1), (["yes"] * 20 + ["no"] * 20, 0)]
)
def test_classes_that_differ_in_spelling_alone(labels, n_warnings):
    """The same of the target, of which it would make another class."""
    said = look(pd.DataFrame({"x": range(40), "y": labels}))["y"].warnings
    assert sum("beside 'yes': they are different classes" in one for one in said) == n_warnings


@pytest.mark.parametrize(
    ("values", "kind", "words"),
    [
        (
            [*(f"{i},5" for i in range(5, 40)), *["999"] * 4],
            "number:1.234,5",
            "has '999' (4 records): if that means missing, --missing x=999",
        ),
        (
            [*(f"{i},5" for i in range(5, 40)), *["-9"] * 3, *["-9,0"] * 2],
            "number:1.234,5",
            "has '-9' (3 records), '-9,0' (2 records): if that means missing, --missing x=-9 --missing x=-9,0",
        ),
        ([*map(str, range(40)), "<5", *["-9"] * 3], "number", "has '-9' (3 records)"),
        ([*range(18, 90), *[999] * 4], "number", "has '999' (4 records)"),
        ([*"abc" * 9, "unknown"], "category", "has 'unknown' (1 record)"),
    ],
    ids=str,
)
def test_codes_in_columns_that_were_declared(values, kind, words):
    """Whoever says how a column is written has not said what its codes mean: they are named as they stand there."""
    table = with_target(x=values)
    (said,) = look(table, types={"x": kind})["x"].warnings
    assert said.startswith(words)


@pytest.mark.parametrize(
    "values",
    [
        [*range(60, 99), *[99] * 5],  # ages
        [-1, 0, 1] * 10,
        [0, 99] * 10,
        [*range(-20, 20)] * 2,
        [*range(-9, 20)] * 3,
        [*range(0, 90_000, 777), *[99_999] * 3],
        [*range(9), 99],  # once
        [*np.linspace(0, 1, 40), 1.5],
        [*"abc" * 9, "none", "a-b"],
    ],
    ids=str,
)
def test_values_that_mean_what_they_are(values):
    """Numbers that go on to a code, both signs and answers are left alone."""
    assert "--missing" not in " ".join(look(with_target(x=values))["x"].warnings)


def test_a_column_that_follows_from_the_target():
    """A column that tells most of the target is asked about, by any name; one of random numbers is not."""
    rng = np.random.default_rng(1)
    y = rng.choice(["a", "b", "c"], 400)
    table = pd.DataFrame(
        {"copy": pd.Series(y).map({"a": 1.5, "b": 2.5, "c": 3.5}), "noise": rng.normal(size=400)}
    )
    table["names"] = [f"n{i}" for i in range(400)]  # a name each says nothing about others
    found = look(table.assign(y=y))
    assert re.match(r"says (99|100)\.\d% of the target by itself", found["copy"].warnings[0])
    assert not found["noise"].warnings
    assert not any("by itself" in warning for warning in found["names"].warnings)


def loans(n=2000):
    """Return loans of which one in twenty defaults, and nothing that tells which."""
    rng = np.random.default_rng(4)
    y = np.where(rng.random(n) < 0.05, "default", "paid")
    return pd.DataFrame({"income": rng.normal(size=n), "job": rng.choice(["a", "b", None], n), "y": y})


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            lambda bad, rng: np.where(bad, rng.choice(["ann", "bob", "cy"], len(bad)), None),
            "is filled in in 100.0%",
        ),
        (
            lambda bad, rng: np.where(bad & (rng.random(len(bad)) < 0.6), "ann", None),
            r"is filled in in \d\d.\d%",
        ),
        (lambda bad, rng: np.where(bad, np.nan, rng.normal(size=len(bad))), "is missing in 100.0%"),
        (
            lambda bad, rng: np.where(bad & (rng.random(len(bad)) < 0.7), rng.random(len(bad)), 0.0),
            "is not 0.0 in",
        ),
        (lambda bad, rng: np.where(bad & (rng.random(len(bad)) < 0.5), "sold", "no"), "is not 'no' in"),
    ],
    ids=["filled", "half filled", "missing", "zeros", "flag"],
)
def test_a_mark_of_a_rare_class_is_asked_about(values, words):
    """A column that is filled, missing or other than usual in one class alone tells it, however rare it is."""
    table, rng = loans(), np.random.default_rng(5)
    found = look(table.assign(x=values((table["y"] == "default").to_numpy(), rng)))
    said = " ".join(found["x"].warnings)
    assert re.search(words + r".*of the records of 'default', and 100.0% of the records where it is so", said)
    assert "is it known when the question is asked? If not, --drop x" in said
    assert not found["income"].warnings
    assert not found["job"].warnings


def test_a_good_predictor_is_no_mark():
    """What is missing at random, or marks both classes, is left alone; so are the columns of well-known tables."""
    table, rng = loans(), np.random.default_rng(6)
    often = np.where(table["y"] == "default", 0.6, 0.1)
    found = look(table.assign(x=np.where(rng.random(len(table)) < often, "late", "never")))
    assert not found["x"].warnings
    for load in (load_iris, load_wine, load_breast_cancer):
        data = load(as_frame=True)
        assert not [
            one for one in look(data.frame, "target").values() if "of that class" in " ".join(one.warnings)
        ]


@pytest.mark.parametrize(
    "name",
    [
        "dropout",
        "Withdrawn",
        "in_collections",
        "charged_off",
        "amount written off",
        "ChargedOff",
        "write-off",
    ],
)
def test_names_of_outcomes(name):
    """Names of what happens at the end are asked about."""
    assert "sounds like an outcome" in look(with_target(**{name: [1.5, 2.5, 3.5] * 10}))[name].warnings[0]


def test_the_share_that_is_explained():
    """A copy explains all, a coin nothing, and a column that is right nine times in ten what theory says."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 20_000)
    assert share_explained(labels, labels) == pytest.approx(1.0, abs=1e-3)
    assert share_explained(rng.integers(0, 50, 20_000), labels) < 0.002
    noisy = np.where(rng.random(20_000) < 0.1, 1 - labels, labels)
    expected = 1 - (0.1 * np.log2(1 / 0.1) + 0.9 * np.log2(1 / 0.9))
    assert share_explained(noisy, labels) == pytest.approx(expected, abs=0.02)
    assert share_explained(cells_of_numbers(labels + rng.normal(0, 0.01, 20_000)), labels) > 0.95


@pytest.mark.parametrize(
    ("labels", "problem", "warning"),
    [
        (np.random.default_rng(0).normal(size=200), "looks continuous .200 different numbers", None),
        (np.arange(200) % 40, None, "has 40 different numbers: is it a quantity"),
        (["a"] * 195 + ["b"] * 5, None, "fewer than 10 records .'b'"),
        (["a"] * 200, "1 class", None),
        (["a", None] * 100, "missing values", None),
        (np.arange(200.0) % 30, None, "has 30 different numbers"),
    ],
    ids=["continuous", "counts", "rare", "one", "missing", "whole"],
)
def test_targets(labels, problem, warning):
    """A target that cannot be classes is a problem, one that may not be meant as such a warning."""
    table = pd.DataFrame({"x": np.arange(200.0) / 7, "y": labels})
    found = look(table)["y"]
    assert (found.problem is None) == (problem is None)
    assert re.search(problem or "^$", found.problem or "")
    assert re.search(warning or "^$", " ".join(found.warnings))
    if problem:
        with pytest.raises(InvalidTable, match=problem):
            Pool.of_frame(table, "y")


def test_weights_and_values_that_cannot_be():
    """A column of weights is named as such; nested values are a problem, not a crash."""
    table = with_target(x=[[1], [2]] * 10, w=np.ones(20))
    found = look(table, weights="w")
    assert found["w"].type == "weights"
    assert "values of type list" in found["x"].problem


def test_options_from_a_file(tmp_path):
    """A TOML file says what options say."""
    path = tmp_path / "stays.toml"
    path.write_text(
        'target = "outcome"\nweights = "w"\ndrop = ["id"]\nmissing = ["?"]\nmin_category = 5\n\n'
        '[types]\ncrp = "number"\nborn = "date:%d.%m.%Y"\nward = ["A", 2]\n'
    )
    options = TableOptions.from_json(read_options(path))
    assert options == TableOptions(
        "outcome",
        weights="w",
        drop=("id",),
        types={"crp": "number", "born": "date:%d.%m.%Y", "ward": ["A", 2]},
        missing=("?",),
        min_category=5,
    )
    assert TableOptions.from_json(options.to_json()) == options


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({}, "say which column is to be predicted: --target COLUMN"),
        (
            {"target": "y", "tartget": "z"},
            "a table has no 'tartget'; what can be said is target, input, image_size, weights",
        ),
        ({"target": "y", "drop": "x"}, "drop must be a list of texts, got 'x'"),
        ({"target": "y", "types": ["x"]}, "types must be a table of columns"),
        ({"target": 3}, "target must be a text, got 3"),
        ({"target": "y", "types": {"x": "int"}}, "the type of column 'x' must be one of"),
        ({"target": "y", "types": {"x": 3}}, "the type of column 'x' must be one of"),
        ({"target": "y", "types": {"x": []}}, "must be declared to have some categories, each once"),
        ({"target": "y", "types": {"x": ["a", "a"]}}, "must be declared to have some categories, each once"),
        (
            {"target": "y", "types": {"x": "category:a,,b"}},
            "'x' is declared to have the category '', which cannot be",
        ),
        ({"target": "y", "types": {"x": list(range(300))}}, "300 categories; at most 254 fit"),
        ({"target": "y", "min_category": 0}, "min_category must be a whole number of units from 1 on, got 0"),
        ({"target": "y", "min_category": "ten"}, "min_category must be a whole number, got 'ten'"),
        ({"target": "y", "unknown": "refuse"}, "a table has no 'unknown'"),
        ({"target": "y", "drop": ["y"]}, "column 'y' is said to be two things at once"),
        ({"target": "y", "drop": ["x"], "types": {"x": "number"}}, "'x' is not learned from"),
    ],
    ids=str,
)
def test_options_that_are_refused(said, words):
    """What a file says wrongly is named."""
    with pytest.raises(InvalidInput, match=words):
        TableOptions.from_json(said)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "z"}, "no column 'z' to predict; the columns are 'x', 'y'"),
        ({"drop": ("z",)}, "no column 'z' to drop"),
        ({"weights": "z"}, "no column 'z' of weights"),
        ({"types": {"z": "number"}}, "no column 'z' to declare"),
    ],
    ids=str,
)
def test_columns_that_are_not_there(options, words):
    """Every option that names a column needs one of that name."""
    table = with_target(x=list(range(20)))
    with pytest.raises(InvalidTable, match=words):
        Pool.of_frame(table, TableOptions(**{"target": "y", **options}))
