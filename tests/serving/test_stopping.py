"""A server that is told to stop ends with status 0, and leaves a ledger whose file alone is the whole history."""

import shutil
import signal
import subprocess
import threading
import time

import httpx
import psycopg
import pytest
from artifacts import fit_noise
from kill_queries import N_COLUMNS, query
from live_server import PROGRAM, ServerProcess
from postgres_server import PostgresServer

from pacpredict.artifact.artifact import LEDGER, Artifact
from pacpredict.deployment import Deployment, home_of
from pacpredict.exceptions import LedgerConflict
from pacpredict.serving.draining import interrupted_by_signals

N_CLIENTS = 4
SIGNALS = (signal.SIGTERM, signal.SIGINT)


@pytest.fixture
def home(tmp_path):
    """An artifact whose models disagree on nearly every query."""
    fit_noise(tmp_path / "model.pac", N_COLUMNS, 2.0**-16, 60_000)
    return tmp_path / "model.pac"


def ask(http, number):
    """Return the number of a release and its label."""
    reply = http.post("/invocations", json={"instances": [query(number)]})
    assert reply.status_code == 200, reply.text
    told = reply.json()
    return told["parameters"]["sequence"][0], told["predictions"][0]


def logs_beside(home):
    return sorted(path.name for path in home.iterdir() if path.name.endswith(("-wal", "-shm", "-journal")))


def moved_without_log(home, target):
    """Take an artifact elsewhere with the ledger's file alone, and let its owner say so."""
    shutil.copytree(home, target, ignore=shutil.ignore_patterns(f"{LEDGER}-*"))
    shutil.rmtree(home)
    home_of(Artifact.open(target)).moved(None, None, None)
    return target


def labels_on_record(home):
    """Verify a whole history, and return the label of each release."""
    with Deployment.open(home) as deployment:
        deployment.verify()
        names = deployment.artifact.classes.values
        return {entry.sequence: names[entry.label] for entry in deployment.entries()}


@pytest.mark.parametrize("how", SIGNALS)
def test_a_stop_leaves_one_file(home, tmp_path, how):
    """After SIGTERM or Ctrl-C there is no write-ahead log, and a copy of the ledger's file has every answer."""
    with ServerProcess(home, name="model") as server:
        told = dict(ask(server.http, number) for number in range(30))
        assert logs_beside(home) == [f"{LEDGER}-shm", f"{LEDGER}-wal"]
        assert server.stop(how) == 0
    assert logs_beside(home) == []
    assert "Traceback" not in "".join(server.log)
    assert labels_on_record(moved_without_log(home, tmp_path / "elsewhere.pac")) == told


def test_a_killed_server_leaves_two(home, tmp_path):
    """After kill -9 the newest answers are in the log: the file alone is an older history, and refused."""
    with ServerProcess(home, name="model") as server:
        for number in range(30):
            ask(server.http, number)
        server.stop(signal.SIGKILL)
    assert f"{LEDGER}-wal" in logs_beside(home)
    with pytest.raises(LedgerConflict, match="older copy"):
        moved_without_log(home, tmp_path / "elsewhere.pac")


class Load:
    """Clients that ask different queries until the server takes no more."""

    def __init__(self, url):
        self.told = {}
        self._url = url
        self._clients = [threading.Thread(target=self._ask, args=[i]) for i in range(N_CLIENTS)]
        for client in self._clients:
            client.start()

    def _ask(self, client):
        with httpx.Client(base_url=self._url, timeout=30) as http:
            for i in range(100_000):
                try:
                    sequence, label = ask(http, 1_000_000 * client + i)
                except httpx.TransportError:
                    return
                self.told[sequence] = label

    def wait_for(self, n_answers):
        deadline = time.monotonic() + 60
        while len(self.told) < n_answers:
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def join(self):
        for client in self._clients:
            client.join()


@pytest.mark.parametrize(
    "signals", [*((how,) for how in SIGNALS), (signal.SIGINT, signal.SIGINT), (signal.SIGTERM,) * 3]
)
def test_a_stop_under_load(home, tmp_path, signals):
    """While clients ask, and however often it is said, the stop is as clean: every answer that left is in the file."""
    with ServerProcess(home, name="model") as server:
        load = Load(server.url)
        load.wait_for(50)
        for how in signals:
            server.signal(how)
            time.sleep(0.02)  # two signals of one kind that wait would be one
        assert server.wait() == 0
        load.join()
    assert logs_beside(home) == []
    if signals.count(signal.SIGINT) < 2:  # by which uvicorn breaks off what it does, and says where
        assert "Traceback" not in "".join(server.log)
    on_record = labels_on_record(moved_without_log(home, tmp_path / "elsewhere.pac"))
    assert load.told.items() <= on_record.items()


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.1, 0.2, 0.4])
def test_a_stop_while_it_starts(home, seconds):
    """A server that is stopped between opening its ledger and its first answer leaves no log either."""
    command = [PROGRAM, "serve", home, "--port", "0", "--drain-seconds", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not logs_beside(home):
        assert process.poll() is None
    time.sleep(seconds)
    process.terminate()
    _, said = process.communicate(timeout=30)
    assert (process.returncode, "Traceback" in said) == (0, False), said
    assert logs_beside(home) == []


def test_another_process_has_it_open(home):
    """A log that another process still needs goes when that one closes the ledger."""
    with ServerProcess(home, name="model") as server:
        ask(server.http, 1)
        with Deployment.open(home) as deployment:
            assert server.stop() == 0
            assert deployment.privacy()["queries"] == 1
    assert logs_beside(home) == []


@pytest.fixture
def interruptible():
    """Ctrl-C interrupts, also where the tests run in the background of a script, which ignores it."""
    ignored = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, ignored)


@pytest.mark.usefixtures("interruptible")
def test_closing_is_not_interrupted():
    """Once it closes, neither signal ends the process; afterwards both do what they did before."""
    before = [signal.getsignal(how) for how in SIGNALS]
    with interrupted_by_signals() as ignore:
        for how in SIGNALS:
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(how)
        ignore()
        for how in SIGNALS:
            signal.raise_signal(how)
    assert [signal.getsignal(how) for how in SIGNALS] == before


# --- several workers ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def database():
    server = PostgresServer()
    yield server
    server.stop()


@pytest.mark.parametrize("how", SIGNALS)
def test_workers_stop(home, database, how):
    """With two workers the status is 0, too, and every answer that left is on record."""
    url = database.create_database(f"stopped_by_{how.name}")
    with ServerProcess(home, "--workers", "2", "--ledger", url, name="model") as server:
        load = Load(server.url)
        load.wait_for(50)
        assert server.stop(how) == 0
        load.join()
    assert logs_beside(home) == []
    assert "Traceback" not in "".join(server.log)
    with Deployment.open(home, ledger=url) as deployment:
        deployment.verify()
        names = deployment.artifact.classes.values
        on_record = {entry.sequence: names[entry.label] for entry in deployment.entries()}
    assert load.told.items() <= on_record.items()


def test_workers_that_cannot_start(home, database):
    """A server whose workers find no ledger does not end as if it had been stopped."""
    url = database.create_database("taken_away")
    Deployment.open(home, ledger=url).close()
    command = [PROGRAM, "serve", home, "--port", "0", "--workers", "2", "--ledger", url]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    next(line for line in process.stderr if "serving" in line)
    with psycopg.connect(url) as connection:  # before they have imported what they need
        connection.execute("DROP TABLE state")
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) not in {0, -signal.SIGTERM}
    assert "LedgerDamaged" in said
    assert "Traceback" not in said
