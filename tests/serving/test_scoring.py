"""MLflow's protocol: every form of rows means the same query."""

import io

import numpy as np
import pandas as pd
import pytest
from live_server import LiveServer, curator_of
from records import quick_fit

from pacpredict.training.pool import Pool


def invoke(server, content=None, content_type="application/json", **body):
    if content is None:
        return server.http.post("/invocations", json=body)
    return server.http.post("/invocations", content=content, headers={"content-type": content_type})


def test_every_form_is_the_same_query(server, rows):
    """Records, a split frame, instances, columns and CSV of the same rows get the same answers, charged once."""
    frame = pd.DataFrame(rows)
    lists = [list(row.values()) for row in rows]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    first = invoke(server, dataframe_records=rows).json()
    assert first.keys() == {"predictions", "parameters"}
    csv = io.StringIO()
    frame.to_csv(csv, index=False)
    replies = [
        invoke(server, dataframe_split={"columns": list(columns), "index": list(range(40)), "data": lists}),
        invoke(server, instances=rows),
        invoke(server, instances=lists),
        invoke(server, inputs=columns),
        invoke(server, inputs=lists),
        invoke(server, csv.getvalue(), "text/csv; charset=utf-8"),
    ]
    for reply in replies:
        again = reply.json()
        assert again["predictions"] == first["predictions"]
        assert again["parameters"] == {
            "sequence": first["parameters"]["sequence"],
            "charge_nats": [0.0] * len(rows),
        }


def test_order_of_columns_does_not_matter(server, rows):
    """Columns are known by their names."""
    shuffled = [dict(reversed(row.items())) for row in rows[:3]]
    assert (
        invoke(server, instances=shuffled).json()["predictions"]
        == invoke(server, instances=rows[:3]).json()["predictions"]
    )


def test_ping(server):
    """MLflow's health check is answered."""
    assert server.http.get("/ping").status_code == 200


def test_params(server, rows):
    """An id and the wish for a part may come beside the rows."""
    rows = [{**row, "age": 92} for row in rows[:2]]  # an id is noted with a new answer
    reply = invoke(server, instances=rows[:2], params={"id": "one", "partial": True}).json()
    assert reply["parameters"]["rows_asked"] == reply["parameters"]["rows_answered"] == 2
    assert invoke(server, instances=rows[:1], params={"id": "one"}).status_code == 409


WRONG = {
    "no form": {},
    "two forms": {"instances": [], "inputs": []},
    "no rows": {"instances": []},
    "a number": {"instances": 3},
    "a text": {"inputs": "age"},
    "null": {"inputs": None},
    "rows of different width": {"instances": [[1, 2], [1]]},
    "too few columns": {"instances": [{"age": 1}]},
    "columns that are no lists": {"inputs": {"age": 1}},
    "a split without columns": {"dataframe_split": {"data": [[1]]}},
    "a split that is a list": {"dataframe_split": [[1]]},
    "a split with names twice": {"dataframe_split": {"columns": ["age", "age"], "data": [[1, 2]]}},
    "a split with names that are lists": {"dataframe_split": {"columns": [["age"]], "data": [[1]]}},
    "a split with short rows": {"dataframe_split": {"columns": ["age", "job"], "data": [[1]]}},
    "params that are a list": {"instances": [[1]], "params": [1]},
}


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_wrong_bodies(server, body):
    """What is not a table is refused with words, and not charged."""
    before = server.n_released
    reply = server.http.post("/invocations", json=body)
    assert reply.status_code == 400, reply.text
    assert reply.json()["code"] == "invalid-request"
    assert server.n_released == before


WRONG_CSV = {
    "empty": b"",
    "names only": b"age,hours,job,married,grade,note\n",
    "short lines": b"age,hours\n1\n",
    "long lines": b"age,hours\n1,2,3\n",
    "names twice": b"age,age\n1,2\n",
    "not UTF-8": b"age\n\xff\n",
    "a huge cell": b'age\n"' + b"x" * 200_000 + b'"\n',
    "an open quote": b'age,hours,job,married,grade,note\n1,2,"clerk,true,low,x\n',
}


