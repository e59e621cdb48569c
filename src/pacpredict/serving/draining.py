"""The end of a server: first it is not ready any more, then it takes no more connections, then it finishes and closes.

Balancers need some seconds to see that a server is not ready. Until then it answers whatever they send, so that nobody
notices its end. Ctrl-C, or a second signal, does not wait.
"""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_STOPPING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interrupted_by_signals() -> Iterator[Callable[[], None]]:
    """Raise KeyboardInterrupt on SIGTERM, as on Ctrl-C, so that what is open is closed.

    Yields a function that ignores both signals from then on: call it before closing, which must not be interrupted.
    """
    if threading.current_thread() is not threading.main_thread():  # which alone gets signals
        yield lambda: None
        return

    def ignore() -> None:
        for which in _STOPPING:
            signal.signal(which, signal.SIG_IGN)

    before = {which: signal.getsignal(which) for which in _STOPPING}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield ignore
    finally:
        for which, handler in before.items():
            signal.signal(which, handler or signal.SIG_DFL)


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
