"""Long work says how far it has come, also where nobody watches a terminal."""

import os
import pty
import re
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from pacpredict.cli import progress


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.05)


def test_the_promise_is_five_seconds():
    """A log shows a sign of life at least every five seconds."""
    assert progress._SECONDS_BETWEEN_LINES <= 5


def test_quick_work_takes_two_lines(capsys):
    """What is done within a beat says where it began and that it ended."""
    with progress.progress_bar("models") as update:
        for done in range(5):
            update(done, 4)
    assert capsys.readouterr().err == "0/4 models\n4/4 models\n"


def test_a_line_at_each_beat_without_news(quick, capsys):
    """While the first model is being trained, which may take an hour, the log goes on."""
    with progress.progress_bar("models") as update:
        update(0, 4)
        time.sleep(0.5)
    lines = capsys.readouterr().err.splitlines()
    assert 4 <= len(lines) <= 11
    assert lines[0] == "0/4 models"
    assert all(re.fullmatch(r"0/4 models after \d s", line) for line in lines[1:])


def test_the_time_left_is_that_of_this_run(quick, capsys):
    """Models of an earlier run cost nothing now, so they do not count in the estimate."""
    with progress.progress_bar("models") as update:
        update(100, 110)
        time.sleep(0.3)
        update(105, 110)
        time.sleep(0.2)
        update(110, 110)
    lines = capsys.readouterr().err.splitlines()
    assert any(re.fullmatch(r"105/110 models after \d s, about [01] s left", line) for line in lines)
    assert lines[-1] == "110/110 models"


def test_nothing_is_said_after_the_end(quick, capsys):
    """Interrupted or done, the lines end with the work."""
    with suppress(KeyboardInterrupt), progress.progress_bar("models") as update:
        update(0, 4)
        raise KeyboardInterrupt
    before = capsys.readouterr().err
    time.sleep(0.2)
    assert (before, capsys.readouterr().err) == ("0/4 models\n", "")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "0 s"), (89, "89 s"), (90, "1.5 min"), (3600, "60.0 min"), (9000, "2.5 h")]
)
def test_durations(seconds, text):
    """Times are in the unit that people would use."""
    assert progress._duration(seconds) == text


@pytest.mark.parametrize("columns", [30, 50, 80])
def test_a_bar_fits_the_terminal(columns):
    """In a terminal there is a bar, within its width, however narrow."""
    program = (
        "from pacpredict.cli.progress import progress_bar\n"
        "with progress_bar('models') as update:\n"
        "    [update(done, 128) for done in range(129)]\n"
    )
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "LINES": "24", "TERM": "xterm"}
    process = subprocess.Popen([sys.executable, "-c", program], stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:  # the other end was closed
        pass
    assert process.wait() == 0
    os.close(ours)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    lines = [line for line in re.split(r"[\r\n]+", plain) if line.strip()]
    assert "128/128" in lines[-1]
    assert max(map(len, lines)) <= columns
