"""Killed processes: whatever a client received is in the ledger, and the history is whole."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from postgres_server import PostgresServer
from small_deployment import DEPLOYMENT, KEY, budget_of, check_history, digest_of

from pacpredict.ledger.postgres import PostgresLedger
from pacpredict.ledger.sqlite import SqliteLedger

LOOP = Path(__file__).with_name("crash_loop.py")


def start_crashing(where, answers, *, rounds, workers, steps, longest_s=0.04, decode="argmax"):
    """Begin to kill workers, for some rounds, up to `longest_s` after the first answer of each round."""
    numbers = map(str, (rounds, workers, steps, workers, longest_s, decode))
    return subprocess.Popen(
        [sys.executable, "-W", "error", LOOP, where, answers, *numbers],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def received_answers(process, answers, n_killed):
    """Wait for the end; return what clients received, as {query: {(sequence, label)}}."""
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert int(output) == n_killed, errors
    received = {}
    for line in answers.read_text().splitlines():
        number, sequence, label = map(int, line.split())
        received.setdefault(number, set()).add((sequence, label))
    return received


def check_answers(ledger, received, steps, decode="argmax"):
    """Check that every answer ever received is on record, the same for each query, and within the budget."""
    records = check_history(ledger, budget=budget_of(steps, decode))
    assert ledger.load().spent_steps <= steps
    by_digest = {record.entry.digest: (record.entry.sequence, record.entry.label) for record in records}
    assert received
    for number, answers in received.items():
        assert answers == {by_digest[digest_of(number)]}
    return len(records)


# With plenty of budget and with little; noise, and labels of a channel within a limit that end in the belief's.
WAYS = [(1, 10_000, "argmax"), (3, 10_000, "argmax"), (2, 60, "argmax"), (2, 60, "sample")]


@pytest.mark.parametrize(("workers", "steps", "decode"), WAYS)
def test_killed_processes_lose_nothing(tmp_path, workers, steps, decode):
    """Workers killed at failpoints and at random moments, alone and racing."""
    path, answers = tmp_path / "ledger.sqlite", tmp_path / "answers"
    process = start_crashing(str(path), answers, rounds=50, workers=workers, steps=steps, decode=decode)
    received = received_answers(process, answers, 50 * workers)
    with SqliteLedger(path, deployment=DEPLOYMENT, create=False, key=KEY) as ledger:
        assert check_answers(ledger, received, steps, decode) > 40
        kinds = {entry.kind for entry in ledger.entries()}
    assert kinds == ({"sample", "belief", "agreed"} if decode == "sample" else {"argmax", "agreed"})


@pytest.mark.parametrize(("workers", "steps", "decode"), WAYS)
def test_killed_clients_of_a_database_lose_nothing(tmp_path, url, workers, steps, decode):
    """The same on PostgreSQL, which ends the turn of a client that is no more."""
    answers = tmp_path / "answers"
    process = start_crashing(url, answers, rounds=40, workers=workers, steps=steps, decode=decode)
    received = received_answers(process, answers, 40 * workers)
    with PostgresLedger(url, deployment=DEPLOYMENT, create=False, key=KEY) as ledger:
        assert check_answers(ledger, received, steps, decode) > 40


def test_a_killed_database_loses_nothing(tmp_path):
    """The database is killed and started again while clients are killed too: what was answered is on record."""
    server, answers = PostgresServer(), tmp_path / "answers"
    try:
        process = start_crashing(server.url(), answers, rounds=12, workers=3, steps=10_000, longest_s=1.5)
        for _ in range(4):
            time.sleep(0.7)
            server.kill()
            server.start()
        received = received_answers(process, answers, 36)
        with PostgresLedger(server.url(), deployment=DEPLOYMENT, create=False, key=KEY) as ledger:
            assert check_answers(ledger, received, 10_000) > 40
    finally:
        server.stop()
