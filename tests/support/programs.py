"""Programs of operators, for tests: found on this machine, or among the packages of Debian that `make env` got."""

import os
import shutil
import socket
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

_UNPACKED = Path(sys.prefix, "programs", "usr")
# Daemons are often in no user's path.
_WHERE = [*os.environ["PATH"].split(":"), "/usr/sbin", str(_UNPACKED / "bin"), str(_UNPACKED / "sbin")]


def program(name):
    """Return where a program is; None if it is nowhere."""
    return shutil.which(name, path=":".join(_WHERE))


def needs(name, package):
    """Mark tests that need a program, which `make env` gets where there is apt-get."""
    reason = f"{name} is not installed (apt install {package})"
    return pytest.mark.skipif(program(name) is None, reason=reason)


def free_port():
    """Return a port of this machine that nobody uses at the moment."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


@contextmanager
def occupied(port):
    """Listen at a port of this machine, unless somebody does already: no test may need it."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):
            taken.bind(("127.0.0.1", port))
            taken.listen()
        yield


def environment():
    """Return where programs that were unpacked find their libraries."""
    libraries = ":".join(map(str, _UNPACKED.glob("lib/*-linux-gnu")))
    return {
        **os.environ,
        "LD_LIBRARY_PATH": f"{libraries}:{os.environ.get('LD_LIBRARY_PATH', '')}".strip(":"),
    }
