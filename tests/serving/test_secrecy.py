"""Two deployments that differ only in their secret, with the same noise: all that the server says is compared."""

import json
import logging
import re
import statistics
import time
from itertools import product

import numpy as np
import pytest
from live_server import LiveServer, curator_of, plain_rows, tensors
from records import mixed_table, quick_fit, recipe

STEP, TOTAL = 2.0**-6, 0.25


@pytest.fixture(scope="module")
def fitted():
    return quick_fit(how=recipe(n_models=4, step=STEP, total=TOTAL))


@pytest.fixture(scope="module")
def queries():
    return plain_rows(mixed_table(120, seed=9))


def requests_of(queries):
    """Return a walk through everything: answers by every protocol, repeats, ids, errors of all kinds, exhaustion."""
    infer, scoring = "/v2/models/mixed/infer", "/invocations"
    walk = [
        ("GET", path, None)
        for path in ("/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/mixed", "/ping")
    ]
    walk += [("POST", infer, {"inputs": tensors([row])}) for row in queries[:20]]
    walk += [("POST", infer, {"inputs": tensors(queries[10:30]), "id": "x"}), ("GET", "/privacy", None)]
    walk += [("POST", infer, {"inputs": tensors(queries[:3]), "id": "x"})]
    walk += [("POST", infer, {"inputs": tensors([{**queries[0], "job": "pirate"}])})]
    walk += [("POST", infer, {"inputs": []}), ("POST", infer, None), ("GET", "/nothing", None)]
    walk += [("POST", scoring, {"instances": queries[:40]}), ("POST", scoring, {"instances": [3]})]
    walk += [("POST", scoring, {"instances": queries, "params": {"partial": True}})]
    walk += [("POST", scoring, {"instances": queries}), ("GET", "/privacy", None)]
    pages = ("promise", "live", "form", "planner", "keys", "interface")
    walk += [("GET", path, None) for path in ("/", *(f"/page/{name}" for name in pages), "/openapi.json")]
    return walk


class Lines(logging.Handler):
    """Keeps what the server logs, without times."""

    def __init__(self):
        super().__init__()
        self.said = []

    def emit(self, record):
        self.said.append(
            re.sub(r"[\d.]+ ms", "? ms", f"{record.name} {record.levelname} {record.getMessage()}")
        )


def walk_through(fitted, queries, secret):
    """Return what the server says to a fixed sequence of requests: lines, headers, bodies, and its log."""
    said, lines = [], Lines()
    with LiveServer(curator_of(fitted, secret=secret, seed=7)) as server:
        loggers = [logging.getLogger(name) for name in ("pacpredict", "pacpredict.serving", "uvicorn")]
        for logger in loggers:
            logger.addHandler(lines)
        for method, path, body in requests_of(queries):
            reply = server.http.request(method, path, json=body)
            headers = {name: value for name, value in reply.headers.items() if name != "date"}
            said.append((reply.status_code, headers, content_of(reply)))
        for logger in loggers:
            logger.removeHandler(lines)
    return said, lines.said


def content_of(reply):
    is_json = reply.headers.get("content-type") == "application/json"
    return reply.json() if is_json else reply.text


def take_labels(content):
    """Remove the labels from a reply and return them."""
    if isinstance(content, dict) and "predictions" in content:
        return content.pop("predictions")
    if isinstance(content, dict) and "outputs" in content:
        return content["outputs"][0].pop("data", [])
    return []


def test_only_releases_differ(fitted, queries):
    """Status, headers, everything in bodies but the labels, errors, the guarantee and the log are the same bytes."""
    walks = [walk_through(fitted, queries, secret) for secret in range(4)]
    labels = [[take_labels(content) for _, _, content in said] for said, _ in walks]
    (first_said, first_log), *others = walks
    assert {200, 400, 403, 404, 409} <= {status for status, _, _ in first_said}
    assert len(first_log) >= len(first_said) - 1  # the last line may come after the reply
    assert any(labels[0] != other for other in labels[1:])
    for said, log in others:
        assert json.dumps(said) == json.dumps(first_said)
        assert log[: len(first_said) - 1] == first_log[: len(first_said) - 1]


def test_errors_quote_no_training_data(fitted, queries):
    """Whatever is wrong with a value, the refusal names its column and no other value that the training data had."""
    schema = fitted.pool.schema
    known = {str(category) for column in schema.columns for category in column.categories}
    assert {"clerk", "low"} <= known
    with LiveServer(curator_of(fitted)) as server:
        for name, value in product(queries[0], ["pirate", 99.5, None, [], "", True]):
            for row in ({**queries[0], name: value}, {**queries[0], name: value, f"{name} 2": value}):
                reply = server.http.post("/invocations", json={"dataframe_records": [row]})
                if reply.status_code != 200:
                    assert reply.status_code == 400
                    assert not any(f"'{category}'" in reply.text for category in known)
        assert (
            "pirate"
            in server.http.post(
                "/invocations", json={"dataframe_records": [{**queries[0], "age": "pirate"}]}
            ).text
        )


def test_time_says_nothing_of_the_secret(fitted, queries):
    """The same requests to all four deployments, interleaved, take the same time: no secret stands out."""
    n_rounds = 40
    times = {secret: [] for secret in range(4)}
    servers = {secret: LiveServer(curator_of(fitted, secret=secret, seed=7)) for secret in times}
    for server in servers.values():
        server.__enter__()
    try:
        for row in queries[:n_rounds]:
            for secret, server in servers.items():
                began = time.perf_counter()
                server.infer(tensors([row]))
                times[secret].append(time.perf_counter() - began)
    finally:
        for server in servers.values():
            server.__exit__()
    logs = {secret: np.log(taken) for secret, taken in times.items()}
    everything = np.concatenate(list(logs.values()))
    # Medians of 40 noisy times scatter by a fraction of their spread; a secret that costs time of its own, say its
    # model being asked twice, would shift its median by far more than the spread.
    spread = np.subtract(*np.percentile(everything, [90, 10]))
    for taken in logs.values():
        assert abs(np.median(taken) - np.median(everything)) < spread
    assert statistics.median(times[0]) > 0


def test_nothing_shows_the_secret(fitted):
    """No repr of what a server is made of tells the secret's index."""
    curator = curator_of(fitted, secret=3)
    for thing in (curator, curator.session, curator.session._secret):
        assert "3" not in re.sub(r"0x[0-9a-f]+", "", repr(thing))
