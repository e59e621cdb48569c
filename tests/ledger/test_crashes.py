"""Killed processes: whatever a client received is in the ledger, and the history is whole."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pacpredict.ledger.sqlite import SqliteLedger
from small_deployment import DEPLOYMENT, check_history, digest_of

LOOP = Path(__file__).with_name("crash_loop.py")


def crash(where, answers, *, rounds, workers, steps, seed):
    """Kill workers for some rounds; return what clients received as {query: {(sequence, label)}}."""
    done = subprocess.run(
        [sys.executable, "-W", "error", LOOP, where, answers, *map(str, (rounds, workers, steps, seed))],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == rounds * workers, done.stderr
    received = {}
    for line in answers.read_text().splitlines():
        number, sequence, label = map(int, line.split())
        received.setdefault(number, set()).add((sequence, label))
    return received


def check_answers(ledger, received, steps):
    """Check that every answer ever received is on record, the same for each query, and within the budget."""
    records = check_history(ledger)
    assert ledger.load().spent_steps <= steps
    by_digest = {record.entry.digest: (record.entry.sequence, record.entry.label) for record in records}
    assert received
    for number, answers in received.items():
        assert answers == {by_digest[digest_of(number)]}
    return len(records)


@pytest.mark.parametrize(("workers", "steps"), [(1, 10_000), (3, 10_000), (2, 60)])
def test_killed_processes_lose_nothing(tmp_path, workers, steps):
    """Workers killed at failpoints and at random moments, alone and racing, with plenty of budget and with little."""
    path = tmp_path / "ledger.sqlite"
    received = crash(path, tmp_path / "answers", rounds=50, workers=workers, steps=steps, seed=workers)
    with SqliteLedger(path, deployment=DEPLOYMENT, create=False) as ledger:
        assert check_answers(ledger, received, steps) > 50
