"""The budget as a picture: what is left, how fast it is spent at present, and when it will end."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from pacpredict.ledger.spending import Course, Spent
from pacpredict.mechanism.budget import Budget, WhenExhausted
from pacpredict.pages.document import facts, figure, section
from pacpredict.pages.markup import Child, Markup, tag
from pacpredict.pages.svg import Point, over_time, share
from pacpredict.pages.words import day, power
from pacpredict.report.facts import Moment, forecast

# Points of the picture; more cannot be told apart on a screen.
_POINTS = 160
# The present rate is that of the last minutes. The end is foretold from the last day, so that a night counts as well;
# of a younger deployment from what there is, but not from less than a minute.
_PRESENT, _RECENT, _SHORTEST = timedelta(minutes=10), timedelta(days=1), timedelta(minutes=1)

_WHEN_EXHAUSTED: dict[WhenExhausted, str] = {
    "halt": "New queries are refused; what was answered before still is.",
    "unanimous": "Queries on which all models agree are still answered; others are refused.",
    "belief": "Answers are now drawn from what everybody may believe. They cost nothing and tell nothing new.",
}


class Pace(NamedTuple):
    """How fast charged answers are given at present, and when they end at the pace of the last day."""

    per_minute: float
    ends: datetime | None


class Standing(NamedTuple):
    """What is spent by now, and how it came to that."""

    budget: Budget
    steps: int  # charged so far
    moments: Sequence[Moment] = ()  # the last is now; none where times are not kept
    pace: Pace | None = None

    @property
    def left(self) -> int:
        return self.budget.total_steps - self.steps


def look_at(budget: Budget, steps: int, course: Course | None, now: datetime | None = None) -> Standing:
    """Read how the budget was spent; `course` is None where the ledger keeps no times."""
    points = [] if course is None else course.points(_POINTS)
    if course is None or not points:
        return Standing(budget, steps)
    now = max(now or datetime.now(UTC), datetime.fromisoformat(points[-1].time))
    present = Moment(now, points[-1].sequence, budget.nats(points[-1].steps))
    moments = [*(_moment(point, budget) for point in points), present]
    ends = forecast([*_recent(course, points[0], now, budget), present], budget.total, _RECENT, _SHORTEST)
    earlier = course.before(now - _PRESENT)
    charged = points[-1].steps - (earlier.steps if earlier else 0)
    minutes = min(_PRESENT, max(now - moments[0].time, _SHORTEST)) / timedelta(minutes=1)
    return Standing(budget, steps, moments, Pace(charged / minutes, ends))


def _recent(course: Course, first: Spent, now: datetime, budget: Budget) -> list[Moment]:
    """Return from where the pace of the last day is counted."""
    earlier = course.before(now - _RECENT)
    if earlier is None:
        return [Moment(datetime.fromisoformat(first.time), 0, 0.0)]
    return [Moment(now - _RECENT, earlier.sequence, budget.nats(earlier.steps))]


def _moment(point: Spent, budget: Budget) -> Moment:
    return Moment(datetime.fromisoformat(point.time), point.sequence, budget.nats(point.steps))


def render_budget(standing: Standing) -> Markup:
    left, total = standing.left, standing.budget.total_steps
    says = f"{share_left(left, total)} of the budget is left"
    return section(
        "Budget",
        None if left else _spent_notice(standing.budget),
        tag("p", tag("strong", share_left(left, total)), " left", class_="left"),
        share(standing.steps / total, says),
        _over_time(standing),
        facts(_figures(standing)),
    )


def share_left(left: int, total: int) -> str:
    """Return what is left in percent, rounded down: nobody is promised more than there is."""
    hundredths = 10_000 * left // total
    return f"{hundredths // 100}.{hundredths % 100:02d} %"


def _spent_notice(budget: Budget) -> Markup:
    return tag(
        "p",
        tag("strong", "The budget is spent."),
        f" {_WHEN_EXHAUSTED[budget.when_exhausted]}",
        class_="notice",
    )


def _over_time(standing: Standing) -> Child:
    if not standing.moments:
        return None
    total = standing.budget.total
    points = [Point(moment.time.timestamp(), 100 * moment.spent_nats / total) for moment in standing.moments]
    says = f"Spent over time: {points[-1].y:.3g} % of the budget since {day(standing.moments[0].time)}"
    return figure(
        over_time([Point(points[0].x, 0.0), *points], 100.0, says), "Share that was spent, by time (UTC)."
    )


def _figures(standing: Standing) -> list[tuple[str, Child]]:
    budget = standing.budget
    rows: list[tuple[str, Child]] = [
        ("charged answers", f"{standing.steps:,} given, {standing.left:,} left"),
        ("one costs", power(budget.step)),
        ("in all", f"{budget.nats(standing.steps):.6g} of {budget.total:.6g} nats"),
    ]
    if standing.pace is not None:
        rows += [("present rate", _rate(standing.pace.per_minute)), ("ends", _end(standing))]
    return rows


def _rate(per_minute: float) -> str:
    if not per_minute:
        return "nothing was charged in the last 10 minutes"
    return f"{_three_digits(per_minute)} charged answers a minute, over the last 10 minutes"


def _three_digits(value: float) -> str:
    digits = max(0, 2 - math.floor(math.log10(value)))
    return f"{value:,.{digits}f}"


def _end(standing: Standing) -> str:
    if not standing.left:
        return "now: all of it is spent"
    ends = standing.pace and standing.pace.ends
    if ends is None:
        return "not in sight at the pace of the last day"
    is_near = ends - standing.moments[-1].time < _RECENT
    return f"{day(ends)}{f', {ends:%H:%M} UTC' if is_near else ''}, at the pace of the last day"
