"""What is answered, charged and refused, by whichever way it was asked."""

import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from artifacts import fit_small
from live_server import LiveServer, curator_of, plain_rows, tensors
from records import mixed_table, quick_fit, recipe

from pacpredict.artifact.artifact import LEDGER
from pacpredict.deployment import Deployment
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.replay import replay
from pacpredict.mechanism.session import Session
from pacpredict.training.recipe import Recipe

STEP = 2.0**-8


def invoke(server, rows, **params):
    return server.http.post("/invocations", json={"dataframe_records": rows, "params": params})


@pytest.fixture(scope="module")
def contested(fitted):
    """Queries on which models disagree, so that each is charged one step."""
    table = mixed_table(300, seed=5)
    votes = fitted.ensemble.votes(fitted.pool.schema.rows(table))
    return plain_rows(table[votes.min(axis=1) < votes.max(axis=1)])


@pytest.fixture(scope="module")
def unanimous(fitted):
    """Queries on which all models agree."""
    table = mixed_table(300, seed=5)
    votes = fitted.ensemble.votes(fitted.pool.schema.rows(table))
    return plain_rows(table[votes.min(axis=1) == votes.max(axis=1)])


@pytest.fixture
def poor_server(contested):
    """A server that can afford five contested answers."""
    with LiveServer(curator_of(quick_fit(how=recipe(step=STEP, total=5 * STEP)))) as running:
        yield running


def test_privacy(fresh_server, fitted, contested):
    """The guarantee says what was spent, what may be spent, and what each attack can achieve."""
    assert fresh_server.http.get("/privacy").json() == fresh_server.curator.privacy()
    invoke(fresh_server, contested[:3])
    told = fresh_server.http.get("/privacy").json()
    assert told == fresh_server.curator.privacy()
    assert told["spent_nats"] == 3 * fitted.recipe.budget.step == 3 * told["step_budget_nats"]
    assert (told["queries"], told["contested"], told["total_nats"]) == (3, 3, 0.1)
    assert (told["decoder"], told["charging"]) == ("argmax", "adaptive")
    assert set(told["bounds"]) >= {"membership"}
    assert all(bound["prior"] <= bound["success"] <= 1 for bound in told["bounds"].values())
    assert told["promise"]["average"].startswith("Over the whole life of the deployment, no attacker")


def test_answers_are_the_curators(fresh_server, fitted, rows):
    """Over HTTP come the labels, numbers and charges of the ledger, and these only."""
    reply = invoke(fresh_server, rows).json()
    entries = list(fresh_server.curator.session._ledger.entries())
    assert reply["predictions"] == fitted.pool.classes.labels([entry.label for entry in entries]).tolist()
    assert reply["parameters"]["sequence"] == [entry.sequence for entry in entries]
    steps = [entry.charged_steps for entry in entries]
    assert reply["parameters"]["charge_nats"] == [n * fitted.recipe.budget.step for n in steps]


def test_one_query_by_every_protocol(fresh_server, contested):
    """A query is charged once, whichever protocol asks for it again."""
    rows = contested[:4]
    first = fresh_server.infer(tensors(rows)).json()
    assert all(first["parameters"]["charge_nats"])
    binary = fresh_server.infer(tensors(rows), parameters={"binary_data_output": True})
    head = binary.content[: int(binary.headers["inference-header-content-length"])]
    scored = invoke(fresh_server, rows).json()
    for again in (json.loads(head)["parameters"], scored["parameters"]):
        assert again == {"sequence": first["parameters"]["sequence"], "charge_nats": [0.0] * 4}
    assert scored["predictions"] == first["outputs"][0]["data"]
    assert fresh_server.spent == 4


