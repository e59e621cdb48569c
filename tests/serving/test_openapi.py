"""The description of the interface is true: routes, statuses, bodies; and what is refused costs nothing."""

import base64
import html
import itertools
import json
import re

import pandas as pd
import pytest
from artifacts import fit_noise, fit_small
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis.errors import Unsatisfiable
from live_server import LiveServer
from records import recipe
from who_may import WHO_MAY

from pacpredict.deployment import Deployment
from pacpredict.ledger.keys import Terms
from pacpredict.rows.images import ImageSchema
from pacpredict.rows.pixels import read_pixels
from pacpredict.rows.sizes import Wanted
from pacpredict.serving.access import Keyed
from pacpredict.serving.labels import Labels
from pacpredict.serving.metrics import Counted
from pacpredict.serving.openapi.examples import examples_of_queries
from pacpredict.serving.openapi.operations import ANYBODY, KEYED, OPERATIONS
from pacpredict.serving.openapi.render import _json
from pacpredict.serving.responses import REFUSALS
from pacpredict.tables.classes import Classes
from pacpredict.training.pool import Pool

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
import jsonschema_rs  # noqa: E402  # which it brings
from schemathesis import checks as to_check  # noqa: E402

CHECKS = [
    to_check.not_a_server_error,
    to_check.status_code_conformance,
    to_check.content_type_conformance,
    to_check.response_headers_conformance,
    to_check.response_schema_conformance,
]
MODES = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
# Enough to have come by each kind of value; a run is bounded.
BRIEFLY = settings(
    max_examples=12,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


class Described:
    """A server with keys, its description, and what it has been asked to do."""

    def __init__(self, deployment):
        self.key = {"Authorization": f"Bearer {deployment.keys.make(Terms('tester', 'admin'))}"}
        options = {"keyring": deployment.keys, "metrics": Counted(), "course": deployment.course}
        self.server = LiveServer(deployment.curator, access=Keyed(deployment.keys), **options)

    def __enter__(self):
        self.server.__enter__()
        self.description = self.server.http.get("/openapi.json", headers=self.key).json()
        self.schema = schemathesis.openapi.from_dict(self.description)
        return self

    def __exit__(self, *failure):
        self.server.__exit__(*failure)

    def state(self):
        return self.server.n_released, self.server.spent


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    home = tmp_path_factory.mktemp("described") / "mixed.pac"
    fit_small(home, how=recipe(step=2.0**-16))
    with Deployment.open(home) as deployment, Described(deployment) as described:
        yield described


def test_every_route_and_nothing_else(described):
    """The description has the routes of the app, each with the roles that it asks for."""
    found = {
        (method.upper(), path): operation
        for path, operations in described.description["paths"].items()
        for method, operation in operations.items()
    }
    assert found.keys() == WHO_MAY.keys() == OPERATIONS.keys()
    for route, operation in found.items():
        roles = WHO_MAY[route]
        assert operation.get("security", []) == ([] if None in roles else [{"key": []}])
        assert ("401" in operation["responses"]) == (None not in roles)
        if None not in roles:
            assert operation["description"] == f"Roles: {', '.join(sorted(roles))}."
        assert {"name": operation["tags"][0]} in described.description["tags"]
    described.schema.validate()


def test_every_refusal_is_described():
    """Whatever the server refuses with is among what some operation is said to refuse."""
    refused = {error for each in OPERATIONS.values() for error in each.refuses} | {*ANYBODY, *KEYED}
    assert {REFUSALS[error].code for error in refused} == {refusal.code for refusal in REFUSALS.values()}


def test_requests_of_all_kinds(described):
    """Whatever is sent: no failure of the server, nothing beside the description, and no charge for what is refused."""
    statuses = {}
    for result in described.schema.get_all_operations():
        operation = result.ok()
        for mode in MODES:
            seen = statuses.setdefault((operation.label, mode), set())
            _send(described, operation, mode, seen)
    asked = {label: seen for (label, mode), seen in statuses.items() if mode is MODES[1] and "POST" in label}
    assert all(400 in seen for label, seen in asked.items() if "index" not in label)


def _send(described, operation, mode, seen):
    # Where there is no body there is little to vary.
    @settings(BRIEFLY, max_examples=12 if operation.body else 3)
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case):
        before = described.state()
        response = case.call(base_url=described.server.url, headers=described.key, timeout=60)
        seen.add(response.status_code)
        case.validate_response(response, checks=CHECKS)
        if response.status_code != 200:
            assert described.state() == before

    try:
        send()
    except Unsatisfiable:  # nothing can be wrong with a request that has no parts
        assert mode is MODES[1]
        assert "POST" not in operation.label


def test_what_fits_is_answered(tmp_path):
    """A body as the description has it is answered, in each of its forms."""
    fit_noise(tmp_path / "noise.pac", n_columns=3, step=2.0**-20, steps=10_000)
    with Deployment.open(tmp_path / "noise.pac") as deployment, Described(deployment) as described:
        operation = described.schema["/invocations"]["POST"]
        forms, numbers = set(), itertools.count()

        @settings(BRIEFLY, max_examples=200)  # so many that each form is among them
        @given(case=operation.as_strategy())
        def send(case):
            assume(case.media_type == "application/json")
            forms.update(case.body.keys() - {"params"})
            if "id" in case.body.get(
                "params", {}
            ):  # one that came with other rows before is refused, rightly
                case.body["params"]["id"] = f"request {next(numbers)}"
            response = case.call(base_url=described.server.url, headers=described.key, timeout=60)
            assert response.status_code == 200, (case.body, response.text)

        send()
        assert forms == {"dataframe_records", "dataframe_split", "instances", "inputs"}


