"""A disk that fails: requests are refused, nothing is released twice, and service resumes when the cause is gone."""

import os
import shutil
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from artifacts import fit_small
from live_server import LiveServer, ServerProcess, curator_of, tensors
from records import recipe

from pacpredict.deployment import Deployment
from pacpredict.serving import service

SHIM = Path(__file__).with_name("failing_disk.c")


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler, for the library that makes a disk fail")
    library = tmp_path_factory.mktemp("shim") / "failing_disk.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, SHIM], check=True)
    return library


@pytest.mark.parametrize(("trouble", "what"), [("w", "disk full"), ("r", "read-only"), ("s", "sync failing")])
def test_a_disk_that_fails(shim, tmp_path, monkeypatch, rows, trouble, what):
    """While the disk fails new queries get 503 and old ones their answer; then service goes on, exactly."""
    home = fit_small(tmp_path / "mixed.pac", how=recipe(step=2.0**-16)).path
    switch = tmp_path / "trouble"
    monkeypatch.setenv("LD_PRELOAD", str(shim))
    monkeypatch.setenv("FAILING_DISK", str(switch))
    with ServerProcess(home) as server:
        monkeypatch.delenv("LD_PRELOAD")

        def ask(*wanted):
            return server.http.post(
                "/v2/models/mixed/infer", json={"inputs": tensors([rows[i] for i in wanted])}
            )

        before = ask(0, 1, 2)
        assert before.status_code == 200
        switch.write_text(trouble)
        for i in (3, 4, 5, 3):
            refused = ask(i)
            assert (refused.status_code, refused.json()["code"]) == (503, "ledger-unavailable"), what
        stored = ask(0, 1, 2)
        assert stored.json()["outputs"] == before.json()["outputs"]
        assert not server.http.get("/v2/health/live").json()["ready"]
        switch.unlink()
        after = ask(0, 1, 2, 3, 4, 5)
        assert after.status_code == 200, after.json()
        again = ask(5, 4, 3, 2, 1, 0)
        assert again.json()["outputs"][0]["data"] == after.json()["outputs"][0]["data"][::-1]
    assert os.environ.get("LD_PRELOAD") is None
    check_history(home, n_queries=6)


def check_history(home, n_queries):
    """Every query was answered once, and the ledger says what happened."""
    with Deployment.open(home) as deployment:
        found = deployment.verify()
        digests = Counter(entry.digest for entry in deployment._ledger.entries())
    assert found.releases == n_queries == len(digests)


def test_a_server_that_ends_while_its_ledger_hangs(fitted, rows):
    """Whoever waits for the ledger when the server gives up is told 503, since the answer may be recorded yet."""
    curator = curator_of(fitted)
    with LiveServer(curator) as server, ThreadPoolExecutor(1) as pool:
        with curator.session._ledger.turn():
            reply = pool.submit(server.infer, tensors(rows[:1]))
            while not server.service._pipeline._turn.locked():
                assert not reply.done()
                time.sleep(0.005)
            server.give_up()
            refused = reply.result()
        assert (refused.status_code, refused.json()["code"]) == (503, "ledger-unavailable")
        while not server.n_released:
            time.sleep(0.005)
        assert server.infer(tensors(rows[:1])).json()["parameters"]["charge_nats"] == [0.0]


def test_looks_go_on_after_what_nobody_foresaw(home, monkeypatch, capfd):
    """A look at the ledger that fails in an unknown way is logged, and others are taken after it."""
    looked, went_on = [], threading.Event()
    monkeypatch.setattr(service, "_SECONDS_BETWEEN_LOOKS", 0.01)
    with Deployment.open(home) as deployment:

        def keep_up():
            looked.append(None)
            if len(looked) == 1:
                raise TypeError("unforeseen")
            went_on.set()

        monkeypatch.setattr(deployment.curator, "keep_up", keep_up)
        with LiveServer(deployment.curator):
            assert went_on.wait(30)
    assert "a look at the ledger failed" in capfd.readouterr().err
