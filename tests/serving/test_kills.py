"""Killed servers: whatever a client received is in the ledger, and no query ever got two answers."""

import json
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from artifacts import copy_artifact, fit_noise
from kill_queries import N_COLUMNS, query
from postgres_server import PostgresServer
from small_deployment import check_history

from pacpredict.deployment import Deployment

LOOP = Path(__file__).with_name("kill_loop.py")
KILLS = int(os.environ.get("PACPREDICT_KILLS", "300"))  # in all, shared among the tests below
STEP = 2.0**-8
PLENTY, LITTLE, SAMPLED = (
    4096,
    150,
    149,
)  # steps; the last with labels of a channel, within a limit, to no end


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    home = tmp_path_factory.mktemp("fitted")
    for steps in (PLENTY, LITTLE):
        fit_noise(home / f"{steps}.pac", N_COLUMNS, STEP, steps)
    limited = {"decode": "sample", "odds_limit": 1.0, "when_exhausted": "belief"}
    fit_noise(home / f"{SAMPLED}.pac", N_COLUMNS, STEP, SAMPLED, **limited)
    return home


def kill(artifact, answers, *, kills, seed, ledger=()):
    """Kill servers of an artifact while clients ask; return what these received as {query: {(sequence, label)}}."""
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            LOOP,
            artifact,
            answers,
            "--kills",
            str(kills),
            "--seed",
            str(seed),
            *ledger,
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr
    received, charges = defaultdict(set), defaultdict(float)
    for line in answers.read_text().splitlines():
        number, label, sequence, charge = json.loads(line)
        received[number].add((sequence, label))
        charges[sequence] += charge
    assert max(charges.values()) <= STEP  # nobody was told twice that the same release was charged
    return received


def check(artifact, received, steps, url=None):
    """Check that every answer ever received is on record, the same for each query, and within the budget."""
    with Deployment.open(artifact, ledger=url) as deployment:
        opened, ledger = deployment.artifact, deployment._ledger.ledger
        records = check_history(ledger, 3, 8, opened.recipe.budget)
        assert ledger.load().spent_steps <= steps
        assert deployment.verify().releases == len(records)
    by_digest = {record.entry.digest: (record.entry.sequence, record.entry.label) for record in records}
    numbers = sorted(received)
    digests = opened.schema.digests(opened.schema.rows(np.array([query(number) for number in numbers])))
    for number, digest in zip(numbers, digests, strict=True):
        assert received[number] == {by_digest[digest]}
    assert len(numbers) > KILLS // 15  # it did serve between the kills
    return len(records)


def test_killed_databases_give_no_free_answer(fitted, tmp_path):
    """Over PostgreSQL, while servers are killed, and now and then the database too."""
    artifact = copy_artifact(fitted / f"{PLENTY}.pac", tmp_path / "model.pac")
    server, stop = PostgresServer(), threading.Event()
    url = server.create_database("kills")

    def kill_the_database():
        while not stop.wait(3.0):
            server.kill()
            time.sleep(0.2)
            server.start()

    killing = threading.Thread(target=kill_the_database)
    try:
        Deployment.open(
            artifact, ledger=url
        ).close()  # moves the ledger there, since nothing was answered yet
        killing.start()
        received = kill(artifact, tmp_path / "answers", kills=KILLS // 4, seed=1, ledger=("--ledger", url))
        stop.set()
        killing.join()
        assert check(artifact, received, PLENTY, url) >= len(received)
    finally:
        stop.set()
        killing.join()
        server.stop()


@pytest.mark.parametrize("steps", [PLENTY, LITTLE, SAMPLED])
def test_killed_servers_give_no_free_answer(fitted, tmp_path, steps):
    """Over SQLite, killed at failpoints and at random moments, with plenty of budget and with too little."""
    artifact = copy_artifact(fitted / f"{steps}.pac", tmp_path / "model.pac")
    received = kill(artifact, tmp_path / "answers", kills=KILLS // 4, seed=steps)
    assert check(artifact, received, steps) >= len(received)