def test_exhaustion(poor_server, contested):
    """A batch that does not fit is refused whole, with what it needed and what is left; one that fits is answered."""
    invoke(poor_server, contested[:2])
    reply = invoke(poor_server, contested[:6])
    assert reply.status_code == 403
    refusal = reply.json()
    assert refusal["code"] == "budget-exhausted"
    assert (refusal["needed_nats"], refusal["left_nats"]) == (4 * STEP, 3 * STEP)
    assert poor_server.spent == 2
    assert poor_server.infer(tensors(contested[:6])).json()["code"] == "budget-exhausted"
    assert invoke(poor_server, contested[2:5]).status_code == 200
    assert poor_server.spent == 5
    assert invoke(poor_server, contested[5:6]).json()["left_nats"] == 0.0
    assert invoke(poor_server, contested[:5]).json()["parameters"]["charge_nats"] == [0.0] * 5
    assert poor_server.http.get("/v2/health/ready").status_code == 200


def test_after_exhaustion(poor_server, contested, unanimous):
    """When nothing is left, the refusal of a row that models agree on is that of any other, byte by byte."""
    invoke(poor_server, contested[:5])
    for row in (contested[5], unanimous[0]):
        reply = invoke(poor_server, [row])
        assert (reply.status_code, reply.json()["left_nats"]) == (403, 0.0)
        assert "needed_nats" not in reply.json()
    asked = [[row] for row in (*contested[5:8], *unanimous[:3])]
    asked += [contested[5:8], unanimous[:3], [contested[5], unanimous[0]]]
    for partial in (False, True):
        assert len({invoke(poor_server, rows, partial=partial).content for rows in asked}) == 1
        parameters = {"partial": partial}
        assert len({poor_server.infer(tensors(rows), parameters=parameters).content for rows in asked}) == 1


def test_going_on_after_exhaustion(contested, unanimous):
    """A deployment that says so goes on with what models agree on."""
    how = Recipe(1, Budget(STEP, 5 * STEP, when_exhausted="unanimous"), n_models=4)
    with LiveServer(curator_of(quick_fit(how=how))) as server:
        invoke(server, contested[:5])
        assert invoke(server, contested[5:6]).status_code == 403
        assert invoke(server, unanimous[:2]).json()["parameters"]["charge_nats"] == [0.0, 0.0]


@pytest.mark.parametrize("protocol", ["inference", "scoring"])
def test_as_far_as_the_budget_goes(poor_server, contested, protocol):
    """A request that says so is answered as far as it fits, and told how far that was."""
    if protocol == "inference":
        reply = poor_server.infer(tensors(contested[:8]), parameters={"partial": True}).json()
        labels = reply["outputs"][0]["data"]
        assert reply["outputs"][0]["shape"] == [5]
    else:
        reply = invoke(poor_server, contested[:8], partial=True).json()
        labels = reply["predictions"]
    assert len(labels) == 5
    assert reply["parameters"]["charge_nats"] == [STEP] * 5
    assert (reply["parameters"]["rows_asked"], reply["parameters"]["rows_answered"]) == (8, 5)
    assert invoke(poor_server, contested[5:8], partial=True).status_code == 403


def test_ids(fresh_server, contested):
    """The same request with the same id gets its answer again; another one with this id is refused."""
    first = fresh_server.infer(tensors(contested[:2]), id="a-1").json()
    assert first["id"] == "a-1"
    again = fresh_server.infer(tensors(contested[:2]), id="a-1").json()
    assert again["outputs"] == first["outputs"]
    reply = fresh_server.infer(tensors(contested[2:3]), id="a-1")
    assert (reply.status_code, reply.json()["code"]) == (409, "id-conflict")
    assert invoke(fresh_server, contested[2:3], id="a-1").status_code == 409
    assert fresh_server.spent == 2


def test_an_empty_id_is_none(fresh_server, contested):
    """Clients that send an empty id with everything do not conflict with themselves."""
    for row in contested[:2]:
        reply = fresh_server.infer(tensors([row]), id="")
        assert reply.status_code == 200
        assert "id" not in reply.json()


