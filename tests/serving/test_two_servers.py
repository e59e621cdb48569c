"""Two servers on one PostgreSQL ledger, one of them with two workers, behind a proxy from Debian."""

import os
import re
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from artifacts import fit_noise
from kill_queries import N_COLUMNS, query
from live_server import PROGRAM
from postgres_server import PostgresServer
from programs import environment, free_port, needs, program
from small_deployment import check_history

from pacpredict.deployment import Deployment
from pacpredict.ledger.keys import Terms
from pacpredict.mechanism.budget import Budget

STEP = 2.0**-8
N_CLIENTS, N_EACH = 8, 40
QUOTA = 4096

PROXY = """
defaults
    mode http
    timeout connect 2s
    timeout client 60s
    timeout server 60s
    option redispatch 1
    retries 3
    retry-on conn-failure empty-response
frontend all
    bind 127.0.0.1:{port}
    option forwardfor
    default_backend servers
backend servers
    balance roundrobin
    option httpchk GET /v2/health/ready
    http-check send hdr Host localhost
    default-server check inter 200ms fall 1 rise 1
    server first 127.0.0.1:{first}
    server second 127.0.0.1:{second}
"""


class Server:
    """`pacpredict serve` in a group of processes of its own, which can be killed whole."""

    def __init__(self, artifact, url, workers):
        log = artifact.with_suffix(f".{workers}.log")
        command = [PROGRAM, "serve", artifact, "--port", "0", "--name", "model", "--ledger", url]
        options = ["--workers", str(workers), "--proxy", "127.0.0.1", "--drain-seconds", "0"]
        with log.open("w") as stderr:
            self._process = subprocess.Popen([*command, *options], stderr=stderr, start_new_session=True)
        deadline = time.monotonic() + 120
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text())):
            assert self._process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        self.port = int(found[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def kill(self):
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def each_worker(self, path, token, times=12):
        """Ask over new connections, which several workers take; the load of a machine decides which."""
        headers = {"authorization": f"Bearer {token}"}
        return [httpx.get(self.url + path, headers=headers, timeout=60) for _ in range(times)]


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """A ledger in PostgreSQL, two servers on it, and keys."""
    artifact = tmp_path_factory.mktemp("served") / "model.pac"
    fit_noise(artifact, N_COLUMNS, STEP, 4096)
    database = PostgresServer()
    servers = []
    try:
        url = database.create_database("shared")
        with Deployment.open(artifact, ledger=url) as deployment:
            keys = {role: deployment.keys.make(Terms(role, role)) for role in ("admin", "read")}
            keys["query"] = deployment.keys.make(Terms("query", queries=QUOTA))
        servers += [Server(artifact, url, 2), Server(artifact, url, 1)]
        for server in servers:
            wait_until_live(server.url)
        yield artifact, url, servers, keys
    finally:
        for server in servers:
            server.kill()
        database.stop()


def wait_until_live(url):
    deadline = time.monotonic() + 60
    while True:
        try:
            if httpx.get(f"{url}/v2/health/ready").status_code == 200:
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < deadline
        time.sleep(0.02)


def ask(http, number, token):
    body = {"instances": [query(number)]}
    return http.post("/invocations", json=body, headers={"authorization": f"Bearer {token}"})


def test_revoked_on_every_worker(scene):
    """A key that is revoked in the database is refused by all workers of all servers with the next request."""
    artifact, url, servers, _ = scene
    with Deployment.open(artifact, ledger=url) as deployment:
        token = deployment.keys.make(Terms("soon gone", "read"))
        for server in servers:
            assert {reply.status_code for reply in server.each_worker("/privacy", token)} == {200}
        deployment.keys.revoke("soon gone")
        for server in servers:
            assert {reply.status_code for reply in server.each_worker("/privacy", token)} == {401}


def test_metrics_of_all_workers(scene):
    """Whichever worker is asked, /metrics counts the requests of all, and spending is what the ledger says."""
    _, _, (server, _), keys = scene
    headers = {"authorization": f"Bearer {keys['query']}"}
    for number in range(10):
        with httpx.Client(base_url=server.url, timeout=60) as http:
            http.post("/invocations", json={"instances": [query(-1 - number)]}, headers=headers)
    spent = server.each_worker("/privacy", keys["read"], 1)[0].json()["spent_nats"]
    for reply in server.each_worker("/metrics", keys["read"]):
        said = reply.text
        assert 'pacpredict_requests_total{route="/invocations",status="200"} 10.0' in said
        assert 'pacpredict_key_queries{key="query"} 10.0' in said
        assert float(re.search(r"^pacpredict_spent_nats (.*)$", said, re.MULTILINE)[1]) == spent


@pytest.fixture
def proxy(scene, tmp_path):
    """haproxy, before both."""
    port = free_port()
    _, _, (first, second), _ = scene
    settings = tmp_path / "haproxy.cfg"
    settings.write_text(PROXY.format(port=port, first=first.port, second=second.port))
    command = [program("haproxy"), "-db", "-f", settings]
    with subprocess.Popen(command, env=environment(), stderr=subprocess.DEVNULL) as process:
        url = f"http://127.0.0.1:{port}"
        wait_until_live(url)
        yield url
        process.kill()


@needs("haproxy", "haproxy")
def test_one_is_killed_under_load(scene, proxy):
    """When one of two servers is killed, clients that send again what was lost go on, and the spending is exact."""
    artifact, url, (first, _), keys = scene
    n_answered, enough = [0], threading.Event()

    def be_client(client):
        told = []
        with httpx.Client(base_url=proxy, timeout=60) as http:
            for i in range(N_EACH):
                number = 1000 * client + i
                for _ in range(20):
                    try:
                        reply = ask(http, number, keys["query"])
                    except httpx.TransportError:
                        continue
                    if reply.status_code == 200:
                        break
                    assert reply.status_code >= 500, reply.text
                    time.sleep(0.1)
                sent = reply.json()
                told.append((number, sent["predictions"][0], sent["parameters"]["sequence"][0]))
                n_answered[0] += 1
                if n_answered[0] >= N_CLIENTS * N_EACH // 4:
                    enough.set()
        return told

    with ThreadPoolExecutor(N_CLIENTS) as pool:
        clients = [pool.submit(be_client, client) for client in range(N_CLIENTS)]
        assert enough.wait(120)
        first.kill()
        told = [answer for client in clients for answer in client.result()]
    assert len(told) == N_CLIENTS * N_EACH
    with Deployment.open(artifact, ledger=url) as deployment:
        ledger = deployment._ledger.ledger
        records = check_history(ledger, n_classes=3, n_models=8, budget=Budget(STEP, 2**30 * STEP))
        label_of = deployment.artifact.classes.values
        mine = {record.entry.sequence: label_of[record.entry.label] for record in records}
        # Each query is on record once, with the answer that the client got; nothing else was charged.
        assert all(mine[sequence] == label for _, label, sequence in told)
        assert len({sequence for *_, sequence in told}) == len(told)
        by_key = [record for record in records if record.entry.client == "query"]
        assert len(by_key) == len(records)
        assert len(records) in (len(told), len(told) + 10)  # those of the test before, if it was run
        deployment.keys.check_use()
        assert ledger.load().spent_steps == sum(record.entry.charged_steps for record in records)
        assert deployment.verify().releases == len(records)
