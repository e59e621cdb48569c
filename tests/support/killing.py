"""Failpoints that kill the process they are reached in."""

import os
import signal


def killer(point, times):
    """Return failpoints that kill the process when `point` is reached for the given time."""
    left = [times]

    def at(here):
        left[0] -= here == point
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return at
