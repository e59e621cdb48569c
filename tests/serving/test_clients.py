"""Clients that others wrote: tritonclient, KServe's, and curl."""

import asyncio
import json
import shutil
import subprocess
import warnings

import numpy as np
import pytest
import tritonclient.http as triton
from live_server import DATATYPES, NAME
from tritonclient.utils import InferenceServerException

DTYPES = {"INT64": np.int64, "FP64": np.float64, "BYTES": np.object_, "BOOL": np.bool_}


@pytest.fixture(scope="module")
def whole_rows(rows):
    """Rows without missing values: NumPy has none for texts and booleans."""
    return [row for row in rows if None not in row.values()]


@pytest.fixture
def triton_client(server):
    client = triton.InferenceServerClient(f"127.0.0.1:{server.port}")
    yield client
    client.close()


def arrays(rows):
    for name, datatype in DATATYPES.items():
        values = [row[name] for row in rows]
        if datatype == "BYTES":
            values = [value.encode() for value in values]
        yield name, datatype, np.array(values, dtype=DTYPES[datatype])


def triton_inputs(rows, binary):
    inputs = []
    for name, datatype, values in arrays(rows):
        tensor = triton.InferInput(name, list(values.shape), datatype)
        tensor.set_data_from_numpy(values, binary_data=binary)
        inputs.append(tensor)
    return inputs


def test_triton_looks_around(triton_client):
    """Triton's client finds the server and the model ready, and reads their metadata."""
    assert triton_client.is_server_live()
    assert triton_client.is_server_ready()
    assert triton_client.is_model_ready(NAME)
    assert triton_client.is_model_ready(NAME, "1")
    assert not triton_client.is_model_ready("other")
    assert triton_client.get_server_metadata()["name"] == "pacpredict"
    assert triton_client.get_model_metadata(NAME)["outputs"][0]["name"] == "label"
    about = {"name": NAME, "version": "1", "state": "READY", "reason": ""}
    assert triton_client.get_model_repository_index() == [about]


def test_models_are_listed(server):
    """Whoever does not know the model's name can ask for it, by KServe's path and by Triton's."""
    assert server.http.get("/v2/models").json() == {"models": [NAME]}
    assert server.http.post("/v2/repository/index", json={"ready": True}).json()[0]["name"] == NAME
    refused = server.http.post("/v2/repository/index", json={"ready": "yes"})
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid-request")


@pytest.mark.parametrize("binary_out", [True, False, None], ids=["bytes out", "JSON out", "default out"])
@pytest.mark.parametrize("binary_in", [True, False], ids=["bytes in", "JSON in"])
def test_triton_asks(server, triton_client, whole_rows, binary_in, binary_out):
    """Whether inputs and outputs go as bytes or as JSON, the same rows are one query with one answer."""
    expected = server.http.post("/invocations", json={"dataframe_records": whole_rows}).json()
    outputs = None if binary_out is None else [triton.InferRequestedOutput("label", binary_data=binary_out)]
    result = triton_client.infer(NAME, triton_inputs(whole_rows, binary_in), outputs=outputs)
    labels = [label.decode() if isinstance(label, bytes) else label for label in result.as_numpy("label")]
    assert labels == expected["predictions"]
    parameters = result.get_response()["parameters"]
    assert parameters == {
        "sequence": expected["parameters"]["sequence"],
        "charge_nats": [0.0] * len(whole_rows),
    }


def test_triton_sees_errors(server, triton_client, whole_rows):
    """An error arrives in Triton's client with its status and its text."""
    inputs = triton_inputs([{**whole_rows[0], "hours": np.inf}], binary=True)
    with pytest.raises(
        InferenceServerException, match=r"column 'hours', row 0 .*: expected a finite"
    ) as caught:
        triton_client.infer(NAME, inputs)
    assert caught.value.status() == "400"


def test_triton_sends_an_id(server, triton_client, whole_rows):
    """The id of Triton's client is the id of the request."""
    new = [{**row, "age": 91} for row in whole_rows[:3]]  # an id is noted with a new answer
    inputs = triton_inputs(new[:2], binary=True)
    assert triton_client.infer(NAME, inputs, request_id="triton-1").get_response()["id"] == "triton-1"
    with pytest.raises(InferenceServerException) as caught:
        triton_client.infer(NAME, triton_inputs(new[2:3], binary=True), request_id="triton-1")
    assert caught.value.status() == "409"


def test_triton_asks_for_what_fits(server, triton_client, whole_rows):
    """A parameter of Triton's client asks for as many rows as the budget allows."""
    result = triton_client.infer(
        NAME, triton_inputs(whole_rows[:3], binary=True), parameters={"partial": True}
    )
    assert result.get_response()["parameters"]["rows_answered"] == 3


@pytest.fixture(scope="module")
def kserve():
    """KServe's package, whose dependencies warn when they are imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import kserve as package  # noqa: PLC0415
    return package


@pytest.mark.parametrize("binary", [True, False], ids=["bytes", "JSON"])
def test_kserve_asks(server, kserve, whole_rows, binary):
    """KServe's client finds the model ready and gets the same answers, by bytes and by JSON."""
    expected = server.http.post("/invocations", json={"dataframe_records": whole_rows}).json()

    async def ask():
        client = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v2"))
        assert await client.is_server_live(server.url)
        assert await client.is_server_ready(server.url)
        assert await client.is_model_ready(server.url, NAME)
        inputs = []
        for name, datatype, values in arrays(whole_rows):
            tensor = kserve.InferInput(name, list(values.shape), datatype)
            tensor.set_data_from_numpy(values, binary_data=binary)
            inputs.append(tensor)
        request = kserve.InferRequest(NAME, inputs, parameters={"binary_data_output": binary})
        answer = await client.infer(server.url, request, model_name=NAME)
        await client.close()
        return answer

    answer = asyncio.run(ask())
    (output,) = answer.outputs
    assert [label.decode() if isinstance(label, bytes) else label for label in output.as_numpy()] == expected[
        "predictions"
    ]
    assert answer.parameters["sequence"] == expected["parameters"]["sequence"]


curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


@curl
@pytest.mark.parametrize("options", [[], ["-H", "Content-Type: application/json"], ["-H", "Content-Type:"]])
def test_curl(server, rows, options):
    """A person with curl names columns and gets labels, whatever content type curl makes of it."""
    body = json.dumps({"dataframe_records": rows[:2]})
    command = ["curl", "-s", f"{server.url}/invocations", "-d", body, *options]
    reply = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert len(reply["predictions"]) == 2


@curl
def test_curl_with_csv(server, rows):
    """A CSV file goes to the server as it is."""
    row = next(row for row in rows if None not in row.values())
    text = ",".join(row) + "\n" + ",".join(map(str, row.values())) + "\n"
    command = [
        "curl",
        "-s",
        f"{server.url}/invocations",
        "-H",
        "Content-Type: text/csv",
        "--data-binary",
        "@-",
    ]
    reply = json.loads(subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout)
    assert len(reply["predictions"]) == 1
