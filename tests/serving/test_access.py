"""Keys over HTTP: who has none reaches nothing, who has one does what its role allows, and no more than it may."""

import sqlite3
from contextlib import closing

import httpx
import pytest
from live_server import LiveServer, ServerProcess, tensors
from postgres_server import PostgresServer

from pacpredict.cli import main
from pacpredict.deployment import Deployment, home_of
from pacpredict.ledger.keyring import Keyring
from pacpredict.ledger.keys import Terms
from pacpredict.serving.access import Keyed
from pacpredict.serving.metrics import Counted
from pacpredict.serving.routes import ways

STEP = 2.0**-16
ROLES = ("query", "read", "admin")


@pytest.fixture
def deployment(home):
    with Deployment.open(home) as deployment:
        yield deployment


class Watched:
    """Stands before a curator and notes what is asked of it, but for the looks of the server itself."""

    def __init__(self, curator):
        self.touched = []
        self._curator = curator

    def __getattr__(self, name):
        if name not in {"ensemble", "keep_up"}:
            self.touched.append(name)
        return getattr(self._curator, name)


def keyed(deployment, curator=None, **options):
    options = {"keyring": deployment.keys, "metrics": Counted(), **options}
    return LiveServer(curator or deployment.curator, access=Keyed(deployment.keys), **options)


def bearer(token):
    return {"authorization": f"Bearer {token}"}


def infer(server, rows, token, **fields):
    content = {"inputs": tensors(rows), **fields}
    return server.http.post("/v2/models/mixed/infer", json=content, headers=bearer(token))


def requests_of(server, rows):
    """One good request to each route of the server."""
    service = server.service
    for way in ways(service, service.page(), service.description(is_open=False)):
        path = way.path.format(name="mixed", version="1")
        path += "?queries=1e6&step_budget=1e-9" if path == "/page/plan" else ""
        body = {"inputs": tensors(rows)} if path.endswith("infer") else {}
        body = {"instances": rows} if path == "/invocations" else body
        yield way, path, body if way.method == "POST" else None


def test_nobody_gets_anywhere(deployment, rows):
    """Without a valid key no route but health is let through, and none reaches a model, the ledger or its lookup."""
    watched = Watched(deployment.curator)
    revoked = deployment.keys.make(Terms("revoked", "admin"))
    deployment.keys.revoke("revoked")
    wrong = [
        *(
            {},
            {"authorization": "Bearer"},
            bearer("x"),
            bearer("pac_0_0"),
            bearer(revoked),
            bearer(revoked[:-1]),
        ),
        *({"authorization": revoked}, {"authorization": "Basic eDp4"}),
    ]
    with keyed(deployment, watched) as server:
        watched.touched.clear()
        for way, path, body in requests_of(server, rows[:1]):
            for headers in wrong:
                reply = server.http.request(way.method, path, json=body, headers=headers)
                if None in way.needs.value:
                    assert reply.status_code == 200
                else:
                    assert (reply.status_code, reply.json()["code"]) == (401, "key-missing")
                    assert reply.headers["www-authenticate"] == "Bearer"
        two = server.http.get("/privacy", headers=[("authorization", f"Bearer {revoked}")] * 2)
        assert two.status_code == 401
        assert watched.touched == []
        assert server.http.get("/nothing").status_code == 404
        server.http.get("/privacy", headers=bearer(deployment.keys.make(Terms("lab"))))
        assert watched.touched  # the watch would have seen it


def test_roles(deployment, rows):
    """A key is let through exactly where the table has its role."""
    tokens = {role: deployment.keys.make(Terms(role, role)) for role in ROLES}
    with keyed(deployment) as server:
        for way, path, body in requests_of(server, rows[:1]):
            for role, token in tokens.items():
                reply = server.http.request(way.method, path, json=body, headers=bearer(token))
                if role in way.needs.value:
                    assert reply.status_code in {200, 204}, (path, role)
                else:
                    assert (reply.status_code, reply.json()["code"]) == (403, "role-missing")


def test_revoked_at_once(home, deployment, rows):
    """The request after `keys revoke`, by another process, is refused; nothing else changes."""
    lab, other = deployment.keys.make(Terms("lab")), deployment.keys.make(Terms("other"))
    with keyed(deployment) as server:
        assert infer(server, rows[:1], lab).status_code == 200
        assert main(["keys", "revoke", str(home), "lab"]) == 0
        assert infer(server, rows[:1], lab).status_code == 401
        assert infer(server, rows[:1], other).status_code == 200


def test_client_on_record(deployment, rows):
    """The ledger says who asked what first, and an id belongs to its key."""
    lab, other = deployment.keys.make(Terms("lab")), deployment.keys.make(Terms("other"))
    with keyed(deployment) as server:
        assert infer(server, rows[:2], lab, id="1").status_code == 200
        assert infer(server, rows[1:4], other, id="1").status_code == 200
        assert infer(server, rows[5:6], other, id="1").status_code == 409
    clients = [entry.client for entry in deployment._ledger.entries()]
    assert clients == ["lab", "lab", "other", "other"]
    assert deployment.verify().releases == 4


def test_shared_or_separate(home, rows):
    """An answer is shared between keys, or each key asks and pays for itself and repeats its own."""
    with Deployment.open(home) as deployment:
        lab, other = deployment.keys.make(Terms("lab")), deployment.keys.make(Terms("other"))
        with keyed(deployment) as server:
            first = infer(server, rows, lab).json()["parameters"]
            assert infer(server, rows, other).json()["parameters"]["sequence"] == first["sequence"]
    with Deployment.open(home) as deployment, keyed(deployment, separate=True) as server:
        mine = infer(server, rows, lab).json()["parameters"]
        theirs = infer(server, rows, other).json()["parameters"]
        assert min(mine["sequence"]) > max(first["sequence"])
        assert min(theirs["sequence"]) > max(mine["sequence"])
        assert mine["charge_nats"] == theirs["charge_nats"] == first["charge_nats"]
        again = infer(server, rows, lab).json()["parameters"]
        assert again["sequence"] == mine["sequence"]
        assert sum(again["charge_nats"]) == 0
    with Deployment.open(home) as deployment:
        assert deployment.verify().releases == 3 * len(rows)


