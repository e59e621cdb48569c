"""What is on its way through the pipeline, and where it waits."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import NamedTuple

from pacpredict.curator import Answers
from pacpredict.mechanism.question import UNVOTED, Request
from pacpredict.serving.limits import Limits
from pacpredict.serving.wire import Message

# How long a thread lets another finish: as a short turn takes. Longer ones wait for a disk, or for others.
_COURTESY_S = 0.003

# A turn keeps others waiting, and other processes; a thousand releases take some tens of milliseconds. Single rows wait
# for a turn of large requests.
ROWS_PER_TURN, LARGE_ROWS_PER_TURN = 1_000, 256

Read = Callable[[Limits], Message]


class Answered(NamedTuple):
    message: Message
    answers: Answers


class Job:
    """A request on its way: its body is read, models vote, it is answered."""

    message: Message  # once it was read
    request: Request  # once the models have voted

    def __init__(self, read: Read, future: "asyncio.Future[Answered]") -> None:
        self.future = future
        self._read = read

    @property
    def n_rows(self) -> int:
        return len(self.message.inquiry.rows)

    def read(self, limits: Limits) -> None:
        """Read the body, and forget it."""
        self.message = self._read(limits)
        del self._read

    @property
    def n_repeated(self) -> int:
        """Rows whose answers were on record."""
        return sum(row == UNVOTED for row in self.request.rows)

    def is_repeat(self) -> bool:
        """Tell whether all answers are on record."""
        return all(row == UNVOTED for row in self.request.rows)


class Lane:
    """The jobs of one size: those that nobody has begun with, and those that wait for a turn."""

    def __init__(self, rows_per_turn: int) -> None:
        self._rows_per_turn = rows_per_turn
        self.arrived: SimpleQueue[Job | None] = SimpleQueue()
        self.gathering = threading.Lock()  # whoever has it takes jobs and reads them
        self.ready: SimpleQueue[Job] = SimpleQueue()
        self._floor = threading.Lock()

    @contextmanager
    def floor(self) -> Iterator[None]:
        """Do Python's work while the others of this lane, for a while, do none.

        Two threads that do it at once wait for the interpreter with every statement of the database.
        """
        has_it = self._floor.acquire(timeout=_COURTESY_S)
        try:
            yield
        finally:
            if has_it:
                self._floor.release()

    def next_group(self) -> list[Job]:
        """Take what is answered in one turn: so many rows, or a request that has more."""
        group: list[Job] = []
        n_rows = 0
        while n_rows < self._rows_per_turn:
            try:
                job = self.ready.get_nowait()
            except Empty:
                break
            group.append(job)
            n_rows += job.n_rows
        return group


Outcome = tuple[Job, Answers | BaseException]
