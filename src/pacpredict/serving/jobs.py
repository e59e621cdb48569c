"""What is on its way through the pipeline, and where it waits."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import NamedTuple

from pacpredict.curator import Answers
from pacpredict.mechanism.question import UNVOTED, Request
from pacpredict.serving.wire import Message

# A turn keeps other processes waiting; this many releases take some tens of milliseconds.
_ROWS_PER_TURN = 1_000

Read = Callable[[], Message]


class Answered(NamedTuple):
    message: Message
    answers: Answers


class Job:
    """A request on its way: its body is read, models vote, it is answered."""

    message: Message  # once it was read
    request: Request  # once the models have voted

    def __init__(self, read: Read, future: "asyncio.Future[Answered]") -> None:
        self.future = future
        self._read: Read | None = read

    @property
    def n_rows(self) -> int:
        return len(self.message.inquiry.rows)

    def read(self) -> None:
        """Read the body, unless that was done."""
        if self._read is not None:
            self.message = self._read()
            self._read = None

    @property
    def n_repeated(self) -> int:
        """Rows whose answers were on record."""
        return sum(row == UNVOTED for row in self.request.rows)

    def is_repeat(self) -> bool:
        """Tell whether all answers are on record."""
        return all(row == UNVOTED for row in self.request.rows)


class Lane:
    """The jobs of one size: those that nobody has begun with, and those that wait for a turn.

    One thread at a time gathers: it takes jobs and reads them. Threads that have nothing to do wait for their bell, and
    one is called when a job comes and nobody gathers, or when whoever did leaves some behind. The last to become idle
    is called first: what it needs is still in the caches, and whoever asks alone wakes nobody else.
    """

    def __init__(self) -> None:
        self.ready: SimpleQueue[Job] = SimpleQueue()
        self._arrived: SimpleQueue[Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._is_gathering = False
        self._bells: list[threading.Lock] = []  # of idle threads
        self._n_calls = 0  # that nobody was idle for

    def put(self, job: Job | None) -> None:
        """Let a job wait, or with None end a thread."""
        self._arrived.put(job)
        with self._lock:
            if not self._is_gathering:
                self._is_gathering = True
                self._call()

    @contextmanager
    def gathering(self, bell: threading.Lock) -> Iterator["SimpleQueue[Job | None]"]:
        """Wait until there is something to gather, and lend what has arrived.

        The bell is a thread's own, a lock that is taken: to release it wakes the thread.
        """
        with self._lock:
            is_called = self._n_calls > 0
            if is_called:
                self._n_calls -= 1
            else:
                self._bells.append(bell)
        if not is_called:
            bell.acquire()
        try:
            yield self._arrived
        finally:
            with (
                self._lock
            ):  # whoever puts a job there from now on finds that nobody gathers, or leaves it to the next
                self._is_gathering = not self._arrived.empty()
                if self._is_gathering:
                    self._call()

    def _call(self) -> None:
        if self._bells:
            self._bells.pop().release()
        else:
            self._n_calls += 1

    def next_group(self) -> list[Job]:
        """Take what is answered in one turn."""
        group: list[Job] = []
        n_rows = 0
        while n_rows < _ROWS_PER_TURN:
            try:
                job = self.ready.get_nowait()
            except Empty:
                break
            group.append(job)
            n_rows += job.n_rows
        return group


Outcome = tuple[Job, Answers | BaseException]
