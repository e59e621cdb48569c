"""The program: started, stopped, and refused to start."""

import shutil
import signal
import socket
import threading
import time

import httpx
import pytest
from live_server import ServerProcess, tensors
from records import mixed_table

from pacpredict.cli import main
from pacpredict.deployment import Deployment
from pacpredict.ledger.sqlite import SqliteLedger


def infer(server, rows, name="mixed", **fields):
    return server.http.post(f"/v2/models/{name}/infer", json={"inputs": tensors(rows), **fields})


def test_life_of_a_server(home, rows):
    """It starts, answers, stops at SIGTERM, and started again gives the same answers at no charge."""
    with ServerProcess(home) as server:
        first = infer(server, rows).json()
        assert server.stop() == 0
    assert "Traceback" not in "".join(server.log)
    with ServerProcess(home) as server:
        again = infer(server, rows).json()
        assert server.stop(signal.SIGINT) == 0
    assert again["outputs"] == first["outputs"]
    assert sum(again["parameters"]["charge_nats"]) == 0.0
    assert "Traceback" not in "".join(server.log)


def test_killed_server(home, rows):
    """After kill -9 the answers that were received are known."""
    with ServerProcess(home) as server:
        first = infer(server, rows[:5]).json()
        server.stop(signal.SIGKILL)
    with ServerProcess(home) as server:
        assert infer(server, rows[:5]).json()["outputs"] == first["outputs"]


def test_stopping_finishes_what_was_begun(home, rows):
    """Every request that was sent before SIGTERM is answered with what is on record, or not recorded at all."""
    replies = []

    def ask(url):
        with httpx.Client(base_url=url, timeout=30) as client:
            for row in rows:
                try:
                    reply = client.post("/v2/models/mixed/infer", json={"inputs": tensors([row])})
                except httpx.TransportError:
                    return
                replies.append((row["age"], row["note"], reply.json()))

    with ServerProcess(home) as server:
        asking = [threading.Thread(target=ask, args=[server.url]) for _ in range(4)]
        for thread in asking:
            thread.start()
        deadline = time.monotonic() + 60
        while len(replies) < 10:
            assert any(thread.is_alive() for thread in asking)
            assert time.monotonic() < deadline
            time.sleep(0.001)
        server.stop()
        for thread in asking:
            thread.join()
    assert all("outputs" in reply for *_, reply in replies)
    numbers = {(age, note): reply["parameters"]["sequence"] for age, note, reply in replies}
    with ServerProcess(home) as server:
        for row in rows:
            if (row["age"], row["note"]) in numbers:
                again = infer(server, [row]).json()["parameters"]
                assert again["sequence"] == numbers[row["age"], row["note"]]


def test_log_lines(home, rows):
    """The log has a line for each request, with nothing that was asked or answered."""
    with ServerProcess(home) as server:
        infer(server, rows[:1])
        infer(server, [{**rows[0], "job": "pirate", "age": 1.5}])  # which is no INT64
        server.http.get("/x%0aFAKE LINE")
        server.stop()
    lines = [line for line in server.log if " INFO " in line and "live" not in line]
    assert len(lines) == 3
    assert "POST '/v2/models/mixed/infer' 200" in lines[0]
    assert "POST '/v2/models/mixed/infer' 400" in lines[1]
    assert "404" in lines[2]
    assert "pirate" not in "".join(server.log)


def test_no_server_header(home):
    """The server does not say what it is made of."""
    with ServerProcess(home) as server:
        assert "server" not in server.http.get("/v2/health/live").headers
        server.stop()


def test_name_of_the_model(home, rows):
    """A model has the name that it was given, and otherwise that of its artifact."""
    with ServerProcess(home, name="income") as server:
        assert infer(server, rows[:1], "income").status_code == 200
        server.stop()


@pytest.fixture
def refusal(capsys):
    """What the program says to arguments that it refuses, in one line."""

    def say(*arguments):
        assert main(["serve", *map(str, arguments)]) == 2
        said = capsys.readouterr().err
        assert said.startswith("pacpredict: error: ")
        assert said.count("\n") == 1
        return said

    return say


def test_no_artifact(tmp_path, refusal):
    """A path that is no artifact is refused in one line."""
    assert "there is no artifact" in refusal(tmp_path / "none.pac")


def test_workers_need_postgresql(home, refusal):
    """Several processes on an embedded ledger are refused, with what to do."""
    assert "PostgreSQL" in refusal(home, "--workers", "2")
    assert "at least one" in refusal(home, "--workers", "0")


def test_port_in_use(home, refusal):
    """A port that somebody has is refused with words."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert "cannot listen" in refusal(home, "--port", str(other.getsockname()[1]))


def other_ledger(home):
    """Put the ledger of another deployment into the place of this one's."""
    SqliteLedger(home / "other.sqlite", key=b"another key").close()
    (home / "other.sqlite").replace(home / "ledger.sqlite")


def older_ledger(home):
    """Put the ledger back to what it was before the witness saw more."""
    shutil.copy(home / "ledger.sqlite", home.parent / "older.sqlite")
    with Deployment.open(home) as deployment:
        deployment.ask(mixed_table(5, seed=3))
    (home / "ledger.sqlite").write_bytes((home.parent / "older.sqlite").read_bytes())


WRONG = {
    "no artifact": (shutil.rmtree, "there is no artifact"),
    "something else": (lambda home: (home / "manifest.json").unlink(), "is not an artifact"),
    "a changed file": (lambda home: (home / "units.npy").write_bytes(b""), "has changed since the fit"),
    "no ledger": (lambda home: (home / "ledger.sqlite").unlink(), "there is no ledger"),
    "no database": (lambda home: (home / "ledger.sqlite").write_bytes(b"x" * 5000), "is no ledger"),
    "another ledger": (other_ledger, "belongs to another secret"),
    "an older ledger": (older_ledger, "it is an older copy"),
    "no witness": (lambda home: (home / "witness.jsonl").unlink(), "witness.jsonl is missing"),
}


@pytest.mark.parametrize(("spoil", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_a_deployment_comes_first(home, refusal, spoil, words):
    """An artifact or a ledger that cannot be served is what is complained about, also if the port is taken."""
    spoil(home)
    with socket.create_server(("127.0.0.1", 0)) as other:
        said = refusal(home, "--port", str(other.getsockname()[1]))
    assert words in said
    assert "cannot listen" not in said


def test_a_port_in_use_leaves_the_ledger_closed(home, refusal):
    """A server that finds its port taken has opened the ledger, and closed it again."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        refusal(home, "--port", str(other.getsockname()[1]))
    assert not [path.name for path in home.iterdir() if path.name.startswith("ledger.sqlite-")]


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--port", "70000"], ["--host", "no such host"], ["--name", "a/b"], ["--name", ""]),
        *(["--max-rows", "0"], ["--max-connections", "-1"], ["--max-body-bytes", "1.5"]),
        *(["--allow-host", "a:1"], ["--allow-origin", "example.org"]),
    ],
)
def test_wrong_options(home, refusal, arguments):
    """Options that cannot be are refused with words."""
    refusal(home, *arguments)


def test_missing_ledger(home, refusal):
    """An artifact whose ledger is gone is not served."""
    (home / "ledger.sqlite").unlink()
    assert "no ledger" in refusal(home)
