"""Nobody waits for others longer than need be: small requests not for large ones, good ones not for bad ones."""

import asyncio
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pandas as pd
import pytest
from artifacts import fit_small
from live_server import LiveServer, curator_of
from postgres_server import PostgresServer
from records import recipe

from pacpredict.curator import Inquiry
from pacpredict.deployment import Deployment
from pacpredict.exceptions import InvalidQuery, LedgerUnavailable
from pacpredict.serving.jobs import LARGE_ROWS_PER_TURN, Job
from pacpredict.serving.limits import Limits
from pacpredict.serving.metrics import Uncounted
from pacpredict.serving.pipeline import Pipeline
from pacpredict.serving.wire import Message

N_LARGE = 12  # more than there are threads on most machines
LARGE_ROWS = 40


def ask(server, rows, **params):
    return server.http.post("/invocations", json={"dataframe_records": rows, "params": params})


def large(rows, i):
    """Return rows that nobody else asks for: many, and every other time also many bytes."""
    note = "x" * 2_000 if i % 2 else "x"
    return [{**rows[0], "age": float(i), "note": f"{note} {j}"} for j in range(LARGE_ROWS)]


def wait_until(is_so):
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@contextmanager
def stuck(owner, method, is_meant):
    """Let a method wait, in calls that are meant, until the end of the `with`; yields those that came."""
    real, end, calls = getattr(owner, method), threading.Event(), []

    def wait(argument, *others):
        if is_meant(argument):
            calls.append(argument)
            assert end.wait(60)
        return real(argument, *others)

    setattr(owner, method, wait)
    try:
        yield calls
    finally:
        end.set()


def test_votes_on_large_requests(fitted, rows):
    """While models vote on any number of large requests, single rows are answered; then the large ones, too."""
    curator = curator_of(fitted)
    with LiveServer(curator) as server, ThreadPoolExecutor(N_LARGE) as pool:
        with stuck(curator, "requests", lambda inquiries: len(inquiries[0].rows) > 1) as voting:
            replies = [pool.submit(ask, server, large(rows, i)) for i in range(N_LARGE)]
            wait_until(lambda: voting and server.n_waiting == N_LARGE)
            for row in rows[:5]:
                assert ask(server, [row]).status_code == 200
            assert not any(reply.done() for reply in replies)
        assert all(len(reply.result().json()["predictions"]) == LARGE_ROWS for reply in replies)


def test_reading_of_large_requests(fitted, rows):
    """While any number of requests are read that have many rows in few bytes, single rows are answered."""
    with LiveServer(curator_of(fitted)) as server, ThreadPoolExecutor(N_LARGE) as pool:
        with stuck(server.service._scoring._inputs, "rows", lambda given: len(given) > 1) as reading:
            replies = [pool.submit(ask, server, large(rows, 2 * i)) for i in range(N_LARGE)]
            wait_until(lambda: reading and server.n_waiting == N_LARGE)
            for row in rows[:5]:
                assert ask(server, [row]).status_code == 200
            assert not any(reply.done() for reply in replies)
        assert all(len(reply.result().json()["predictions"]) == LARGE_ROWS for reply in replies)


def test_turns_of_large_requests(fitted, rows):
    """A single row waits for at most one turn of a few large requests, however many are ready before it."""
    curator = curator_of(fitted)
    with LiveServer(curator) as server, ThreadPoolExecutor(N_LARGE + 2) as pool:
        sizes = record_sizes(curator)
        with curator.session._ledger.turn():
            first = pool.submit(ask, server, large(rows, 0))
            wait_until(lambda: sizes)  # it waits for the turn
            replies = [pool.submit(ask, server, large(rows, i)) for i in range(1, N_LARGE)]
            wait_until(lambda: server.service._pipeline._large.ready.qsize() == N_LARGE - 1)
            single = pool.submit(ask, server, [rows[1]])
            wait_until(lambda: server.service._pipeline._small.ready.qsize() == 1)
        assert all(reply.result().status_code == 200 for reply in (first, single, *replies))
    assert sizes.index([1]) <= 2
    assert max(map(sum, sizes)) < LARGE_ROWS_PER_TURN + LARGE_ROWS < N_LARGE * LARGE_ROWS


