"""Threads that share a lane: none of its jobs is lost, and nobody is woken for nothing."""

import threading
import time
from queue import Empty, SimpleQueue

import pytest

from pacpredict.serving.jobs import Lane


class Crew:
    """Threads that gather from a lane, and say which of them took what; they take at most so many at a time."""

    def __init__(self, lane, size, at_once=10**6):
        self.taken = SimpleQueue()
        self._lane, self._at_once = lane, at_once
        self.threads = [threading.Thread(target=self._work, args=[i], daemon=True) for i in range(size)]
        for thread in self.threads:
            thread.start()

    def _work(self, name):
        bell = threading.Lock()
        bell.acquire()
        while self._gather(name, bell):
            pass

    def _gather(self, name, bell):
        with self._lane.gathering(bell) as arrived:
            for _ in range(self._at_once):
                try:
                    job = arrived.get_nowait()
                except Empty:
                    break
                if job is None:
                    return False
                self.taken.put((name, job))
        return True

    def close(self):
        for _ in self.threads:
            self._lane.put(None)
        for thread in self.threads:
            thread.join(30)
        assert not any(thread.is_alive() for thread in self.threads)


def test_no_job_is_lost():
    """Whatever several threads put there while others come and go is taken once, and closing ends them all."""
    lane = Lane()
    crew = Crew(lane, 3, at_once=2)
    n_jobs = 3_000

    def put(first):
        for job in range(first, 4 * n_jobs, 4):
            lane.put(job)
            if job % 97 == 0:
                time.sleep(0.0005)  # let them become idle

    clients = [threading.Thread(target=put, args=[i]) for i in range(4)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    crew.close()
    taken = [crew.taken.get_nowait()[1] for _ in range(crew.taken.qsize())]
    assert sorted(taken) == list(range(4 * n_jobs))


def test_whoever_asks_alone_wakes_one_thread():
    """Jobs that come one after the other are all taken by the same thread."""
    lane = Lane()
    crew = Crew(lane, 3)
    names = set()
    for job in range(50):
        deadline = time.monotonic() + 30
        while len(lane._bells) < 3:  # all are idle
            assert time.monotonic() < deadline
            time.sleep(0.001)
        lane.put(job)
        names.add(crew.taken.get(timeout=30)[0])
    crew.close()
    assert len(names) == 1


def test_a_gatherer_that_fails_leaves_the_rest_to_others():
    """What is raised while somebody gathers keeps nobody else from going on."""
    lane, bell = Lane(), threading.Lock()
    bell.acquire()
    lane.put("bad")

    def fail():
        with lane.gathering(bell) as arrived:
            arrived.get_nowait()
            lane.put("good")
            SimpleQueue().get_nowait()

    with pytest.raises(Empty):
        fail()
    with lane.gathering(bell) as arrived:
        assert arrived.get_nowait() == "good"
