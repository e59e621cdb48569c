"""Many clients at once: the history has no gaps or forks, and the spending is exact."""

import http.client
import json
import random
import re
import signal
import subprocess
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from artifacts import copy_artifact, fit_noise
from kill_queries import N_COLUMNS, query
from postgres_server import PostgresServer
from small_deployment import check_history

from pacpredict.deployment import Deployment
from pacpredict.mechanism.budget import Budget

STEP = 2.0**-8
N_CLIENTS, N_REQUESTS, N_QUERIES = 32, 25, 300
ENOUGH, TOO_FEW = 4096, 100  # steps of the budget


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    home = tmp_path_factory.mktemp("fitted")
    for steps in (ENOUGH, TOO_FEW):
        fit_noise(home / f"{steps}.pac", N_COLUMNS, STEP, steps)
    return home


@contextmanager
def served(artifact, *options):
    """Start the real command, and stop it by SIGTERM."""
    program, log = Path(sys.executable).with_name("pacpredict"), artifact.with_suffix(".log")
    command = [program, "serve", artifact, "--port", "0", "--name", "model", "--drain-seconds", "0", *options]
    with log.open("w") as stderr, subprocess.Popen(command, stderr=stderr) as process:
        try:
            deadline = time.monotonic() + 60
            while not (found := re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text())):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
            yield int(found[1])
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0, log.read_text()
        finally:
            process.kill()


def ask(port, seed):
    """Be one client: return the answers and how many requests were refused for want of budget."""
    rng, answers, refused = random.Random(seed), [], 0
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    for _ in range(N_REQUESTS):
        numbers = [rng.randrange(N_QUERIES) for _ in range(rng.choice((1, 1, 2, 5)))]
        tensor = {"name": "rows", "shape": [len(numbers), N_COLUMNS], "datatype": "FP64"}
        body = {"inputs": [{**tensor, "data": [query(number) for number in numbers]}]}
        connection.request("POST", "/v2/models/model/infer", json.dumps(body))
        response = connection.getresponse()
        reply = json.loads(response.read())
        if response.status == 200:
            sent = reply["parameters"]
            answers += zip(
                numbers, reply["outputs"][0]["data"], sent["sequence"], sent["charge_nats"], strict=True
            )
        else:
            assert (response.status, reply["code"]) == (403, "budget-exhausted"), reply
            refused += 1
    connection.close()
    return answers, refused


def check(artifact, port_of, steps, url=None):
    """Let 32 clients ask, and compare what they were told with what is on record."""
    with port_of as port, ThreadPoolExecutor(N_CLIENTS) as pool:
        results = list(pool.map(lambda seed: ask(port, seed), range(N_CLIENTS)))
    told, charged = defaultdict(set), defaultdict(float)
    for number, label, sequence, charge in (answer for answers, _ in results for answer in answers):
        told[number].add((sequence, label))
        charged[sequence] += charge
    with Deployment.open(artifact, ledger=url) as deployment:
        ledger = deployment._ledger.ledger
        records = check_history(ledger, n_classes=3, n_models=8, budget=Budget(STEP, 2**30 * STEP))
        spent = ledger.load().spent_steps
    # All releases of this run were told to somebody, and each was charged to exactly one request.
    assert {sequence: charge for sequence, charge in charged.items() if charge} == {
        record.entry.sequence: STEP for record in records if record.entry.charged_steps
    }
    assert all(len(answers) == 1 for answers in told.values())
    by_sequence = {record.entry.sequence: record.entry.label for record in records}
    assert all(by_sequence[sequence] == label for answers in told.values() for sequence, label in answers)
    assert len(records) == len(told)
    assert spent == sum(record.entry.charged_steps for record in records) <= steps
    return sum(refused for _, refused in results)


@pytest.mark.parametrize("steps", [ENOUGH, TOO_FEW])
def test_one_process_over_sqlite(fitted, tmp_path, steps):
    """32 clients on one process; when the budget ends, exactly what fits is spent."""
    artifact = copy_artifact(fitted / f"{steps}.pac", tmp_path / "model.pac")
    refused = check(artifact, served(artifact), steps)
    assert (refused > 0) is (steps == TOO_FEW)


@pytest.mark.parametrize("steps", [ENOUGH, TOO_FEW])
def test_four_workers_over_postgresql(fitted, tmp_path, steps):
    """32 clients on four processes that share a database."""
    artifact = copy_artifact(fitted / f"{steps}.pac", tmp_path / "model.pac")
    server = PostgresServer()
    try:
        url = server.create_database("shared")
        refused = check(artifact, served(artifact, "--ledger", url, "--workers", "4"), steps, url)
        assert (refused > 0) is (steps == TOO_FEW)
    finally:
        server.stop()
