"""What is counted for operators, in the format of Prometheus.

What the ledger knows (spending, answers, the use of keys) is read from it when it is asked for, and so is right however
many workers and servers there are, and after a restart. What happens in a process (requests, times) is counted there;
workers put their counts into a directory that they share, and whichever is asked adds them up.

Nothing here depends on the secret, nor on what was asked. An answer is `charged` or `free`: whether the models differed
on a query that was answered for nothing, because the budget was spent, is not told.
"""

import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from pacpredict.serving.responses import REFUSALS

# Where several workers count together; the library looks for it when it is imported.
SHARED_COUNTS = "PROMETHEUS_MULTIPROC_DIR"

# Half a millisecond is what a repeated answer takes; beyond ten seconds clients have given up.
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Request(NamedTuple):
    """What is known of a request when it has been answered."""

    route: str  # as the table of routes writes it; paths are for anybody to invent
    status: int
    seconds: float
    code: str | None = None  # of its refusal
    client: str | None = None  # the name of its key


class Metrics(Protocol):
    """Counts what happens in one process."""

    @property
    def is_counting(self) -> bool:
        """Whether there is anything to write."""

    def write(self, ledger: "LedgerFigures") -> bytes:
        """Return all figures as Prometheus reads them."""

    def samples(self) -> Iterator[Sample]:
        """Yield what all processes of this server have counted."""

    def begin(self) -> None:
        """Count a request that has come."""

    def end(self, request: Request) -> None:
        """Count a request that has been answered."""

    def repeat(self, n_rows: int) -> None:
        """Count rows whose answers were on record."""

    def commit(self, seconds: float) -> None:
        """Count a turn with the ledger that ended with a commit."""


class Uncounted:
    """Counts nothing."""

    is_counting = False

    def write(self, ledger: "LedgerFigures") -> bytes:  # noqa: ARG002
        return b""

    def samples(self) -> Iterator[Sample]:
        return iter(())

    def begin(self) -> None:
        pass

    def end(self, request: Request) -> None:
        pass

    def repeat(self, n_rows: int) -> None:
        pass

    def commit(self, seconds: float) -> None:
        pass


class Counted:
    """Counts for Prometheus."""

    is_counting = True

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # they would double the series
        self._registry = CollectorRegistry()
        own: dict[str, Any] = {"registry": self._registry, "namespace": "pacpredict"}
        self._in_flight = Gauge("requests_in_flight", "Requests now", multiprocess_mode="livesum", **own)
        # By their labels, of which there are few: to look one up in the library takes as long as to count.
        self._requests = cache(Counter("requests", "Requests answered", ["route", "status"], **own).labels)
        self._refusals = cache(Counter("refusals", "Requests refused", ["code"], **own).labels)
        self._clients = cache(Counter("key_requests", "Requests with a key", ["key"], **own).labels)
        self._latency = cache(
            Histogram("request_seconds", "From head to reply", ["route"], buckets=_SECONDS, **own).labels
        )
        for refusal in REFUSALS.values():  # from 0 on: of a count that begins at 1 nobody sees that it rose
            self._refusals(refusal.code)
        self._commits = Histogram("commit_seconds", "A turn that was committed", buckets=_SECONDS, **own)
        self._repeated = Counter("repeated_answers", "Rows whose answers were on record", **own)

    def begin(self) -> None:
        self._in_flight.inc()

    def end(self, request: Request) -> None:
        self._in_flight.dec()
        self._requests(request.route, request.status).inc()
        self._latency(request.route).observe(request.seconds)
        if request.code is not None:
            self._refusals(request.code).inc()
        if request.client is not None:
            self._clients(request.client).inc()

    def repeat(self, n_rows: int) -> None:
        self._repeated.inc(n_rows)

    def commit(self, seconds: float) -> None:
        self._commits.observe(seconds)

    def write(self, ledger: "LedgerFigures") -> bytes:
        return generate_latest(_registry_of(_Ledger(ledger))) + generate_latest(self._together())

    def samples(self) -> Iterator[Sample]:
        for family in self._together().collect():
            yield from family.samples

    def _together(self) -> CollectorRegistry:
        """Return the counts of all workers."""
        shared = os.environ.get(SHARED_COUNTS)
        if shared is None:
            return self._registry
        _forget_the_dead(Path(shared))
        together = CollectorRegistry()
        MultiProcessCollector(together, shared)  # type: ignore[no-untyped-call]
        return together


class LedgerFigures(NamedTuple):
    """What the server and its ledger say, when they are asked."""

    is_well: bool
    is_ready: bool
    spent: "Spent | None"  # None where the ledger cannot be read now
    keys: Sequence[dict[str, Any]]


class Spent(NamedTuple):
    nats: float
    total_nats: float
    charged: int  # answers
    free: int


class _Ledger(Collector):
    def __init__(self, figures: LedgerFigures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        yield _gauge("ledger_up", "Whether answers could be recorded when last tried", self._figures.is_well)
        yield _gauge("ready", "Whether this process takes requests", self._figures.is_ready)
        spent = self._figures.spent
        if spent is None:
            return
        yield _gauge("spent_nats", "Privacy budget that is spent", spent.nats)
        yield _gauge("remaining_nats", "Privacy budget that is left", max(0.0, spent.total_nats - spent.nats))
        yield _gauge("total_nats", "Privacy budget in all", spent.total_nats)
        answers = CounterMetricFamily("pacpredict_answers", "Answers on record", labels=["kind"])
        answers.add_metric(["charged"], spent.charged)
        answers.add_metric(["free"], spent.free)
        yield answers
        yield from self._of_keys()

    def _of_keys(self) -> Iterator[Metric]:
        valid = [key for key in self._figures.keys if key["state"] == "valid"]
        for name, what, field in (
            ("key_queries", "New answers of a key", "used_queries"),
            ("key_queries_limit", "New answers that a key may have", "queries"),
            ("key_spent_nats", "What a key has spent", "used_nats"),
            ("key_nats_limit", "What a key may spend", "nats"),
        ):
            family = GaugeMetricFamily(f"pacpredict_{name}", what, labels=["key"])
            for key in valid:
                if key[field] is not None:
                    family.add_metric([key["name"]], key[field])
            yield family


def _gauge(name: str, what: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"pacpredict_{name}", what, value=float(value))


def _registry_of(collector: Collector) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(collector)
    return registry


def _forget_the_dead(directory: Path) -> None:
    """Take out what workers that have ended had in flight; their counts stay."""
    for file in directory.glob("gauge_live*_*.db"):
        found = re.search(r"_([0-9]+)\.db$", file.name)
        if found and _is_gone(int(found[1])):
            mark_process_dead(found[1], str(directory))  # type: ignore[no-untyped-call]


def _is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