def record_sizes(curator):
    """Let a curator note how many rows the requests of each group have, before it answers them."""
    real, sizes = curator.serve, []

    def serve(requests):
        sizes.append([len(request.digests) for request in requests])
        return real(requests)

    curator.serve = serve
    return sizes


def test_repeated_queries_need_no_turn(fitted, rows):
    """What was answered before is answered again while somebody else has the turn, and others wait for theirs."""
    curator = curator_of(fitted)
    with LiveServer(curator) as server, ThreadPoolExecutor(1) as pool:
        first = ask(server, rows[:3]).json()
        with curator.session._ledger.turn():
            fresh = pool.submit(ask, server, rows[5:6])
            wait_until(server.service._pipeline._turn.locked)
            assert ask(server, rows[:3]).json()["predictions"] == first["predictions"]
            assert not fresh.done()
        assert fresh.result().status_code == 200


def test_requests_that_are_refused(fitted, rows):
    """A row is answered although requests that are refused, and take time to read, never cease to come."""
    is_over = threading.Event()
    with LiveServer(curator_of(fitted)) as server:
        pipeline = server.service._pipeline
        gone = asyncio.Future(loop=pipeline._loop)
        gone.cancel()

        def refuse(_):
            time.sleep(0.002)
            if not is_over.is_set():
                pipeline._small.arrived.put(Job(refuse, gone))
            raise InvalidQuery("nothing")

        try:
            pipeline._small.arrived.put(Job(refuse, gone))
            assert ask(server, rows[:1]).status_code == 200
        finally:
            is_over.set()


def test_what_arrives_while_the_server_closes(fitted, rows, monkeypatch):
    """A request that came in the last round before the threads end is answered, however soon they do."""

    async def at_once(function):
        function()

    monkeypatch.setattr("pacpredict.serving.pipeline.run_in_threadpool", at_once)
    curator = curator_of(fitted)
    message = Message(Inquiry(curator.ensemble.schema.rows(pd.DataFrame(rows[:1]))))

    async def ask_and_close():
        pipeline = Pipeline(curator, Limits(), Uncounted())
        pipeline.start()
        asked = asyncio.create_task(pipeline.answer(lambda _: message, 10))
        await asyncio.sleep(0)  # it waits now, and nothing was handed over yet
        await pipeline.close()
        return await asyncio.wait_for(asked, 10)

    assert len(asyncio.run(ask_and_close()).answers.labels) == 1


def test_looks_at_a_ledger_that_hangs(fitted):
    """However many ask whether the server is ready, they share one look at the ledger, and others are answered."""
    curator = curator_of(fitted)
    end, looks = threading.Event(), []

    def check_ledger():
        looks.append(None)
        assert end.wait(60)

    curator.check_ledger = check_ledger
    with LiveServer(curator) as server, ThreadPoolExecutor(60) as pool:
        pings = [pool.submit(server.http.get, "/v2/health/ready") for _ in range(60)]
        try:
            wait_until(lambda: looks)
            assert server.http.get("/privacy").status_code == 200
        finally:
            end.set()
        assert all(ping.result().status_code == 200 for ping in pings)
        assert len(looks) <= 2  # those who came after the first was over


class Panic(BaseException):
    """As libraries written in Rust raise it."""


