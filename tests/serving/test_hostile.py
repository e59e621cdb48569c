"""Bodies and connections as an enemy sends them: refused with a 4xx, not charged, and the server goes on."""

import json
import math
import socket
import time
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from live_server import LiveServer, curator_of, tensors

from pacpredict.serving.binary_tensors import encode
from pacpredict.serving.limits import Limits

relaxed = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**25), 10**25),
    st.floats(allow_nan=False),
    st.text(max_size=8),
    st.sampled_from(["FP64", "BYTES", "INT64", "label", "age", "data", "clerk"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def row():
    return {"age": 39, "hours": 40.0, "job": "clerk", "married": True, "grade": "low", "note": "late"}


def check_refused(server, reply, before):
    assert 400 <= reply.status_code < 500, reply.text
    assert reply.json()["error"]
    assert server.n_released == before


def post(server, content, **headers):
    return server.http.post("/v2/models/mixed/infer", content=content, headers=headers)


PLACES = [
    *(("tensor", field) for field in ("name", "datatype", "shape", "data", "parameters")),
    *(("request", field) for field in ("inputs", "outputs", "parameters", "id")),
]


@relaxed
@given(st.sampled_from(PLACES), values, st.integers(0, 5))
def test_any_value_anywhere(server, row, place, value, which):
    """Whatever JSON stands in a field of a request, the reply is an answer or a refusal, never a failure."""
    owner, field = place
    request = {"inputs": tensors([row])}
    (request["inputs"][which] if owner == "tensor" else request)[field] = value
    body = json.dumps(request).encode()
    before = server.n_released
    reply = post(server, body)
    assert reply.status_code in {200, 400, 409}, reply.text
    if reply.status_code != 200:
        check_refused(server, reply, before)


@relaxed
@given(st.sampled_from(["dataframe_split", "dataframe_records", "instances", "inputs"]), values)
def test_any_json_is_scored_or_refused(server, form, value):
    """Whatever JSON comes to the scoring protocol, in any of its forms, is answered or refused."""
    reply = server.http.post("/invocations", content=json.dumps({form: value}).encode())
    assert reply.status_code in {200, 400}, reply.text


@relaxed
@given(
    st.sampled_from([("/v2/models/mixed/infer", ""), ("/invocations", ""), ("/invocations", "text/csv")]),
    st.binary(max_size=300),
)
def test_any_bytes(server, where, content):
    """Bytes that mean nothing are refused by both protocols, as JSON and as CSV."""
    before = server.n_released
    path, content_type = where
    reply = server.http.post(path, content=content, headers={"content-type": content_type})
    check_refused(server, reply, before)


def binary_request(row):
    """Return a request with all inputs as bytes: its JSON, and the bytes behind it."""
    head, data = [], b""
    for tensor in tensors([row]):
        part = encode(tensor["datatype"], tensor.pop("data"))
        head.append({**tensor, "parameters": {"binary_data_size": len(part)}})
        data += part
    return json.dumps({"inputs": head}).encode(), data


@relaxed
@given(st.data())
def test_damaged_binary_bodies(server, row, data):
    """A binary body that was cut, extended, changed, or has another length in its header: answered or refused."""
    head, tail = binary_request(row)
    body, length = bytearray(head + tail), len(head)
    kind = data.draw(st.sampled_from(["cut", "extended", "changed", "length"]))
    if kind == "cut":
        del body[data.draw(st.integers(0, len(body) - 1)) :]
    elif kind == "extended":
        body += data.draw(st.binary(min_size=1, max_size=20))
    elif kind == "changed":
        for _ in range(data.draw(st.integers(1, 5))):
            body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    else:
        length += data.draw(st.integers(-length, 100).filter(bool))
    before = server.n_released
    reply = post(server, bytes(body), **{"Inference-Header-Content-Length": str(length)})
    if kind == "changed" and reply.status_code == 200:  # another text or number, or the same meaning
        return
    check_refused(server, reply, before)


WRONG_JSON = {
    "nothing": b"",
    "cut off": b'{"inputs": [{"name": "age", ',
    "no object": b"[1, 2]",
    "NaN": b'{"inputs": [{"name": "age", "datatype": "FP64", "shape": [1], "data": [NaN]}]}',
    "infinity": b'{"inputs": [{"name": "age", "datatype": "FP64", "shape": [1], "data": [1e999]}]}',
    "deep lists": b'{"inputs": ' + b"[" * 100_000,
    "deep lists that end": b'{"inputs": ' + b"[" * 900 + b"]" * 900 + b"}",
    "deep objects": b'{"a":' * 50_000,
    "bad UTF-8": b'{"inputs": "\xff"}',
    "half a surrogate pair": b'{"inputs": "\\ud800"}',
    "a huge integer": b'{"inputs": ' + b"9" * 100_000 + b"}",
    "something behind": b"{} {}",
}


@pytest.mark.parametrize("content", WRONG_JSON.values(), ids=WRONG_JSON)
def test_wrong_json(server, content):
    """What is no JSON, or more than JSON, is refused by both protocols."""
    before = server.n_released
    check_refused(server, post(server, content), before)
    check_refused(server, server.http.post("/invocations", content=content), before)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_python_floats_that_json_lacks(server, row, number):
    """What Python's json writes for a float that is no number is refused with a word about null."""
    body = json.dumps({"dataframe_records": [{**row, "age": number}]}).encode()
    reply = server.http.post("/invocations", content=body)
    assert reply.status_code == 400
    assert reply.json()["error"].endswith("a missing value is null")
    assert ("JSON has no NaN" if math.isnan(number) else "JSON has no Infinity") in reply.json()["error"]
    text = json.dumps({"dataframe_records": [{**row, "job": "NaN"}]})[:-1].encode()
    assert "null" not in server.http.post("/invocations", content=text).json()["error"]


@pytest.fixture(scope="module")
def small_server(fitted):
    """A server that takes little, and does not wait long for it."""
    with LiveServer(
        curator_of(fitted), limits=Limits(body_bytes=10_000, body_seconds=0.5, rows=3)
    ) as running:
        yield running


def test_too_many_bytes(small_server):
    """A body beyond the limit is refused by its announced length, before it was sent."""
    reply = post(small_server, b" " * 10_001)
    assert (reply.status_code, reply.json()["code"]) == (413, "body-too-large")


def test_too_many_bytes_in_chunks(small_server):
    """A body that does not say how long it is, is refused as soon as it is too long."""
    reply = post(small_server, (b" " * 1000 for _ in range(11)))
    assert (reply.status_code, reply.json()["code"]) == (413, "body-too-large")


def test_chunks(server, row):
    """A body in chunks is a body."""
    body = json.dumps({"inputs": tensors([row])}).encode()
    assert post(server, (body[i : i + 7] for i in range(0, len(body), 7))).status_code == 200


def test_too_many_rows(small_server, row):
    """More rows than the limit are refused in every form, and not charged."""
    bodies = [{"instances": [row] * 4}, {"inputs": {name: [value] * 4 for name, value in row.items()}}]
    for body in bodies:
        reply = small_server.http.post("/invocations", json=body)
        assert reply.status_code == 400
        assert "at most 3" in reply.json()["error"]
    assert small_server.infer(tensors([row] * 4)).status_code == 400
    assert small_server.n_released == 0


def test_too_many_bodies(fitted, row):
    """Large bodies that the server has no room for are refused; small ones are answered, also then."""
    body = json.dumps({"inputs": tensors([row])}).encode()
    limits = Limits(held_bodies=0, small_bytes=len(body) + 100)
    with LiveServer(curator_of(fitted), limits=limits) as server:
        for _ in range(3):
            reply = post(server, body + b" " * 101)
            assert (reply.status_code, reply.json()["code"]) == (503, "busy")
            assert post(server, body).status_code == 200


@pytest.mark.parametrize("encoding", ["gzip", "br", "nonsense"])
def test_compressed_bodies(server, encoding):
    """A compressed body is not unpacked: a small one could become a huge one."""
    reply = post(server, b"{}", **{"Content-Encoding": encoding})
    assert (reply.status_code, reply.json()["code"]) == (415, "unsupported-encoding")


def talk(server, sent, *, and_close=False):
    """Send raw bytes and return all that comes back until the server closes, or until nothing more comes.

    A server that has read enough may close before all is sent: then sending, closing and receiving fail in turn.
    """
    received = b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=3) as connection:
        with suppress(OSError):
            connection.sendall(sent)
            if and_close:
                connection.shutdown(socket.SHUT_WR)
        with suppress(OSError):
            while part := connection.recv(65536):
                received += part
    return received


POST = b"POST /v2/models/mixed/infer HTTP/1.1\r\nHost: localhost\r\n"


def test_slow_bodies(small_server):
    """Whoever does not send the body that was announced is told so and let go."""
    began = time.monotonic()
    reply = talk(small_server, POST + b"Content-Length: 100\r\n\r\n{")
    assert b" 408 " in reply.split(b"\r\n")[0]
    assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    "sent",
    [
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
        POST + b"Content-Length: -1\r\n\r\n",
        POST + b"Content-Length: nine\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n",
        POST + b"X: " + b"y" * 200_000 + b"\r\n\r\n",
        POST + b"Content-Length: 50\r\n\r\n{",
    ],
)
def test_broken_connections(small_server, sent):
    """After something that is no HTTP, or half a request, the server answers the next one."""
    reply = talk(small_server, sent, and_close=True)
    assert b" 500 " not in reply.split(b"\r\n")[0]
    assert small_server.http.get("/v2/health/ready").status_code == 200
    assert small_server.n_released == 0


