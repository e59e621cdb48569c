"""The server of the demo: `pacpredict serve` in a process of its own, as anybody would start it."""

import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from pacpredict.exceptions import DemoFailed

# Where kernels cannot be cached, the server compiles them: seconds, or many minutes on a machine that is busy. So it is
# waited for as long as it works; a process that has done nothing for two minutes will not come to an end.
_SECONDS_TO_START = 3600.0
_SECONDS_WITHOUT_WORK = 120.0
_SECONDS_TO_STOP = 35.0  # the server gives itself 30 to finish what it began
_PROGRAM = (sys.executable, "-m", "pacpredict")


@contextmanager
def compiling() -> Iterator[None]:
    """Have kernels compiled by another process meanwhile, and wait for it at the end."""
    process = subprocess.Popen(  # noqa: S603  # this very program
        [*_PROGRAM, "compile"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
        process.wait()
    finally:
        process.kill()
        process.wait()


@contextmanager
def serving(artifact: Path, port: int, log: Path) -> Iterator[str]:
    """Serve an artifact; gives its address when it answers, and stops it at the end, when all is answered."""
    command = [*_PROGRAM, "serve", str(artifact), "--port", str(port), "--drain-seconds", "0"]
    with (
        log.open("wb") as said,
        subprocess.Popen(command, stdout=said, stderr=said) as process,  # noqa: S603  # this very program
    ):
        try:
            yield _wait_until_live(process, log)
        finally:
            process.terminate()
            try:
                process.wait(_SECONDS_TO_STOP)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_until_live(process: "subprocess.Popen[bytes]", log: Path) -> str:
    """Return the address that the server says it has, once it answers there."""
    began = worked = time.monotonic()
    before = None
    while process.poll() is None:
        found = re.search(r" at (http://\S+)\n", log.read_text())
        if found and _is_live(found[1]):
            return found[1]
        now, work = time.monotonic(), _work_of(process.pid, log)
        if work != before or work is None:
            before, worked = work, now
        if now > min(worked + _SECONDS_WITHOUT_WORK, began + _SECONDS_TO_START):
            break
        time.sleep(0.05)
    raise DemoFailed(f"the server did not start; it said: {log.read_text()[-2000:]}")


def _work_of(process: int, log: Path) -> tuple[str, int] | None:
    """Return what changes as long as a process works: its processor time and its log; None where nobody tells."""
    try:
        said = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    time_used = said.rpartition(")")[2].split()[11:15]  # its own and of children, by user and system: proc(5)
    return " ".join(time_used), log.stat().st_size


def _is_live(url: str) -> bool:
    try:
        with urlopen(f"{url}/v2/health/live", timeout=5):  # noqa: S310  # our own address
            return True
    except OSError:
        return False


def free_port(wanted: int) -> int:
    """Return a port if nobody of this machine listens at it, and otherwise 0, by which the server takes a free one."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            return 0
    return wanted
