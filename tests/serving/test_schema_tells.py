"""What a server answers and says about itself does not depend on the values that one patient alone has."""

import json

import pytest
from live_server import NAME, LiveServer, ServerProcess
from terminal import run_here
from two_worlds import HERS, TYPES, clinic, queries, query, write_worlds

from pacpredict.deployment import Deployment

PAGES = (f"/v2/models/{NAME}", "/page/form")


def fit(capsys, table, out, *options):
    how = (
        "--models",
        "8",
        "--seed",
        "1",
        "--jobs",
        "1",
        "--total-budget",
        "0.1",
        "--learner",
        "decision-tree",
    )
    columns = ("--target", "outcome", "--person", "patient", "--types", *TYPES)
    code, _, errors = run_here(capsys, "fit", table, *columns, *how, *options, "--out", out)
    assert code == 0, errors


def told(server):
    """Return all that clients see which is no release: statuses, descriptions, words of errors."""
    pages = {path: server.http.get(path).text for path in PAGES}
    description = server.http.get("/openapi.json").json()
    del description["paths"]["/privacy"]  # whose example has figures that depend on which subsets were drawn
    pages["/openapi.json"] = json.dumps(description).replace(server.url, "")
    replies = [server.http.post("/invocations", json={"dataframe_records": [row]}) for row in queries()]
    answers = [(reply.status_code, reply.json().get("error")) for reply in replies]
    assert all(pages.values())
    return answers, pages


@pytest.mark.parametrize("what", HERS)
def test_one_patient_decides_no_status_and_no_word(what, tmp_path, capsys):
    """With her and without her, the same queries get 200, the others the same words, and descriptions are the same."""
    found = {}
    for world, table in write_worlds(tmp_path, what).items():
        fit(capsys, table, tmp_path / f"{world}.pac")
        with (
            Deployment.open(tmp_path / f"{world}.pac") as deployment,
            LiveServer(deployment.curator) as server,
        ):
            found[world] = told(server)
    answers, pages = found["with"]
    for path, text in pages.items():
        assert text == found["without"][1][path], path
    assert answers == found["without"][0]
    assert answers[0] == (200, None)
    _column, cell = HERS[what]
    assert not any(cell.strip() in text for text in pages.values() if len(cell) > 3)


def test_what_is_answered(tmp_path, capsys):
    """Unknown categories and missing values are answered in every column; what is no value of its kind is refused."""
    fit(capsys, write_worlds(tmp_path, "category")["without"], tmp_path / "clinic.pac")
    with ServerProcess(tmp_path / "clinic.pac") as server:
        answers, _ = told(server)
    refused = {row for row, (status, _) in enumerate(answers) if status != 200}
    rows = queries()
    assert refused == {
        row
        for row, asked in enumerate(rows)
        if asked["creatinine"] == "haemolytic" or asked["smoker"] == "shisha"
    }
    assert all(answers[row][0] == 400 for row in refused)


def test_what_the_owner_sees_names_no_rare_category(tmp_path, capsys):
    """show and the manifest list categories that ten persons have, and not hers; --min-category 1 lists all."""
    table = write_worlds(tmp_path, "category")["with"]
    fit(capsys, table, tmp_path / "clinic.pac")
    code, output, _ = run_here(capsys, "show", tmp_path / "clinic.pac", "--columns", "--json")
    columns = {column["name"]: column["categories"] for column in json.loads(output)["columns"]}
    assert (code, columns["diagnosis"]) == (0, ["asthma", "flu", "gout"])
    for path in (tmp_path / "clinic.pac").rglob("*"):
        assert not path.is_file() or b"Gaucher" not in path.read_bytes(), path
    fit(capsys, table, tmp_path / "all.pac", "--min-category", "1")
    assert "Gaucher" in run_here(capsys, "show", tmp_path / "all.pac", "--columns")[1]


def public_rows(path):
    """Write rows of which some have what only she has, and what nobody has."""
    table = clinic(seed=7).drop(columns=["patient", "outcome"])[:60]
    table.loc[::4, "diagnosis"], table.loc[1::4, "diagnosis"], table.loc[2::7, "ward"] = (
        "Gaucher",
        "lupus",
        "7",
    )
    table.loc[3::5, "creatinine"] = ""
    table.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("what", ["category", "missing number", "missing category", "number of a category"])
@pytest.mark.parametrize("learner", ["xgboost", "logistic"])
def test_a_student_knows_the_public_rows_alone(what, learner, tmp_path, capsys):
    """What a student publishes about columns is the same to the byte, with her in the pool and without her."""
    public, found = public_rows(tmp_path / "public.csv"), {}
    for world, table in write_worlds(tmp_path, what).items():
        fit(capsys, table, tmp_path / f"{world}.pac")
        how = (
            "--learner",
            learner,
            "--order",
            "active",
            "--queries",
            "40",
            "--filter",
            "paper",
            "--alpha",
            "0.9",
        )
        out = tmp_path / f"{world}-student"
        code, _, errors = run_here(capsys, "distill", tmp_path / f"{world}.pac", public, *how, "--out", out)
        assert code == 0, errors
        found[world] = json.loads((out / "student.json").read_text())
        for path in out.iterdir():
            assert b"P119" not in path.read_bytes()
    assert found["with"] == found["without"]
    columns = {column["name"]: column["categories"] for column in found["with"]["columns"]}
    assert columns["diagnosis"] == ["Gaucher", "asthma", "flu", "gout", "lupus"]
    assert columns["ward"] == ["1", "2", "3", "7"]


@pytest.mark.parametrize("charging", ["adaptive", "flat"])
def test_repeats_do_not_tell_which_categories_are_listed(charging, tmp_path, capsys):
    """A category that ten patients have is listed, without one of them it is not: numbers and charges are the same."""
    table = clinic()
    table.loc[table["patient"].isin([f"P{i:03d}" for i in range(10)]), "diagnosis"] = "lepra"
    found = {}
    for world, one in {"with": table, "without": table[table["patient"] != "P000"]}.items():
        one.to_csv(tmp_path / f"{world}.csv", index=False)
        fit(capsys, tmp_path / f"{world}.csv", tmp_path / f"{world}.pac", "--charging", charging)
        with Deployment.open(tmp_path / f"{world}.pac") as deployment:
            listed = deployment.artifact.schema.columns[2].categories
            assert ("lepra" in listed) == (world == "with")
            asked = [query(diagnosis=name) for name in ("zzz", "lepra", "other", "lepra")]
            answers = [deployment.ask([row]).releases[0] for row in asked]
        found[world] = [answer.sequence for answer in answers], [answer.charge > 0 for answer in answers]
    assert found["with"][0] == found["without"][0] == [1, 2, 3, 2]
    if charging == "flat":
        assert found["with"][1] == found["without"][1] == [True, True, True, False]
