"""What was asked lately: answers by kind over time, and how long they took."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import NamedTuple

from pacpredict.pages.document import facts, figure, section
from pacpredict.pages.markup import Child, Markup, tag
from pacpredict.pages.svg import histogram, key, stacked

# In the order in which bars are stacked: how answers came about, and what people call it.
KINDS = {
    "contested": "charged: models differ",
    "charged": "charged, as every answer is",
    "agreed": "free: all models agree",
    "belief": "free: drawn from the belief",
    "free": "free: either of these",
    "repeated": "repeated",
    "refused": "refused",
}
_RARE = {"charged", "belief", "free"}


class Counts(NamedTuple):
    """What a server has done since it was started, all of its workers together."""

    answers: Mapping[str, float]  # by kind
    latency: Sequence[tuple[float, float]] = ()  # seconds, and how many requests took no longer; rising


@dataclass(frozen=True)
class Span:
    """A time that is looked back on, in bars of one width."""

    title: str
    width: timedelta
    bars: int


SPANS = (
    Span("the last 10 minutes", timedelta(seconds=10), 60),
    Span("the last 24 hours", timedelta(minutes=30), 48),
)


class Traffic:
    """Remembers counts, so that their course can be drawn: in memory, since the server was started."""

    def __init__(self, read: Callable[[], Counts]) -> None:
        self._read = read
        self._samples = {span: deque[Counts](maxlen=span.bars + 1) for span in SPANS}
        self._n_looks = 0

    @property
    def every(self) -> float:
        """How often to look, in seconds."""
        return SPANS[0].width.total_seconds()

    def look(self) -> None:
        """Note how far it has come; to be called `every` so many seconds."""
        counts = self._read()
        for span, samples in self._samples.items():
            if self._n_looks % round(span.width / SPANS[0].width) == 0:
                samples.append(counts)
        self._n_looks += 1

    def bars(self, span: Span) -> list[dict[str, float]]:
        """Return how many answers of each kind there were in each part of a span; the last part is under way."""
        return [
            {kind: later.answers.get(kind, 0) - earlier.answers.get(kind, 0) for kind in KINDS}
            for earlier, later in pairwise(self._of(span))
        ]

    def latency(self, span: Span) -> list[tuple[float, float]]:
        """Return of each bucket its upper edge in seconds and how many requests of the span are in it."""
        first, *_, now = (Counts({}), *self._of(span)) if not self._samples[span] else self._of(span)
        before = dict(first.latency)
        up_to = [(edge, count - before.get(edge, 0)) for edge, count in now.latency]
        return [
            (edge, count - before)
            for (edge, count), before in zip(up_to, [0, *(n for _, n in up_to)], strict=False)
        ]

    def _of(self, span: Span) -> list[Counts]:
        """Return what was counted by now and at the looks before, no longer ago than the span is."""
        return [*self._samples[span], self._read()][-(span.bars + 1) :]


def render_traffic(traffic: Traffic) -> list[Markup]:
    used = [span for span in SPANS if span is SPANS[0] or len(traffic.bars(span)) > 1]
    return [
        section(
            "Answers",
            [_answers(traffic, span) for span in used],
            _legend([bar for span in used for bar in traffic.bars(span)]),
        ),
        _latency(traffic),
    ]


def _answers(traffic: Traffic, span: Span) -> Markup:
    bars = traffic.bars(span)
    sums = {kind: round(sum(bar[kind] for bar in bars)) for kind in KINDS}
    says = f"Answers in {span.title}: " + ", ".join(f"{KINDS[kind]} {n:,}" for kind, n in sums.items())
    shown = [*([dict.fromkeys(KINDS, 0.0)] * (span.bars - len(bars))), *bars]
    whole = span.width * span.bars
    marks = [(span.bars * i / 4, _ago(whole * (1 - i / 4))) for i in range(5)]
    text = ", ".join(f"{KINDS[kind]} {n:,}" for kind, n in sums.items() if n) or "nothing was asked"
    return figure(stacked(shown, marks, says), f"In {span.title}, of this server: {text}.")


def _ago(time: timedelta) -> str:
    hours, minutes = divmod(round(time / timedelta(minutes=1), 1), 60)
    if not time:
        return "now"
    return f"{hours:g} h ago" if hours else f"{minutes:g} min ago"


def _legend(bars: Sequence[Mapping[str, float]]) -> Markup:
    """Explain the colours; of those that few deployments have, only what is to be seen."""
    shown = [kind for kind in KINDS if kind not in _RARE or any(bar[kind] for bar in bars)]
    return tag("ul", [tag("li", key(kind), KINDS[kind]) for kind in shown], class_="legend")


def _latency(traffic: Traffic) -> Markup:
    span = SPANS[0]
    buckets = [(edge, round(count)) for edge, count in traffic.latency(span)]
    n = sum(count for _, count in buckets)
    if not n:
        return section("Latency", tag("p", f"Nothing was asked in {span.title}."))
    first = next(i for i, (_, count) in enumerate(buckets) if count)
    last = max(i for i, (_, count) in enumerate(buckets) if count)
    shown = buckets[first : last + 1]
    edges = [0.0 if first == 0 else 1e3 * buckets[first - 1][0], *(1e3 * edge for edge, _ in shown)]
    rows: list[tuple[str, Child]] = [
        (words, _milliseconds(quantile(buckets, share)))
        for words, share in (("half of them within", 0.5), ("95% within", 0.95), ("99% within", 0.99))
    ]
    says = f"Time of {n:,} requests: half within {rows[0][1]}, 99% within {rows[-1][1]}"
    picture = histogram(edges, [count for _, count in shown], says)
    return section("Latency", figure(picture, f"Queries in {span.title}, by milliseconds."), facts(rows))


def quantile(buckets: Sequence[tuple[float, float]], share: float) -> float:
    """Return the upper edge of the bucket within which this share of all is reached: never less than the truth."""
    wanted, reached = share * sum(count for _, count in buckets), 0.0
    for edge, count in buckets:
        reached += count
        if reached >= wanted:
            return edge
    return buckets[-1][0]


def _milliseconds(seconds: float) -> str:
    return "more than the longest that is counted" if seconds == float("inf") else f"{1e3 * seconds:g} ms"
