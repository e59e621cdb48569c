"""The end of a server: first it is not ready any more, then it takes no more connections, then it finishes.

Balancers need some seconds to see that a server is not ready. Until then it answers whatever they send, so that nobody
notices its end. Ctrl-C, or a second signal, does not wait.
"""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def drain_first(seconds: float, begin: Callable[[], None]) -> Iterator[None]:
    """Let SIGTERM call `begin`, and what it was handled by so many seconds later; within the event loop."""
    if threading.current_thread() is not threading.main_thread():  # which alone gets signals
        yield
        return
    loop = asyncio.get_running_loop()
    stop = signal.getsignal(signal.SIGTERM)
    is_draining = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal is_draining
        if is_draining or not callable(stop):
            restore_and_raise(number)
            return
        is_draining = True
        begin()
        loop.call_soon_threadsafe(loop.call_later, seconds, stop, number, frame)

    def restore_and_raise(number: int) -> None:
        signal.signal(signal.SIGTERM, stop)
        signal.raise_signal(number)

    signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, stop)