def contents_of(description):
    """Every body of a request or an answer, with where it is."""
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            yield from (
                (f"{method.upper()} {path}", what, kind, content)
                for what, body in (
                    ("takes", operation.get("requestBody", {})),
                    ("gives", operation["responses"]["200"]),
                )
                for kind, content in body.get("content", {}).items()
            )


def test_examples_fit_their_schemas(described):
    """All that is asked and answered in JSON has an example, or says all in its schema, and each is what that says."""
    schemas, lacking = described.description["components"]["schemas"], set()
    for where, _, kind, content in contents_of(described.description):
        if "example" in content:
            if kind == "application/json":
                jsonschema_rs.validate(
                    {**content["schema"], "components": {"schemas": schemas}}, content["example"]
                )
        elif "$ref" in content["schema"]:
            lacking.add(where)
    assert lacking == set()


def test_examples_of_queries_are_answered(described):
    """What is shown is what can be sent, and is answered as is shown."""
    shown = {tuple(where): content.get("example") for *where, content in contents_of(described.description)}
    n_asked = 0
    for (where, what, kind), example in shown.items():
        if what == "takes" and example is not None and where != "POST /v2/repository/index":
            sent = example if isinstance(example, str) else json.dumps(example)
            path = where.removeprefix("POST ").format(name="mixed", version="1")
            reply = described.server.http.post(
                path,
                content=sent,
                headers={**described.key, "content-type": kind},
            )
            assert reply.status_code == 200, (where, sent, reply.text)
            assert shape_of(reply.json()) == shape_of(shown[where, "gives", "application/json"])
            n_asked += 1
    assert n_asked == 4  # JSON and CSV of one way to ask, JSON of the other in its two versions
    for path in ("/privacy", "/v2/models/mixed", "/v2/health/ready"):
        told = described.server.http.get(path, headers=described.key).json()
        where = f"GET {path.replace('mixed', '{name}')}"
        assert shape_of(told) == shape_of(shown[where, "gives", "application/json"])


def shape_of(value):
    """What stays the same between answers: names, and kinds of values."""
    if isinstance(value, dict):
        return {name: shape_of(each) for name, each in value.items()}
    if isinstance(value, list):
        return [shape_of(each) for each in value]
    return float if type(value) is int else type(value)


def test_json_is_shown_as_it_is(described):
    """The page shows the same JSON, with lists of plain values in one line."""
    shown = described.server.http.get("/page/interface", headers=described.key).text
    blocks = [
        html.unescape(block) for block in re.findall(r"<pre><code>(.*?)</code></pre>", shown, re.DOTALL)
    ]
    found = [json.loads(block) for block in blocks if block.startswith("{")]
    for *_, kind, content in contents_of(described.description):
        if kind == "application/json" and "example" in content:
            assert content["example"] in found
    assert any('"shape": [1],' in block for block in blocks)
    odd = {"a": ["[\n", " ]", "x [ y ]"], "b": [[1, 2], []], "c": []}
    (block,) = re.findall(r"<pre><code>(.*?)</code></pre>", _json(odd), re.DOTALL)
    assert json.loads(html.unescape(block)) == odd


def test_examples_name_nobody(described):
    """A category that only occurred in records, or a label, is not among the examples; those declared may be."""
    shown = json.dumps([content.get("example") for *_, content in contents_of(described.description)])
    assert '"grade": "low"' in shown
    assert '"job": "other"' in shown
    assert "<label>" in shown
    assert not re.search("clerk|nurse|smith", shown)
    table = pd.DataFrame({"job": ["clerk", "nurse"] * 10, "age": range(20)})  # never missing
    pool = Pool.of(table, ["a", "b", "b", "a"] * 5)
    examples = examples_of_queries("m", pool.schema, Labels(pool.classes), 0.5)
    assert examples["Scoring"] == {"dataframe_records": [{"job": "other", "age": 1.5}]}
    assert examples["text/csv"] == "job,age\nother,1.5\n"


def test_an_example_of_an_image():
    """The file that is shown can be read, and has the size that images of the deployment have."""
    schema = ImageSchema(5, 7, "picture")
    shown = examples_of_queries("m", schema, Labels(Classes(("a", "b"))), 0.5)
    file = base64.b64decode(shown["Scoring"]["dataframe_records"][0]["picture"])
    assert read_pixels(file, Wanted((5, 7))).shape == (5, 7, 3)
    assert shown["Inference"]["inputs"][0]["datatype"] == "BYTES"


@pytest.mark.parametrize("key", [None, "pac_0_wrong"])
def test_without_a_key(described, key):
    """Every route that the description guards refuses whoever has no valid key; empty pages do not name the model."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    for (method, path), roles in WHO_MAY.items():
        address = path.format(name="mixed", version="1")
        reply = described.server.http.request(method, address, headers=headers)
        assert (reply.status_code == 401) == (None not in roles), path
    assert "mixed" not in described.server.http.get("/").text