def test_crowd(fresh_server, fitted, contested):
    """Many clients at once: numbers without a gap, each query charged once, and everybody gets the same answer."""

    def ask(i):
        with httpx.Client(base_url=fresh_server.url, timeout=60) as client:
            replies = [
                client.post("/invocations", json={"dataframe_records": [contested[(i + j) % 30]]}).json()
                for j in range(15)
            ]
        return [
            (
                (i + j) % 30,
                reply["parameters"]["sequence"][0],
                reply["predictions"][0],
                reply["parameters"]["charge_nats"][0],
            )
            for j, reply in enumerate(replies)
        ]

    with ThreadPoolExecutor(16) as pool:
        answers = [answer for answered in pool.map(ask, range(16)) for answer in answered]
    assert len({(query, sequence, label) for query, sequence, label, _ in answers}) == 30
    assert {sequence for _, sequence, _, _ in answers} == set(range(1, 31))
    assert sum(charge for *_, charge in answers) == 30 * fitted.recipe.budget.step
    assert fresh_server.spent == 30


def test_groups_share_a_commit(fitted, contested):
    """Requests that wait while a commit is under way are answered by the next one together."""
    curator = curator_of(fitted)
    sizes = []
    serve = curator.serve
    curator.serve = lambda requests: (sizes.append(len(requests)), serve(requests))[1]
    with LiveServer(curator) as server, ThreadPoolExecutor(9) as pool:
        with curator.session._ledger.turn():
            replies = [pool.submit(server.infer, tensors([row])) for row in contested[:9]]
            while server.n_waiting < 9:
                time.sleep(0.01)
            assert not any(reply.done() for reply in replies)
        assert all(reply.result().status_code == 200 for reply in replies)
    assert sum(sizes) == 9
    assert len(sizes) < 9


def test_restart(tmp_path, rows):
    """After a restart the server knows every query and id, goes on in the sequence, and the history replays."""
    home = fit_small(tmp_path / "mixed.pac", how=recipe(step=STEP)).path
    with Deployment.open(home) as deployment, LiveServer(deployment.curator) as server:
        first = server.infer(tensors(rows), id="all").json()
    with Deployment.open(home) as deployment, LiveServer(deployment.curator) as server:
        again = server.infer(tensors(rows), id="all").json()
        assert again["outputs"] == first["outputs"]
        assert again["parameters"]["sequence"] == first["parameters"]["sequence"]
        assert sum(again["parameters"]["charge_nats"]) == 0.0
        assert server.infer(tensors(rows[:1]), id="all").status_code == 409
        fresh = {**rows[0], "age": 99}
        assert server.infer(tensors([fresh])).json()["parameters"]["sequence"] == [len(rows) + 1]
    with Deployment.open(home) as deployment:
        session: Session = deployment.curator.session
        replayed = replay(session._ledger.entries(), session.n_classes, session.budget, session.prior)
        assert replayed.log_belief.tobytes() == session.snapshot().log_belief.tobytes()


def test_ledger_trouble(tmp_path, contested):
    """While the ledger is gone nothing is answered and the server is not ready; when it is back, service resumes."""
    home = fit_small(tmp_path / "mixed.pac", how=recipe(step=STEP)).path
    away = tmp_path / "away"
    with Deployment.open(home) as deployment, LiveServer(deployment.curator) as server:
        assert invoke(server, contested[:1]).status_code == 200
        shutil.move(home / LEDGER, away)
        reply = invoke(server, contested[1:2])
        assert (reply.status_code, reply.json()["code"]) == (503, "ledger-unavailable")
        assert reply.headers["retry-after"] == "1"
        assert str(tmp_path) not in reply.text
        for path in ("/v2/health/ready", "/v2/models/mixed/ready", "/ping"):
            assert server.http.get(path).status_code == 503
        live = server.http.get("/v2/health/live")
        assert (live.status_code, live.json()) == (200, {"live": True, "ready": False})
        assert server.http.get("/privacy").status_code == 503
        assert server.http.post("/v2/repository/index").json()[0]["state"] == "UNAVAILABLE"
        assert server.http.post("/v2/repository/index", json={"ready": True}).json() == []
        shutil.move(away, home / LEDGER)
        assert server.http.get("/v2/health/ready").json() == {"live": True, "ready": True}
        assert invoke(server, contested[1:2]).json()["parameters"]["sequence"] == [2]
        assert server.http.get("/v2/health/live").json()["ready"]
