"""The demo does what it prints, as a user and as continuous integration start it, and leaves nothing behind."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from terminal import refused

from pacpredict import Deployment, success_bound
from pacpredict.cli.demo import _ended_by_signals
from pacpredict.demo import patients, server
from pacpredict.demo.server import free_port
from pacpredict.exceptions import DemoFailed

PROGRAM = (sys.executable, "-m", "pacpredict")
QUICK = ("--models", "16")


def environment(folder):
    return {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TMPDIR": str(folder)}


def test_once_prints_the_guarantee(tmp_path):
    """Every later patient is asked over HTTP, and the ledger that is kept says what was printed."""
    done = subprocess.run(
        [*PROGRAM, "demo", "--once", "--json", *QUICK, "--out", "clinic.pac"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    with Deployment.open(tmp_path / "clinic.pac") as deployment:
        kept = deployment.privacy()
        assert deployment.verify().releases == kept["queries"]
    assert {name: said[name] for name in kept} == kept
    assert said["queries"] == said["asked"] == 569 - patients.N_POOL
    assert 0 < said["contested"] < said["asked"]
    assert said["bounds"]["membership"]["success"] == success_bound(said["total_nats"]) < 0.511
    assert 0.85 < said["right"] / said["asked"] <= 1
    assert [path.name for path in tmp_path.iterdir()] == ["clinic.pac"]


class Demo:
    """`pacpredict demo` in a process group of its own, as under a terminal."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            [*PROGRAM, "demo", *QUICK, "--port", "0"],
            env=environment(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )
        self.invitation = {}
        for line in self.process.stdout:
            if not line.strip():
                break
            what, _, how = line.strip().partition("  ")
            self.invitation[what] = how.strip()

    def end(self, how, *, to_all):
        (os.killpg if to_all else os.kill)(self.process.pid, how)
        rest = self.process.stdout.read()
        self.process.stdout.close()
        return self.process.wait(60), rest


@pytest.fixture
def demo(tmp_path):
    demo = Demo(tmp_path)
    yield demo
    if demo.process.poll() is None:
        os.killpg(demo.process.pid, signal.SIGKILL)
        demo.end(signal.SIGKILL, to_all=False)


def shell(command):
    done = subprocess.run(shlex.split(command), capture_output=True, text=True, check=True, timeout=30)
    return json.loads(done.stdout)


@pytest.mark.parametrize(("how", "to_all"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_what_is_printed_works_and_ends(demo, tmp_path, how, to_all):
    """The commands answer as printed, a client asks beside them, and the end takes server, client and files along."""
    assert shell(demo.invitation["Ask"])["predictions"][0] in ("malignant", "benign")
    first = shell(demo.invitation["Look at"])["queries"]
    deadline = time.monotonic() + 30
    while shell(demo.invitation["Look at"])["queries"] == first:
        assert time.monotonic() < deadline, "nobody asks"
        time.sleep(0.1)
    code, rest = demo.end(how, to_all=to_all)
    assert code == 0
    assert "no attacker can determine whether a given record" in " ".join(rest.split())
    assert not list(tmp_path.iterdir())
    with pytest.raises(urllib.error.URLError, match="refused"):
        urllib.request.urlopen(demo.invitation["Open"], timeout=5)


def test_signals_that_were_ignored_end_the_demo():
    """Started in the background of a script, where SIGINT is ignored, it ends by SIGINT as by SIGTERM."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with pytest.raises(KeyboardInterrupt), _ended_by_signals():
                signal.raise_signal(how)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_questions_vary():
    """First each patient, then second measurements and repetitions; all within what a measurement can be."""
    _, later = patients.load()
    asked = patients.questions(later)
    first = [next(asked) for _ in later]
    more = [next(asked) for _ in range(500)]
    assert first == later
    rows = [tuple(patient.row.values()) for patient in (*first, *more)]
    assert 50 < len(rows) - len(set(rows)) < 200  # a fifth is asked again
    assert min(map(min, rows)) >= 0


def test_pool_and_later_patients_are_different():
    """Nobody who was trained on is asked about."""
    pool, later = patients.load()
    assert (len(pool), len(pool) + len(later)) == (400, 569)
    assert not {str(patient.row) for patient in pool} & {str(patient.row) for patient in later}


WORKING = "import time; [sum(range(10**5)) for _ in iter(lambda: time.monotonic() < {0}, False)]; "
LISTENING = (
    "import http.server, sys; server = http.server.HTTPServer(('127.0.0.1', 0), type('H', "
    "(http.server.SimpleHTTPRequestHandler,), {'do_GET': lambda self: self.send_response(200) or self.end_headers()}));"
    " print('serving at http://127.0.0.1:%d' % server.server_port, flush=True); server.serve_forever()"
)


@pytest.fixture
def wait_for(tmp_path, monkeypatch):
    """Wait for a program as the demo waits for its server, with shorter patience."""
    monkeypatch.setattr(server, "_SECONDS_WITHOUT_WORK", 2.0)
    log = tmp_path / "log"

    def wait(program, most=60.0):
        monkeypatch.setattr(server, "_SECONDS_TO_START", most)
        with (
            log.open("wb") as said,
            subprocess.Popen([sys.executable, "-c", program], stdout=said) as process,
        ):
            try:
                return server._wait_until_live(process, log)
            finally:
                process.kill()

    return wait


def test_a_server_that_works_is_waited_for(wait_for):
    """However long it takes to begin: patience ends with the work, not with the clock."""
    end = time.monotonic() + 6
    assert wait_for(WORKING.format(end) + LISTENING).startswith("http://127.0.0.1:")


@pytest.mark.parametrize(
    ("program", "most"),
    [
        ("import time; time.sleep(600)", 60),
        (WORKING.format("time.monotonic() + 1"), 3),
        ("raise SystemExit(3)", 60),
    ],
    ids=["idle", "endless", "dead"],
)
def test_a_server_that_does_not_come_is_not_waited_for(wait_for, program, most):
    """Not one that does nothing, nor one that has ended, nor any for ever."""
    began = time.monotonic()
    with pytest.raises(DemoFailed, match="did not start"):
        wait_for(program, most)
    assert time.monotonic() - began < 45


def test_json_needs_an_end(capsys):
    """Without --once there would be no moment to print it."""
    assert "--once" in refused(capsys, "demo", "--json")


def test_a_taken_port_is_no_obstacle():
    """Whoever has something at port 8000 gets another one."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert free_port(taken.getsockname()[1]) == 0
