"""A bar with the time that is left, on standard error, so that output can be piped."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function that takes how many of all are done. Without a terminal it writes a line every half minute."""
    if sys.stderr.isatty():
        with _bar(what) as update:
            yield update
    else:
        yield _lines(what)


@contextmanager
def _bar(what: str) -> Iterator[Callable[[int, int], None]]:
    from rich.console import Console  # noqa: PLC0415  # rich is imported where something is drawn
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    # Models take long: the time left is estimated from the last hour, not from the last seconds.
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=3600) as progress:
        task = progress.add_task(what)
        yield lambda done, total: progress.update(task, completed=done, total=total)


_SECONDS_BETWEEN_LINES = 30.0


def _lines(what: str) -> Callable[[int, int], None]:
    started, before = time.monotonic(), -1
    said = started - _SECONDS_BETWEEN_LINES

    def update(done: int, total: int) -> None:
        nonlocal said, before
        if before < 0:
            before = done  # of an earlier run: it says nothing about the speed of this one
        now = time.monotonic()
        if done == total or now - said >= _SECONDS_BETWEEN_LINES:
            said = now
            left = (total - done) * (now - started) / (done - before) if done > before else None
            rest = "" if left is None or done == total else f", about {left / 60:.1f} min left"
            print(f"{done}/{total} {what}{rest}", file=sys.stderr, flush=True)

    return update
