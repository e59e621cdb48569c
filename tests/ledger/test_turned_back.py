"""Several servers, ledgers that go back and come again, kills: what was answered is in the history that survives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_deployment import digest_of

LOOP = Path(__file__).with_name("turn_back_loop.py")

# Minutes find more than seconds: PACPREDICT_TURN_BACK_S=300 make fast
SECONDS = float(os.environ.get("PACPREDICT_TURN_BACK_S", "6"))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_every_answer_is_in_the_history_that_survives(tmp_path, kind):
    """Whatever any client received has one number and one label, those of the latest history; or nobody is answered."""
    done = subprocess.run(
        [sys.executable, "-W", "error", LOOP, tmp_path, kind, str(SECONDS), "7"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60 + 20 * SECONDS,
    )
    assert done.returncode == 0, done.stderr
    n_killed, n_back = map(int, done.stdout.split())
    records = {}
    for line in (tmp_path / "records").read_text().splitlines():
        sequence, digest, label = line.split()
        records[digest] = int(sequence), int(label)
    received = [tuple(map(int, line.split())) for line in (tmp_path / "answers").read_text().splitlines()]
    assert n_killed >= 2
    assert n_back >= 1
    assert len(received) > 20
    for number, sequence, label in received:
        assert records[digest_of(number).hex()] == (sequence, label)