def test_quota_before_models_vote(deployment, rows):
    """What a quota does not allow is refused without a vote; what it was answered before it still gets."""
    token = deployment.keys.make(Terms("lab", queries=3, rate=100))
    watched = Watched(deployment.curator)
    with keyed(deployment, watched) as server:
        assert infer(server, rows[:3], token).status_code == 200
        watched.touched.clear()
        reply = infer(server, rows[3:4], token)
        assert (reply.status_code, reply.json()["code"]) == (403, "quota-reached")
        assert "serve" not in watched.touched
        assert infer(server, rows[:3], token).status_code == 200
    assert deployment.keys.describe()[0]["used_queries"] == 3


def test_rate_says_when(deployment, rows):
    """Whoever asks too fast is told when to come again."""
    token = deployment.keys.make(Terms("lab", rate=3))
    with keyed(deployment) as server:
        assert infer(server, rows[:3], token).status_code == 200
        reply = infer(server, rows[3:4], token)
        assert (reply.status_code, reply.json()["code"]) == (429, "rate-reached")
        assert 1 <= int(reply.headers["retry-after"]) <= 20
        assert 41 <= int(infer(server, rows[3:6], token).headers["retry-after"]) <= 60
        assert infer(server, rows[3:7], token).json()["code"] == "quota-reached"


def meddle(place, *statements):
    """Do what somebody can who may write to the database, and has nothing else."""
    if place.startswith("postgresql"):
        import psycopg  # noqa: PLC0415

        with psycopg.connect(place) as database:
            for statement in statements:
                database.execute(statement)
    else:
        with closing(sqlite3.connect(place)) as database, database:
            for statement in statements:
                database.execute(statement)


@pytest.fixture
def refusal(capsys):
    def say(*arguments):
        assert main(["serve", *map(str, arguments)]) == 2
        return capsys.readouterr().err

    return say


def test_without_keys(home, refusal):
    """Without keys a server is for this machine only, directly and through a proxy, unless it is said aloud."""
    for options in (["--host", "0.0.0.0"], ["--host", "::"], ["--proxy", "127.0.0.1"]):
        assert "--open" in refusal(home, "--port", "0", *options)
    with ServerProcess(home, "--host", "0.0.0.0", "--open") as server:
        assert httpx.get(server.url.replace("0.0.0.0", "127.0.0.1") + "/privacy").status_code == 200
        server.stop()
    assert "whoever reaches this address may ask" in "".join(server.log)


def test_open_with_keys(home, deployment, refusal, rows):
    """Keys are not opened around; and once there was one, no server starts that needs none."""
    token = deployment.keys.make(Terms("lab"))
    assert "--open" in refusal(home, "--port", "0", "--open")
    deployment.keys.revoke("lab")
    with ServerProcess(home) as server:
        assert server.http.get("/privacy", headers=bearer(token)).status_code == 401
        server.stop()


def test_deleted_keys_open_nothing(home, refusal, rows):
    """Whoever deletes the keys from the database opens no server; the owner is told what to do."""
    assert main(["keys", "make", str(home), "lab"]) == 0
    meddle(str(home / "ledger.sqlite"), "DELETE FROM keys", "DELETE FROM key_use")
    for arguments in ([home, "--port", "0"], [home, "--check"]):
        said = refusal(*arguments)
        assert "somebody has deleted them" in said
        assert "keys make" in said
    with ServerProcess(home, "--open") as server:
        assert server.http.post("/invocations", json={"instances": rows[:1]}).status_code == 200
        server.stop()
    assert "somebody has deleted them" in refusal(home, "--port", "0")  # opening and answering forget nothing
    assert main(["keys", "make", str(home), "other"]) == 0
    with ServerProcess(home) as server:
        assert server.http.get("/privacy").status_code == 401
        server.stop()


def test_keys_that_were_made_before_this_was_remembered(home, refusal):
    """An older deployment, whose witness knows nothing of keys, remembers them from its next opening on."""
    with Deployment.open(home) as deployment:
        Keyring(deployment._ledger.ledger, STEP).make(Terms("lab"))  # as it was made then
        assert not home_of(deployment.artifact)._near().read().keyed
    with Deployment.open(home) as deployment:
        assert deployment.was_keyed
    meddle(str(home / "ledger.sqlite"), "DELETE FROM keys")
    assert "somebody has deleted them" in refusal(home, "--port", "0")


def test_deleted_keys_in_postgresql(home, refusal, tmp_path):
    """The same of a ledger elsewhere, whose owner may not be able to touch the artifact; a move forgets nothing."""
    postgres = PostgresServer()
    try:
        url = postgres.create_database("keys")
        assert main(["keys", "make", str(home), "lab", "--ledger", url]) == 0  # begins there
        with Deployment.open(home, ledger=url, to_look=True) as deployment:
            assert [key.terms.name for key in deployment.keys.all()] == ["lab"]
        meddle(url, "DELETE FROM keys")
        assert "somebody has deleted them" in refusal(home, "--port", "0", "--ledger", url)
        assert main(["ledger", "moved", str(home), "--ledger", url]) == 0
        assert "somebody has deleted them" in refusal(home, "--port", "0", "--ledger", url)
    finally:
        postgres.stop()
