"""Threads that are kept for the next call: starting one takes longer than half of a vote."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

T = TypeVar("T")


def run_together(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Run jobs at the same time, the first of them in this thread, and return what each returns."""
    others = [_pool().submit(job) for job in jobs[1:]]
    return [jobs[0](), *(other.result() for other in others)]


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="votes")


# A forked process has none of its parent's threads; it starts its own.
os.register_at_fork(after_in_child=_pool.cache_clear)
