"""The Open Inference Protocol as its text has it: metadata, tensors in JSON and in bytes, answers, errors."""

import json

import numpy as np
import pandas as pd
import pytest
from live_server import DATATYPES, LiveServer, curator_of, tensors
from records import quick_fit

from pacpredict.exceptions import InvalidQuery
from pacpredict.serving.binary_tensors import BinaryPart, decode, encode, split_body
from pacpredict.serving.labels import Labels, column_datatype
from pacpredict.serving.tensors import DATATYPES as PROTOCOL
from pacpredict.serving.tensors import read_head, read_json_values
from pacpredict.tables.classes import Classes
from pacpredict.tables.column import Column
from pacpredict.training.pool import Pool


def test_health(server):
    """A server that works is live and ready, and says so in both fields at both places."""
    for path in ("/v2/health/live", "/v2/health/ready"):
        reply = server.http.get(path)
        assert (reply.status_code, reply.json()) == (200, {"live": True, "ready": True})


def test_server_metadata(server):
    """The server tells its name and that it takes binary tensors."""
    metadata = server.http.get("/v2").json()
    assert metadata["name"] == "pacpredict"
    assert metadata["extensions"] == ["binary_tensor_data"]


@pytest.mark.parametrize("path", ["/v2/models/mixed", "/v2/models/mixed/versions/1"])
def test_model_metadata(server, path):
    """The inputs are the columns with their datatypes, the output is the label."""
    metadata = server.http.get(path).json()
    assert metadata["name"] == "mixed"
    assert metadata["versions"] == ["1"]
    assert {each["name"]: each["datatype"] for each in metadata["inputs"]} == {**DATATYPES, "age": "FP64"}
    assert all(each["shape"] == [-1] for each in metadata["inputs"])
    assert metadata["outputs"] == [{"name": "label", "datatype": "BYTES", "shape": [-1]}]
    assert server.http.get(f"{path}/ready").status_code == 200


def test_answer(server, fitted, rows):
    """An answer has a label, a number in the history and a charge for each row, and nothing else of the models."""
    before = server.n_released
    reply = server.infer(tensors(rows[:5])).json()
    assert reply.keys() == {"model_name", "model_version", "parameters", "outputs"}
    assert (reply["model_name"], reply["model_version"]) == ("mixed", "1")
    (output,) = reply["outputs"]
    assert output.keys() == {"name", "datatype", "shape", "data"}
    assert (output["name"], output["datatype"], output["shape"]) == ("label", "BYTES", [5])
    assert set(output["data"]) <= {"a", "b"}
    assert reply["parameters"].keys() == {"sequence", "charge_nats"}
    assert reply["parameters"]["sequence"] == list(range(before + 1, before + 6))
    assert set(reply["parameters"]["charge_nats"]) <= {0.0, fitted.recipe.budget.step}


def test_shapes_and_nesting(server, rows):
    """A column may be [n] or [n, 1], its data flat or nested: it is the same query."""
    expected = server.infer(tensors(rows[:4])).json()
    columns = tensors(rows[:4])
    for tensor in columns[::2]:
        tensor.update(shape=[4, 1])
    columns[0]["data"] = [[value] for value in columns[0]["data"]]
    again = server.infer(columns).json()
    assert again["outputs"] == expected["outputs"]
    assert again["parameters"]["sequence"] == expected["parameters"]["sequence"]
    assert again["parameters"]["charge_nats"] == [0.0] * 4


def test_other_datatypes(server, rows):
    """A value that means the same in another datatype is the same query."""
    row = next(row for row in rows if None not in row.values())
    first = server.infer(tensors([row])).json()
    spelled = {**row, "age": str(row["age"]), "married": int(row["married"])}
    datatypes = {**DATATYPES, "age": "BYTES", "married": "UINT8"}
    again = server.infer(tensors([spelled], datatypes)).json()
    assert again["parameters"] == {"sequence": first["parameters"]["sequence"], "charge_nats": [0.0]}


