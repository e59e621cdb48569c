"""How far long work has come and how long it will take, on standard error, so that output can be piped."""

import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pacpredict.learners.journal import Stage
    from pacpredict.training.fit import Progress

    Doing = Mapping[int, Stage] | None

# Without a terminal: often enough to see in a log that something is still at work.
_SECONDS_BETWEEN_LINES = 5.0

# Characters that counts and times take; a terminal with no room beside them gets no bar.
_BESIDE_THE_BAR = 36
_WIDEST_BAR = 40
_MOST_SHOWN = 2  # models of which it is said how far they are


@contextmanager
def progress_bar(what: str) -> Iterator["Progress"]:
    """Give a function that takes how many of all are done. Without a terminal there is a line every five seconds."""
    if sys.stderr.isatty():
        with _bar(what) as update:
            yield update
    else:
        lines = _Lines(what)
        try:
            yield lines.update
        finally:
            lines.end()


@contextmanager
def _bar(what: str) -> Iterator["Progress"]:
    from rich.console import Console  # noqa: PLC0415  # rich is imported where something is drawn
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column  # noqa: PLC0415

    console = Console(stderr=True)
    columns = [TextColumn(what), MofNCompleteColumn(), TimeRemainingColumn()]
    if (room := console.width - len(what) - _BESIDE_THE_BAR) > 0:
        columns[1:1] = [BarColumn(min(room, _WIDEST_BAR))]
        columns[-1:] = [TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()]
        columns += [TextColumn("{task.description}", table_column=Column(no_wrap=True))]
    # Models take long: the time left is estimated from the last hour, not from the last seconds.
    with Progress(*columns, console=console, speed_estimate_period=3600) as progress:
        task = progress.add_task("")

        def update(done: int, total: int, doing: "Doing" = None) -> None:
            progress.update(task, completed=_work(done, doing), total=total, description=_describe(doing))

        yield update


class _Lines:
    """Writes a line at the first news and at the last, and in between at each beat, news or not."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._started = time.monotonic()
        self._before = 0.0  # done by an earlier run, which says nothing about the speed of this one
        self._done = self._total = -1
        self._doing: Doing = None
        self._ended = threading.Event()
        self._beats = threading.Thread(target=self._beat, daemon=True)

    def update(self, done: int, total: int, doing: "Doing" = None) -> None:
        is_first, self._done, self._total, self._doing = self._total < 0, done, total, doing
        if is_first:
            self._before = _work(done, doing)
            self._say()
            self._beats.start()
        elif done == total:
            self._ended.set()
            self._say()

    def end(self) -> None:
        self._ended.set()
        if self._beats.is_alive():
            self._beats.join()

    def _beat(self) -> None:
        while not self._ended.wait(_SECONDS_BETWEEN_LINES):
            self._say()

    def _say(self) -> None:
        done, total, seconds = self._done, self._total, time.monotonic() - self._started
        work, line = _work(done, self._doing), f"{done}/{total} {self._what}"
        if done < total and seconds >= _SECONDS_BETWEEN_LINES:
            line += f" after {_duration(seconds)}"
            if work > self._before:
                line += f", about {_duration((total - work) * seconds / (work - self._before))} left"
        if described := _describe(self._doing):
            line += f"; {described}"
        print(line, file=sys.stderr, flush=True)


def _work(done: int, doing: "Doing") -> float:
    """Return how many models' worth of work is done."""
    return done + sum(stage.share for stage in (doing or {}).values())


def _describe(doing: "Doing") -> str:
    """Say how far models are that are being trained."""
    stages = list((doing or {}).items())
    shown = [
        f"model {i} in epoch {stage.epoch} of {stage.n_epochs}, loss {stage.loss:.3g}"
        for i, stage in stages[:_MOST_SHOWN]
    ]
    return "; ".join([*shown, *([f"{len(stages) - _MOST_SHOWN} more"] if len(stages) > _MOST_SHOWN else [])])


def _duration(seconds: float) -> str:
    """Return a time as people say it."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


@contextmanager
def saying_how_to_go_on() -> Iterator[None]:
    """Tell whoever interrupts what can be resumed that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        print("interrupted; run the same command again to go on from here", file=sys.stderr)
        raise
