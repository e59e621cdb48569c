"""Threads that get in each other's way as often as possible, for tests."""

import sys
import threading


def race(target, n_threads):
    """Run target(0), target(1), ... in threads that are switched every microsecond, and wait for all."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=target, args=[t]) for t in range(n_threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