@pytest.mark.parametrize("where", ["read", "requests", "serve"])
@pytest.mark.parametrize("kind", [Panic, SystemExit, StopIteration, asyncio.CancelledError, MemoryError])
def test_whatever_a_request_raises(fitted, rows, monkeypatch, where, kind):
    """A request fails with what it raises, however often, and the next one is answered."""
    curator = curator_of(fitted)
    with LiveServer(curator) as server:
        owner = server.service._scoring if where == "read" else curator

        def fail(*_):
            raise kind

        with monkeypatch.context() as patch:
            patch.setattr(owner, where, fail)
            for _ in range(len(server.service._pipeline._small_threads) + 1):
                assert ask(server, rows[:1]).json()["code"] == "internal-error"
        assert ask(server, rows[:1]).status_code == 200


class Failing:
    """Makes a curator fail for every group with a certain request in it, as a database may that cannot store it."""

    def __init__(self, curator):
        self.calls, self.is_gone = [], False
        self._serve, self._check = curator.serve, curator.check_ledger
        curator.serve, curator.check_ledger = self.serve, self.check

    def serve(self, requests):
        self.calls.append(len(requests))
        if self.is_gone or any(request.id == "bad" for request in requests):
            raise LedgerUnavailable("the ledger cannot store this")
        return self._serve(requests)

    def check(self):
        if self.is_gone:
            raise LedgerUnavailable("the ledger is gone")
        self._check()


def ask_together(server, pool, requests):
    """Send requests that are answered in one group; return their replies."""
    pipeline = server.service._pipeline
    with pipeline._turn:
        replies = [pool.submit(ask, server, rows, **params) for rows, params in requests]
        wait_until(lambda: pipeline._small.ready.qsize() == len(requests))
    ask(server, requests[0][0])  # whoever comes next takes the turn for all
    return [reply.result() for reply in replies]


def test_a_request_that_cannot_be_recorded(fitted, rows):
    """If a commit fails because of one request, that one is refused and all others in its group are answered."""
    curator = curator_of(fitted)
    failing = Failing(curator)
    with LiveServer(curator) as server, ThreadPoolExecutor(10) as pool:
        requests = [([row], {"id": "bad" if i in (3, 7) else f"{i}"}) for i, row in enumerate(rows[:10])]
        replies = ask_together(server, pool, requests)
        assert [reply.status_code for reply in replies] == [503 if i in (3, 7) else 200 for i in range(10)]
        assert server.n_released == 8
        assert server.http.get("/v2/health/ready").status_code == 200
    assert max(failing.calls) >= 10


def test_a_ledger_that_is_gone(fitted, rows):
    """If no commit is possible nobody waits for attempts with each request; when it is, all are answered."""
    curator = curator_of(fitted)
    failing = Failing(curator)
    with LiveServer(curator) as server, ThreadPoolExecutor(10) as pool:
        failing.is_gone = True
        requests = [([row], {}) for row in rows[:10]]
        replies = ask_together(server, pool, requests)
        assert [reply.json()["code"] for reply in replies] == ["ledger-unavailable"] * 10
        assert len(failing.calls) <= 3
        assert server.http.get("/v2/health/ready").status_code == 503
        failing.is_gone = False
        assert all(reply.status_code == 200 for reply in ask_together(server, pool, requests))


def test_ids_that_a_database_cannot_index(tmp_path, rows):
    """Whatever id somebody chooses, the requests of others that share a commit with it are answered."""
    home = fit_small(tmp_path / "mixed.pac", how=recipe(step=2.0**-16)).path
    database = PostgresServer()
    try:
        with (
            Deployment.open(home, ledger=database.create_database("ids")) as deployment,
            LiveServer(deployment.curator) as server,
            ThreadPoolExecutor(10) as pool,
        ):
            requests = [([row], {"id": f"{i}"}) for i, row in enumerate(rows[:10])]
            # Four bytes each, and in an order that no database makes shorter.
            long = "".join(random.Random(1).choices([chr(code) for code in range(0x1F300, 0x1F600)], k=1_000))
            requests[4] = ([rows[4]], {"id": long})
            replies = ask_together(server, pool, requests)
            assert [reply.status_code for reply in replies] == [200] * 10
    finally:
        database.stop()
