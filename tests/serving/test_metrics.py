"""What operators see: figures that are right, and logs that say who and when, but not what."""

import json
import logging
import re
import time
from contextlib import contextmanager
from itertools import pairwise

import pytest
from live_server import LiveServer, curator_of, plain_rows, tensors
from prometheus_client.parser import text_string_to_metric_families
from records import mixed_table, quick_fit, recipe

from pacpredict.serving.logs import AsJson
from pacpredict.serving.metrics import Counted
from pacpredict.serving.responses import REFUSALS

STEP = 2.0**-6


def figures(server):
    """All samples that /metrics has now."""
    text = server.http.get("/metrics").text
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(sample.name, *sorted(sample.labels.values())): sample.value for sample in samples}


def test_figures(fitted, rows):
    """Spending, answers, refusals, requests and times are counted as they happen."""
    route = "/v2/models/{name}/infer"
    with LiveServer(curator_of(fitted), metrics=Counted()) as server:
        for asked in (rows[:10], rows[5:15], [{**rows[0], "married": None, "hours": "x"}]):
            server.infer(tensors(asked))
        server.http.get("/nothing")
        server.http.get("/privacy", headers={"host": "elsewhere.example.com"})
        seen = figures(server)
        privacy = server.http.get("/privacy").json()
        spent = server.spent
    assert seen["pacpredict_spent_nats",] == privacy["spent_nats"] > 0
    assert seen["pacpredict_remaining_nats",] == privacy["total_nats"] - privacy["spent_nats"]
    assert seen["pacpredict_answers_total", "charged"] == spent
    assert seen["pacpredict_answers_total", "free"] == 15 - spent
    assert seen["pacpredict_repeated_answers_total",] == 5
    assert seen["pacpredict_requests_total", route, "200"] == 2
    assert seen["pacpredict_requests_total", route, "400"] == 1
    assert seen["pacpredict_requests_total", "404", "none"] == 1
    refused = {name[1]: value for name, value in seen.items() if name[0] == "pacpredict_refusals_total"}
    counted = {code: n for code, n in refused.items() if n}
    assert counted == {"invalid-request": 1, "no-such-route": 1, "unknown-host": 1}
    # Those that have not happened are there as well, so that the first one is seen to have.
    assert refused.keys() == {"no-such-route", *(refusal.code for refusal in REFUSALS.values())}
    assert seen["pacpredict_requests_in_flight",] == 1  # this one
    assert seen["pacpredict_request_seconds_count", route] == 3
    assert seen["pacpredict_commit_seconds_count",] == 2
    assert seen["pacpredict_ledger_up",] == seen["pacpredict_ready",] == 1
    assert not any(name[0].endswith("_created") for name in seen)


def test_no_figures(fitted):
    """Whoever wants no metrics has no such route."""
    with LiveServer(curator_of(fitted)) as server:
        assert server.http.get("/metrics").status_code == 404


class Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.setFormatter(AsJson())
        self.said = []

    def emit(self, record):
        self.said.append(json.loads(self.format(record)))


@contextmanager
def listening():
    """Keep what is logged; begun after the server, which says where its logs go."""
    logger, lines = logging.getLogger("pacpredict.serving"), Lines()
    logger.addHandler(lines)
    yield lines.said
    logger.removeHandler(lines)


def test_json_lines(fitted, rows):
    """Each line is an object; a request has an id, its own or the one that a proxy gave, in log and response."""
    with LiveServer(curator_of(fitted), ids=True) as server, listening() as lines:
        given = server.http.get("/v2", headers={"x-request-id": "trace-1.a"})
        strange = server.http.get("/v2", headers={"x-request-id": 'x"} {'})
        server.infer(tensors(rows[:1]), id="my own id")
        deadline = time.monotonic() + 10
        while len(lines) < 3 and time.monotonic() < deadline:  # a line is written when the answer has left
            time.sleep(0.01)
    assert given.headers["x-request-id"] == "trace-1.a"
    assert re.fullmatch("[0-9a-f]{16}", strange.headers["x-request-id"])
    assert [line["request"] for line in lines[:2]] == ["trace-1.a", strange.headers["x-request-id"]]
    assert {"time", "level", "message", "method", "path", "status", "milliseconds"} <= lines[2].keys()
    assert "my own id" not in json.dumps(lines)


@pytest.fixture(scope="module")
def spent_fit():
    """A deployment that soon has nothing left, and then answers from the belief."""
    return quick_fit(how=recipe(n_models=4, step=STEP, total=STEP, when_exhausted="belief"))


def watch(fitted, queries, secret):
    """Return all that an operator sees, query by query, but for times."""
    seen = []
    server = LiveServer(curator_of(fitted, secret=secret, seed=7), metrics=Counted(), ids=True)
    with server, listening() as lines:
        for query in queries:
            server.infer(tensors([query]))
            seen.append({name: value for name, value in figures(server).items() if "_seconds" not in name[0]})
    said = [{**line, "request": 0, "time": 0, "milliseconds": 0, "message": 0} for line in lines]
    return seen, [line for line in said if line["path"] != "/metrics"]


def test_operators_see_nothing_of_the_secret(spent_fit):
    """Figures and logs of deployments that differ in their secret are the same; so they are for all queries once the
    budget is spent, whether the models agree on them or not."""
    queries = plain_rows(mixed_table(60, seed=9))
    curator = curator_of(spent_fit)
    votes = curator.ensemble.votes(curator.ensemble.schema.rows(mixed_table(60, seed=9)))
    differ = (votes != votes[:, :1]).any(axis=1)
    chosen = [i for i in range(60) if differ[i]][:3] + [i for i in range(60) if not differ[i]][:2]
    assert len(chosen) == 5
    (first, said), *others = (watch(spent_fit, [queries[i] for i in chosen], secret) for secret in range(4))
    assert all((seen, log) == (first, said) for seen, log in others)
    steps = [{name: now[name] - before.get(name, 0) for name in now} for before, now in pairwise(first)]
    assert steps[0] == steps[1] == steps[2] == steps[3]
    assert len({json.dumps(line) for line in said}) == 1