@pytest.mark.parametrize("content", WRONG_CSV.values(), ids=WRONG_CSV)
def test_wrong_csv(server, content):
    """What is not CSV of the columns is refused, and not charged."""
    before = server.n_released
    assert invoke(server, content, "text/csv").status_code == 400
    assert server.n_released == before


def test_csv_that_does_not_say_so(server):
    """Whoever sends CSV as curl does by itself is told which header it needs."""
    before = server.n_released
    reply = invoke(server, b"age,hours\n1,2\n", "application/x-www-form-urlencoded")
    assert reply.status_code == 400
    assert "with Content-Type: text/csv" in reply.json()["error"]
    assert server.n_released == before


@pytest.mark.parametrize("separator", [";", "\t"])
def test_csv_without_commas(server, separator):
    """A spreadsheet's semicolons and tabs are told by name, also where a row has a comma of its own."""
    before = server.n_released
    reply = invoke(server, f"age{separator}hours\n1,5{separator}2\n".encode(), "text/csv")
    assert reply.status_code == 400
    assert "separate the columns by commas; the first line has one name" in reply.text
    assert server.n_released == before


def test_tables_without_names():
    """Columns that had no names come by position, also as pandas splits such a frame."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(100, 2))
    fitted = quick_fit(Pool.of(table, (table[:, 0] + rng.normal(size=100) > 0).astype(int)))
    queries = rng.normal(size=(3, 2))
    split = pd.DataFrame(queries).to_dict("split")
    with LiveServer(curator_of(fitted)) as server:
        first = invoke(server, instances=queries.tolist()).json()
        again = invoke(server, dataframe_split=split).json()
    assert again["predictions"] == first["predictions"]
    assert sum(again["parameters"]["charge_nats"]) == 0.0


def test_tables_of_one_column():
    """Instances of a table with one column may be plain values."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=100)})
    fitted = quick_fit(Pool.of(table, (table["x"] + rng.normal(size=100) > 0).to_numpy()))
    with LiveServer(curator_of(fitted)) as server:
        first = invoke(server, instances=[{"x": 0.25}]).json()
        again = invoke(server, instances=[0.25]).json()
    assert again["parameters"]["sequence"] == first["parameters"]["sequence"] == [1]
    assert first["predictions"][0] in (True, False)


def test_numbers_with_separators():
    """A number in the declared form, without separators or as JSON's own is one query; the page says how."""
    rng = np.random.default_rng(0)
    numbers = rng.integers(100, 99_999, 100)
    table = pd.DataFrame({"amount": [f"{number:,}" for number in numbers], "x": rng.normal(size=100)})
    pool = Pool.of(table, (numbers > 40_000).astype(int), types={"amount": "number:1,234.5"})
    with LiveServer(curator_of(quick_fit(pool))) as server:
        ways = ["17,454", "17454", "17,454.00", 17454, 17454.0]
        replies = [invoke(server, dataframe_records=[{"amount": way, "x": 0.5}]) for way in ways]
        replies.append(invoke(server, 'amount,x\n"17,454",0.5\n', "text/csv"))
        assert {reply.status_code for reply in replies} == {200}
        assert {tuple(reply.json()["parameters"]["sequence"]) for reply in replies} == {(1,)}
        refused = invoke(server, dataframe_records=[{"amount": "17.454,0", "x": 0.5}])
        assert refused.status_code == 400
        assert "expected a number written as 1,234.5, got '17.454,0'" in refused.json()["error"]
        assert "number, as 1,234.5" in server.http.get("/page/form").text
        described = server.http.get("/openapi.json").json()["components"]["schemas"]["Record"]
        number, missing = described["properties"]["amount"]["anyOf"]
        assert (number["type"], missing) == (["number", "string"], {"type": "null"})