def test_a_client_that_does_not_wait(fresh_server, row):
    """An answer that nobody waits for any more is on record, and the next to ask gets it."""
    body = json.dumps({"inputs": tensors([row])}).encode()
    with socket.create_connection(("127.0.0.1", fresh_server.port)) as connection:
        connection.sendall(POST + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    deadline = time.monotonic() + 30
    while not fresh_server.n_released:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert fresh_server.infer(tensors([row])).json()["parameters"]["charge_nats"] == [0.0]


def test_models_that_fail(fitted, row):
    """If models cannot vote on somebody's row, that request fails without details, and others are answered."""
    curator = curator_of(fitted)
    votes = curator.ensemble.votes

    def fail_on_old_people(rows, n_threads):
        if (rows.numbers[:, 0] > 100).any():
            raise ZeroDivisionError("the secret is 3")
        return votes(rows, n_threads)

    curator.ensemble = type(
        "Failing", (), {**vars(curator.ensemble), "votes": staticmethod(fail_on_old_people)}
    )
    curator.ensemble.labels = fitted.ensemble.labels
    with LiveServer(curator) as server:
        reply = server.infer(tensors([{**row, "age": 101}]))
        assert (reply.status_code, reply.json()["code"]) == (500, "internal-error")
        assert "secret" not in reply.text
        assert server.infer(tensors([row])).status_code == 200
        assert server.n_released == 1


def test_too_many_waiting(fitted, row):
    """When too many requests wait, the next is told to come again; those before it are answered."""
    curator = curator_of(fitted)
    with LiveServer(curator, limits=Limits(waiting=0)) as server:
        reply = server.infer(tensors([row]))
        assert (reply.status_code, reply.json()["code"]) == (503, "busy")
        assert reply.headers["retry-after"] == "1"
        assert server.n_released == 0
