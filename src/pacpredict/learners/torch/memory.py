"""How much memory there is to keep networks in."""

import os
from contextlib import suppress
from pathlib import Path

_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")  # of a container; "max" where there is none


def total_memory() -> int:
    """Return the bytes of this machine, or those that its container may use."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):
        return min(machine, int(_CGROUP_LIMIT.read_text()))
    return machine
