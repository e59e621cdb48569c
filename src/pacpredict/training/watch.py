"""Telling whoever waits how far a fit is, while models are being trained elsewhere."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pacpredict.training.fit import Progress
from pacpredict.training.scratch import Scratch

_SECONDS_BETWEEN_LOOKS = 1.0


@contextmanager
def watching(scratch: Scratch, progress: Progress, done: int, total: int) -> Iterator[Callable[[], None]]:
    """Report progress every second, and whenever the function that this gives is called for a finished model."""
    is_over, turn = threading.Event(), threading.Lock()

    def tell(more: int = 0) -> None:
        nonlocal done
        with turn:
            done += more
            progress(done, total, scratch.stages())

    def look() -> None:
        while not is_over.wait(_SECONDS_BETWEEN_LOOKS):
            if scratch.stages():  # most learners leave none: their models are finished soon
                tell()

    tell()
    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield lambda: tell(1)
    finally:
        is_over.set()
        watcher.join()
