"""From inquiries to answers: models vote in several threads, and all requests that wait share a commit.

    event loop -> [asked] -> a thread: read, vote -> [ready] -> the same or another: one turn for all -> event loop

A thread that has votes takes the turn and answers everything that is ready. If another has the turn it leaves its
requests there and votes on the next ones: they are answered as soon as that turn ends, all with one commit. So one
client changes threads twice and waits for its own commit only, and many clients need hardly more commits than one.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import NamedTuple

from pacpredict.curator import Answers, Curator
from pacpredict.exceptions import LedgerError, ServerBusy
from pacpredict.mechanism.request import Request
from pacpredict.serving.inquiry import Inquiry

# Models vote on this many rows at once in a third of the time that they need one by one; more gain little.
_ROWS_PER_VOTE = 32
# A turn keeps other processes waiting; this many releases take some tens of milliseconds.
_ROWS_PER_TURN = 1_000

Read = Callable[[], Inquiry]


class Answered(NamedTuple):
    inquiry: Inquiry
    answers: Answers


class _Asked(NamedTuple):
    read: Read
    future: "asyncio.Future[Answered]"


class _Read(NamedTuple):
    inquiry: Inquiry
    future: "asyncio.Future[Answered]"


class _Ready(NamedTuple):
    inquiry: Inquiry
    request: Request
    future: "asyncio.Future[Answered]"


Outcome = tuple["asyncio.Future[Answered]", Answered | Exception]


class Pipeline:
    """Answers inquiries of one event loop. Start it there; closing it answers what still waits."""

    def __init__(self, curator: Curator, most_waiting: int, n_threads: int | None = None) -> None:
        self.is_ledger_well = True  # as far as was seen last
        self._curator = curator
        self._most_waiting = most_waiting
        self._n_waiting = 0
        self._asked: SimpleQueue[_Asked | None] = SimpleQueue()
        self._ready: SimpleQueue[_Ready] = SimpleQueue()
        self._turn = threading.Lock()
        # One thread more than cores, since one of them waits for the disk. Daemons: who stops the server a second time
        # will not wait, and the ledger bears any end.
        self._n_cores = os.cpu_count() or 1
        n_threads = n_threads or self._n_cores + 1
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(n_threads)]
        self._loop: asyncio.AbstractEventLoop

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Finish what was begun, in order, and end the threads."""
        for _ in self._threads:
            self._asked.put(None)
        for thread in self._threads:
            thread.join()

    async def answer(self, read: Read) -> Answered:
        """Read, vote, and answer with what the ledger has recorded by then."""
        if self._n_waiting >= self._most_waiting:
            raise ServerBusy(f"{self._n_waiting:,} requests wait already; try again in a moment")
        future: asyncio.Future[Answered] = self._loop.create_future()
        self._n_waiting += 1
        try:
            self._asked.put(_Asked(read, future))
            return await future
        finally:
            self._n_waiting -= 1

    def check_ledger(self) -> None:
        """Raise LedgerError if the ledger cannot be read now."""
        try:
            self._curator.session.snapshot()
        except LedgerError:
            self.is_ledger_well = False
            raise
        self.is_ledger_well = True

    def _work(self) -> None:
        is_open = True
        while is_open:
            batch, is_open = self._next_batch()
            if not batch:
                continue
            try:
                self._vote(batch)
            except Exception:  # noqa: BLE001  # find out whose it is
                for one in batch:
                    self._vote_alone(one)
            self._answer_ready()

    def _next_batch(self) -> tuple[list[_Read], bool]:
        """Wait for an inquiry and take others that wait too; False once there will be no more."""
        batch: list[_Read] = []
        n_rows = 0
        asked = self._asked.get()
        while asked is not None:
            try:
                inquiry = asked.read()
            except Exception as problem:  # noqa: BLE001  # whatever it is belongs to this request, not to the thread
                self._deliver([(asked.future, problem)])
            else:
                batch.append(_Read(inquiry, asked.future))
                n_rows += len(inquiry.rows)
            if n_rows >= _ROWS_PER_VOTE:
                return batch, True
            try:
                asked = self._asked.get_nowait()
            except Empty:
                return batch, True
        return batch, False

    def _vote(self, batch: Sequence[_Read]) -> None:
        # Who asks alone has all cores; otherwise each thread that votes has its own.
        n_threads = self._n_cores if self._n_waiting == 1 else 1
        voted = self._curator.questions([inquiry.rows for inquiry, _ in batch], n_threads)
        for (inquiry, future), questions in zip(batch, voted, strict=True):
            request = Request(questions, inquiry.id, None, inquiry.partial)
            self._ready.put(_Ready(inquiry, request, future))

    def _vote_alone(self, one: _Read) -> None:
        try:
            self._vote([one])
        except Exception as problem:  # noqa: BLE001
            self._deliver([(one.future, problem)])

    def _answer_ready(self) -> None:
        # Whoever has the turn looks again after having given it up, so nothing that was put there is left behind.
        while not self._ready.empty() and self._turn.acquire(blocking=False):
            try:
                if group := self._next_group():
                    self._deliver(self._serve(group))
            finally:
                self._turn.release()

    def _next_group(self) -> list[_Ready]:
        group: list[_Ready] = []
        n_rows = 0
        while n_rows < _ROWS_PER_TURN:
            try:
                ready = self._ready.get_nowait()
            except Empty:
                break
            group.append(ready)
            n_rows += len(ready.request.questions)
        return group

    def _serve(self, group: Sequence[_Ready]) -> list[Outcome]:
        try:
            outcomes = self._curator.session.serve([ready.request for ready in group])
        except Exception as problem:  # noqa: BLE001  # the requests fail, the thread goes on
            self.is_ledger_well = self.is_ledger_well and not isinstance(problem, LedgerError)
            return [(ready.future, problem) for ready in group]
        self.is_ledger_well = True
        return [
            (
                ready.future,
                outcome
                if isinstance(outcome, Exception)
                else Answered(ready.inquiry, self._curator.answers(outcome)),
            )
            for ready, outcome in zip(group, outcomes, strict=True)
        ]

    def _deliver(self, outcomes: list[Outcome]) -> None:
        self._loop.call_soon_threadsafe(_resolve, outcomes)


def _resolve(outcomes: list[Outcome]) -> None:
    for future, outcome in outcomes:
        if future.done():  # cancelled, with its connection
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