@pytest.mark.parametrize("path", ["/v2/models/other/infer", "/v2/models/mixed/versions/2/infer"])
def test_unknown_models(server, rows, path):
    """Another model or version is not found, and nothing is charged."""
    before = server.n_released
    reply = server.http.post(path, json={"inputs": tensors(rows[-3:])})
    assert reply.status_code == 404
    assert reply.json()["code"] == "unknown-model"
    assert server.n_released == before


def test_version_in_the_path(server, rows):
    """The only version may be named."""
    assert (
        server.http.post("/v2/models/mixed/versions/1/infer", json={"inputs": tensors(rows[:1])}).status_code
        == 200
    )


@pytest.mark.parametrize(("path", "method", "status"), [("/v3", "GET", 404), ("/privacy", "POST", 405)])
def test_other_routes(server, path, method, status):
    """What is not there is refused in the same form as everything else."""
    reply = server.http.request(method, path)
    assert reply.status_code == status
    assert reply.json().keys() == {"error", "code"}


@pytest.fixture(scope="module")
def matrix_server():
    """A server of a table of numbers without names, with integers as labels."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(100, 3))
    pool = Pool.of(table, (table[:, 0] + rng.normal(size=100) > 0).astype(int) * 7)
    with LiveServer(curator_of(quick_fit(pool))) as running:
        yield running


def test_matrix(matrix_server):
    """A table of numbers may come as one matrix of any datatype, and is the same query as its columns."""
    values = [[0.5, 1.0, -2.0], [1.5, 2.0, 3.0]]
    columns = [
        {"name": f"x{j}", "datatype": "FP64", "shape": [2], "data": [row[j] for row in values]}
        for j in range(3)
    ]
    first = matrix_server.infer(columns).json()
    assert first["outputs"][0]["datatype"] == "INT64"
    assert set(first["outputs"][0]["data"]) <= {0, 7}
    for datatype in ("FP64", "FP32", "FP16"):
        for data in (values, [*values[0], *values[1]]):
            matrix = [{"name": "any", "datatype": datatype, "shape": [2, 3], "data": data}]
            again = matrix_server.infer(matrix).json()
            assert again["outputs"] == first["outputs"]
            assert again["parameters"]["sequence"] == first["parameters"]["sequence"]


@pytest.mark.parametrize(
    ("shape", "data"),
    [
        ([2, 2], [[1, 2], [3, 4]]),
        ([6], [1, 2, 3, 4, 5, 6]),
        ([1, 3], [["a", "b", "c"]]),
    ],
)
def test_wrong_matrices(matrix_server, shape, data):
    """A matrix must have the columns of the table, as numbers."""
    before = matrix_server.n_released
    reply = matrix_server.infer([{"name": "any", "datatype": "FP64", "shape": shape, "data": data}])
    assert reply.status_code == 400
    assert matrix_server.n_released == before


def test_no_matrix_for_other_tables(server):
    """Texts have no matrix; the error names the columns."""
    reply = server.infer([{"name": "any", "datatype": "FP64", "shape": [1, 6], "data": [0] * 6}])
    assert reply.status_code == 400
    assert "'married'" in reply.json()["error"]


WRONG = {
    "inputs are no list": {"inputs": {}},
    "no inputs": {"inputs": []},
    "inputs that are null": {"inputs": None},
    "a tensor that is no object": {"inputs": [3]},
    "no name": {"inputs": [{"datatype": "FP64", "shape": [1], "data": [1]}]},
    "an id that is a number": {"id": 7},
    "an id that is too long": {"id": "x" * 1001},
    "parameters that are a list": {"parameters": []},
    "partial that is a text": {"parameters": {"partial": "yes"}},
    "an output that there is not": {"outputs": [{"name": "scores"}]},
    "two outputs": {"outputs": [{"name": "label"}, {"name": "label"}]},
    "outputs that are texts": {"outputs": ["label"]},
}


@pytest.mark.parametrize("fields", WRONG.values(), ids=WRONG)
def test_wrong_requests(server, rows, fields):
    """What is not a request is refused with words and a code, and not charged."""
    before = server.n_released
    reply = server.http.post("/v2/models/mixed/infer", json={"inputs": tensors(rows[-1:])} | fields)
    assert reply.status_code == 400
    assert reply.json()["code"] == "invalid-request"
    assert len(reply.json()["error"]) > 10
    assert server.n_released == before


WRONG_TENSORS = {
    "an unknown datatype": {"datatype": "FP8"},
    "a shape that is a number": {"shape": 1},
    "no dimensions": {"shape": []},
    "three dimensions": {"shape": [1, 1, 1]},
    "a negative length": {"shape": [-1]},
    "a length that is true": {"shape": [True]},
    "more values than the shape says": {"data": [1, 2]},
    "fewer values than the shape says": {"shape": [10**18]},
    "a row of another width": {"shape": [1, 1], "data": [[1, 2]]},
    "a column with two values a row": {"shape": [1, 2], "data": [[1, 2]]},
    "data that is no list": {"data": 39},
    "a nested value": {"data": [[39]]},
    "a text as a number": {"data": ["39"]},
    "a fraction as an integer": {"data": [39.5]},
    "an integer out of range": {"datatype": "INT8", "data": [128]},
    "a negative unsigned integer": {"datatype": "UINT32", "data": [-1]},
    "a number as a text": {"datatype": "BYTES", "data": [39]},
    "a number as a boolean": {"datatype": "BOOL", "data": [1]},
    "a number beyond its datatype": {"datatype": "FP32", "data": [1e300]},
    "an integer beyond 64 bits": {"data": [10**30]},
    "both data and bytes": {"parameters": {"binary_data_size": 8}},
    "an unknown name": {"name": "ages"},
    "the name of another tensor": {"name": "hours"},
}


@pytest.mark.parametrize("fields", WRONG_TENSORS.values(), ids=WRONG_TENSORS)
def test_wrong_tensors(server, rows, fields):
    """A tensor that contradicts itself or the schema is refused, and not charged."""
    before = server.n_released
    columns = tensors(rows[-1:])
    columns[0] |= fields
    reply = server.infer(columns)
    assert reply.status_code == 400, reply.text
    assert server.n_released == before


def test_zero_rows(server):
    """No rows are no query."""
    columns = [{"name": name, "datatype": kind, "shape": [0], "data": []} for name, kind in DATATYPES.items()]
    assert server.infer(columns).status_code == 400


@pytest.mark.parametrize(
    ("column", "datatype"),
    [
        (Column("x", "number"), "FP64"),
        (Column("x", "boolean"), "BOOL"),
        (Column("x", "text"), "BYTES"),
        (Column("x", "category", ("a", "b")), "BYTES"),
        (Column("x", "category", (1, 2)), "BYTES"),
        (Column("x", "category", (False, True), is_declared=True), "BYTES"),
        (Column("x", "date"), "BYTES"),
    ],
)
def test_column_datatypes(column, datatype):
    """Metadata names a datatype that follows from the kind of a column, whatever its categories are."""
    assert column_datatype(column) == datatype


@pytest.mark.parametrize(
    ("labels", "datatype"),
    [
        (("a", "b"), "BYTES"),
        ((0, 1), "INT64"),
        ((0, 2**63), "BYTES"),
        ((0.5, 1.5), "FP64"),
        ((False, True), "BOOL"),
        (("a", 1), "BYTES"),
        (((1, 2), (3, 4)), "BYTES"),
    ],
)
def test_label_datatypes(labels, datatype):
    """Labels of one plain type keep it, others are answered as text."""
    assert Labels(Classes(labels)).datatype == datatype


@pytest.mark.parametrize(
    "labels", [(0, 1), (0.5, 1.5), (False, True), ("ja", "né\0"), (("p", 1), ("q", 2)), (0, 2**70)], ids=str
)
def test_labels_of_every_type(rows, labels):
    """Whatever labels are, both protocols and both forms of tensors give the same ones."""
    fitted = quick_fit()
    fitted.ensemble.classes = Classes(labels)
    with LiveServer(curator_of(fitted)) as server:
        reply = server.infer(tensors(rows[:9])).json()
        (output,) = reply["outputs"]
        scored = server.http.post("/invocations", json={"dataframe_records": rows[:9]}).json()
        binary = server.infer(tensors(rows[:9]), parameters={"binary_data_output": True})
    texts = list(map(str, labels))
    assert set(output["data"]) == set(labels if output["datatype"] != "BYTES" else texts)
    assert list(map(str, scored["predictions"])) == list(map(str, output["data"]))
    length = int(binary.headers["Inference-Header-Content-Length"])
    head = read_head(json.loads(binary.content[:length])["outputs"][0])
    assert list(decode(head, binary.content[length:])) == output["data"]


@pytest.mark.parametrize("datatype", PROTOCOL)
def test_bytes_and_json_agree(datatype):
    """The same values of any datatype are read alike from JSON and from bytes."""
    values = (
        ["", "né", "x" * 300]
        if datatype == "BYTES"
        else [True, False, True]
        if datatype == "BOOL"
        else [0, 1, 100]
    )
    head = read_head({"name": "x", "datatype": datatype, "shape": [3]})
    read = decode(head, encode(datatype, values))
    assert list(read) == list(read_json_values(head, values)) == values


@pytest.mark.parametrize("length", ["-1", "", "1e3", "0x10", "²", "9" * 30, "100"])
def test_wrong_header_lengths(length):
    """The length of the JSON is a number of bytes that the body has."""
    with pytest.raises(InvalidQuery):
        split_body(b"{}", length)


@pytest.mark.parametrize("size", [-1, 9, True, "8", 1.0, None])
def test_wrong_binary_sizes(size):
    """A tensor takes no more bytes than there are, and a number of them."""
    with pytest.raises(InvalidQuery):
        BinaryPart(b"12345678").take(size)


@pytest.mark.parametrize(
    ("datatype", "data"),
    [
        ("FP64", b"1234567"),
        ("BOOL", b"\2"),
        ("BYTES", b"\1\0\0"),
        ("BYTES", b"\2\0\0\0x"),
        ("BYTES", b"\1\0\0\0\xff"),
        ("BYTES", b"\xff\xff\xff\xff"),
        ("BYTES", b"\0\0\0\0\0\0\0\0"),
        ("BYTES", b""),
    ],
)
def test_wrong_bytes(datatype, data):
    """Bytes that do not fit the shape, or are no text or boolean, are refused."""
    with pytest.raises(InvalidQuery):
        decode(read_head({"name": "x", "datatype": datatype, "shape": [1]}), data)


def test_bytes_that_belong_to_nobody(server, rows):
    """Bytes after the last tensor are refused: something is wrong with the lengths."""
    body = json.dumps({"inputs": tensors(rows[-1:])}).encode()
    headers = {"Inference-Header-Content-Length": str(len(body))}
    before = server.n_released
    assert (
        server.http.post("/v2/models/mixed/infer", content=body + b"\0", headers=headers).status_code == 400
    )
    assert server.n_released == before


def test_missing_values(server):
    """NaN in bytes, null in JSON and an absent value of a frame are the same missing value."""
    row = {"age": 30, "hours": None, "job": None, "married": None, "grade": "low", "note": None}
    first = server.infer(tensors([row])).json()
    columns = tensors([row])
    columns[1] |= {"parameters": {"binary_data_size": 8}}
    del columns[1]["data"]
    head = json.dumps({"inputs": columns}).encode()
    reply = server.http.post(
        "/v2/models/mixed/infer",
        content=head + np.array([np.nan]).tobytes(),
        headers={"Inference-Header-Content-Length": str(len(head))},
    )
    assert reply.json()["parameters"] == {"sequence": first["parameters"]["sequence"], "charge_nats": [0.0]}
    frame = pd.DataFrame([row]).to_dict("split")
    frame["data"] = [[None if value != value else value for value in each] for each in frame["data"]]
    scored = server.http.post("/invocations", json={"dataframe_split": frame}).json()
    assert scored["parameters"] == reply.json()["parameters"]
