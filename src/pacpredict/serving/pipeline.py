"""From bodies to answers: models vote in several threads, and all requests that wait share a commit.

    event loop -> [arrived] -> a thread: read, vote -> [ready] -> the same or another: one turn for all -> event loop

What arrives in one round of the event loop is handed over together when the round is over: a thread that was called for
the first of several would only wait for the interpreter.

A thread that has votes takes the turn and answers everything that is ready. If another has the turn it leaves its
requests there and votes on the next ones: they are answered as soon as that turn ends, all with one commit. So one
client changes threads twice and waits for its own commit only, and many clients need hardly more commits than one.

Large requests have queues and threads of their own, beside those of small ones, and the two kinds take turns with the
ledger. A single row then waits for at most one turn of large requests, however many there are: of one of them, or of
some that have few hundred rows together. These wait for at most one group of small ones each. A small body may have
many rows: they are counted before anything is made of them, and go on among the large ones.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from queue import Empty

from starlette.concurrency import run_in_threadpool

from pacpredict.curator import Answers, Curator
from pacpredict.exceptions import LedgerError, ServerBusy, TooManyRows, VotersUnavailable
from pacpredict.serving.jobs import LARGE_ROWS_PER_TURN, ROWS_PER_TURN, Answered, Job, Lane, Outcome, Read
from pacpredict.serving.limits import Limits
from pacpredict.serving.metrics import Metrics

# Models vote on 64 rows at once, a block of trees, in a third of the time that they need one by one. Two blocks, since
# a thread that comes back from voting waits for the interpreter. More gain little.
_ROWS_PER_VOTE = 128
# A request with more rows is a large one.
_SMALL_ROWS = 32


class Pipeline:
    """Answers the requests of one event loop. Start it there; closing it answers what still waits."""

    def __init__(self, answering: Curator, limits: Limits, metrics: Metrics) -> None:
        self._metrics = metrics
        self.is_ledger_well = True  # as far as was seen last
        self._curator = answering
        self._limits = limits
        self._small_limits = replace(limits, rows=min(limits.rows, _SMALL_ROWS))
        self._n_waiting = 0
        self._gathered: list[tuple[Lane, Job]] = []  # in this round of the event loop
        self._small, self._large = Lane(ROWS_PER_TURN), Lane(LARGE_ROWS_PER_TURN)
        self._turn = threading.Lock()
        self._n_cores = os.cpu_count() or 1
        # One thread more than cores, since one of them waits for the disk.
        self._small_threads = self._threads(self._small, self._n_cores + 1)
        self._large_threads = self._threads(self._large, self._n_cores)
        self._loop: asyncio.AbstractEventLoop

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        for thread in (*self._small_threads, *self._large_threads):
            thread.start()

    async def close(self) -> None:
        """Finish what was begun, in order, and end the threads."""
        self._hand_over()
        await run_in_threadpool(self._end_threads)

    def _end_threads(self) -> None:
        # Small ones first: what is found to be large goes on in the other lane.
        for lane, threads in ((self._small, self._small_threads), (self._large, self._large_threads)):
            for _ in threads:
                lane.arrived.put(None)
            for thread in threads:
                thread.join()

    async def answer(self, read: Read, n_bytes: int) -> Answered:
        """Read a body of this size, vote, and answer with what the ledger has recorded by then."""
        if self._n_waiting >= self._limits.waiting:
            raise ServerBusy(f"{self._n_waiting:,} requests wait already; try again in a moment")
        job = Job(read, self._loop.create_future())
        if not self._gathered:
            self._loop.call_soon(self._hand_over)
        self._gathered.append((self._small if n_bytes <= self._limits.small_bytes else self._large, job))
        self._n_waiting += 1
        try:
            return await job.future
        finally:
            self._n_waiting -= 1

    def _hand_over(self) -> None:
        for lane, job in self._gathered:
            lane.arrived.put(job)
        self._gathered.clear()

    def keep_up(self) -> None:
        """See how far others have come; and if the ledger was not well, whether it is by now."""
        self._note_health(self._curator.keep_up if self.is_ledger_well else self._curator.check_ledger)

    def check_ledger(self) -> None:
        """Raise LedgerError if no answer could be recorded now."""
        self._note_health(self._curator.check_ledger)

    def _note_health(self, look: Callable[[], None]) -> None:
        try:
            look()
        except LedgerError:
            self.is_ledger_well = False
            raise
        self.is_ledger_well = True

    def _threads(self, lane: Lane, number: int) -> list[threading.Thread]:
        # Daemons: a process that ends without `close` does not wait for them, and the ledger bears any end.
        return [threading.Thread(target=self._work, args=[lane], daemon=True) for _ in range(number)]

    def _work(self, lane: Lane) -> None:
        while self._work_once(lane):  # a thread that waits for more keeps nothing of what it did
            pass

    def _work_once(self, lane: Lane) -> bool:
        """Take jobs, vote on them, and answer what is ready; False once there will be no more."""
        # One at a time: reading is Python's work, and whoever waits for it finds more to vote on at once.
        with lane.gathering:
            jobs, is_open = self._next_jobs(lane)
        if not jobs:
            return is_open
        try:
            self._vote(jobs)
        except VotersUnavailable as problem:  # nobody's fault; asking one by one would only take longer
            self._deliver([(job, problem) for job in jobs])
            return is_open
        except BaseException:  # noqa: BLE001  # find out whose it is
            jobs = [job for job in jobs if self._vote_alone(job)]
        self._answer(jobs, lane)
        return is_open

    def _next_jobs(self, lane: Lane) -> tuple[list[Job], bool]:
        """Wait for a job, take others that wait too, and read them; False once there will be no more."""
        jobs: list[Job] = []
        n_rows = 0
        job = lane.arrived.get()
        with lane.floor():
            while job is not None:
                n_rows += self._read(job, lane, jobs)
                if n_rows >= _ROWS_PER_VOTE:
                    return jobs, True
                try:
                    job = lane.arrived.get_nowait()
                except Empty:
                    return jobs, True
        return jobs, False

    def _read(self, job: Job, lane: Lane, jobs: list[Job]) -> int:
        """Read a job, and add it to the others unless it is refused or too large; returns for how many rows it counts.

        None counts for nothing: those that were read before wait for it.
        """
        is_small = lane is self._small
        try:
            job.read(self._small_limits if is_small else self._limits)
        except BaseException as problem:  # noqa: BLE001  # whatever it is belongs to this request, not to the thread
            if is_small and isinstance(problem, TooManyRows):
                self._large.arrived.put(job)
            else:
                self._deliver([(job, problem)])
            return _SMALL_ROWS
        jobs.append(job)
        return job.n_rows

    def _vote(self, jobs: Sequence[Job]) -> None:
        # Whoever asks alone has all cores; otherwise each thread that votes has its own.
        n_threads = self._n_cores if self._n_waiting == 1 else 1
        requests = self._curator.requests([job.message.inquiry for job in jobs], n_threads)
        for job, request in zip(jobs, requests, strict=True):
            job.request = request

    def _vote_alone(self, job: Job) -> bool:
        try:
            self._vote([job])
        except BaseException as problem:  # noqa: BLE001
            self._deliver([(job, problem)])
            return False
        return True

    def _answer(self, jobs: Iterable[Job], lane: Lane) -> None:
        repeats = []
        for job in jobs:
            if job.is_repeat():
                repeats.append(job)
            else:
                lane.ready.put(job)
        if repeats:  # need no turn
            self._deliver(self._serve(repeats))
        # Whoever has the turn looks again after having given it up, so nothing that was put there is left behind.
        while self._has_ready() and self._turn.acquire(blocking=False):
            try:
                for each in (self._small, self._large):
                    if group := each.next_group():
                        self._deliver(self._take_turn(group, each))
            finally:
                self._turn.release()

    def _take_turn(self, group: Sequence[Job], lane: Lane) -> list[Outcome]:
        if sum(job.n_rows for job in group) > _ROWS_PER_VOTE:  # a long one is mostly the database's work
            return self._serve(group)
        with lane.floor():
            return self._serve(group)

    def _has_ready(self) -> bool:
        return not (self._small.ready.empty() and self._large.ready.empty())

    def _serve(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Answer together; if that fails for all, one by one, so that a request cannot harm the others."""
        try:
            return self._serve_together(jobs)
        except BaseException as problem:  # noqa: BLE001  # the requests fail, the thread goes on
            if len(jobs) == 1:
                return [(jobs[0], problem)]
            return self._serve_each(jobs, problem)

    def _serve_together(self, jobs: Sequence[Job]) -> list[Outcome]:
        began = time.perf_counter()
        try:
            outcomes = self._curator.serve([job.request for job in jobs])
        except LedgerError:
            self.is_ledger_well = False
            raise
        if not all(job.is_repeat() for job in jobs):  # a repeated answer is read, not recorded
            self.is_ledger_well = True
            self._metrics.commit(time.perf_counter() - began)
        self._metrics.repeat(
            sum(
                job.n_repeated
                for job, outcome in zip(jobs, outcomes, strict=True)
                if isinstance(outcome, Answers)
            )
        )
        return list(zip(jobs, outcomes, strict=True))

    def _serve_each(self, jobs: Sequence[Job], problem: BaseException) -> list[Outcome]:
        outcomes: list[Outcome] = []
        last: Answers | BaseException = problem
        for i, job in enumerate(jobs):
            # A ledger that is gone would be waited for by each of them.
            if isinstance(last, LedgerError) and not self._is_ledger_usable():
                return [*outcomes, *((rest, last) for rest in jobs[i:])]
            outcomes += self._serve([job])
            last = outcomes[-1][1]
        return outcomes

    def _is_ledger_usable(self) -> bool:
        try:
            self.check_ledger()
        except LedgerError:
            return False
        return True

    def _deliver(self, outcomes: Sequence[Outcome]) -> None:
        self._loop.call_soon_threadsafe(_resolve, outcomes)


def _resolve(outcomes: Iterable[Outcome]) -> None:
    for job, outcome in outcomes:
        # An error knows the job by its traceback: a circle would keep images long after the reply.
        future = job.future
        del job.future
        if future.done():  # cancelled, with its connection
            continue
        if isinstance(outcome, BaseException):
            future.set_exception(_survivable(outcome))
        else:
            future.set_result(Answered(job.message, outcome))


def _survivable(problem: BaseException) -> Exception:
    """Return what fails one request: a panic of Rust or an exit would end more, and a future takes no StopIteration."""
    if isinstance(problem, Exception) and not isinstance(problem, StopIteration):
        return problem
    return RuntimeError(type(problem).__name__).with_traceback(problem.__traceback__)
