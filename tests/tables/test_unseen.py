"""How many new rows would be refused: counted as a model of the other rows would do it."""

import numpy as np
import pandas as pd
import pytest

from pacpredict.evaluation.evaluate import evaluate
from pacpredict.evaluation.folds import split
from pacpredict.exceptions import InvalidQuery
from pacpredict.tables.options import TableOptions
from pacpredict.tables.schema import Schema
from pacpredict.tables.survey import survey
from pacpredict.tables.unseen import refused, share_refused_alone
from pacpredict.training.pool import Pool


def is_refused(known, row):
    """Ask a schema of the known rows themselves."""
    try:
        Schema.infer(known).rows(row)
    except InvalidQuery:
        return True
    return False


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 150
    table = pd.DataFrame({"code": rng.geometric(0.1, n).astype(str), "x": rng.normal(size=n)})
    table["ward"] = pd.Categorical(rng.choice(["a", "b"], n), categories=["a", "b", "c"])
    table.loc[[3, 70], "code"] = None
    table.loc[9, "x"] = np.nan
    table.loc[11, "ward"] = "c"
    return table


def test_what_a_model_of_the_others_would_refuse(table):
    """Row by row it is what a schema of the other rows refuses."""
    schema = Schema.infer(table)
    rows, rng = schema.rows(table), np.random.default_rng(1)
    held_out = rng.random(len(table)) < 0.3
    held_out[9] = True
    expected = [is_refused(table[~held_out], table[i : i + 1]) for i in np.flatnonzero(held_out)]
    assert 0 < sum(expected) < len(expected)
    assert refused(schema, rows, held_out).tolist() == expected


def test_the_share_of_new_rows(table):
    """The estimate of a dry run is the share that is refused when each unit is left out in turn."""
    schema = Schema.infer(table)
    rows = schema.rows(table)
    for units in (np.arange(len(table)), np.arange(len(table)) // 3):
        expected = np.mean(
            [is_refused(table[units != units[i]], table[i : i + 1]) for i in range(len(table))]
        )
        assert share_refused_alone(schema, rows, units) == (pytest.approx(expected), "code")
    said = survey(table.assign(y=["a", "b"] * 75), TableOptions("y")).hints
    assert any(
        "of new rows would be refused" in hint and "'code': --unknown missing" in hint for hint in said
    )
    assert not survey(table.assign(y=["a", "b"] * 75), TableOptions("y", unknown="missing")).hints


def test_an_evaluation_counts_its_folds(table):
    """The share in the figures is what schemas of the folds refuse; nothing is refused where unknown is missing."""
    y = np.array(["a", "b"] * 75)
    pool = Pool.of(table, y)
    expected = sum(
        is_refused(table[~held_out], table[i : i + 1])
        for held_out in split(pool, 3, 0)
        for i in np.flatnonzero(held_out)
    )
    quick = {"n_models": 4, "folds": 3, "trials": 2, "step_budgets": [2.0**-8], "n_jobs": 1}
    found = evaluate(table, y, "decision-tree", **quick)
    assert found.refused == found.to_json()["refused"] == expected / 150 > 0
    assert evaluate(table, y, "decision-tree", unknown="missing", **quick).refused == 0.0
