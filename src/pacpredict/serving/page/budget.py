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
    """How fast charged answers are given, over which time, and when they end at the pace of the last day."""

    per_minute: float
    over: timedelta
    ends: datetime | None
    is_young: bool = False  # there is no whole day yet


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
    since = _recent(course, points[0], now, budget)
    ends = forecast([since, present], budget.total, _RECENT, _SHORTEST)
    earlier = course.before(now - _PRESENT)
    charged = points[-1].steps - (earlier.steps if earlier else 0)
    over = min(_PRESENT, max(now - moments[0].time, _SHORTEST))
    pace = Pace(charged / (over / timedelta(minutes=1)), over, ends, is_young=since.time > now - _RECENT)
    return Standing(budget, steps, moments, pace)


def _recent(course: Course, first: Spent, now: datetime, budget: Budget) -> Moment:
    """Return from where the pace of the last day is counted."""
    earlier = course.before(now - _RECENT)
    if earlier is None:
        return Moment(datetime.fromisoformat(first.time), 0, 0.0)
    return Moment(now - _RECENT, earlier.sequence, budget.nats(earlier.steps))


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
    return f"{hundredths // 100}.{hundredths % 100:02d}%"


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
    says = f"Spent over time: {points[-1].y:.3g}% of the budget since {day(standing.moments[0].time)}"
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
        rows += [("present rate", _rate(standing.pace)), ("ends", _end(standing, standing.pace))]
    return rows


def _rate(pace: Pace) -> str:
    if not pace.per_minute:
        return f"nothing was charged in the last {_minutes(_PRESENT)}"
    if _SHORTEST < pace.over < _PRESENT:
        time = f"the {_minutes(pace.over)} since the first answer"
    else:
        time = f"the last {_minutes(pace.over)}"
    return f"{_three_digits(pace.per_minute)} charged answers a minute, over {time}"


def _minutes(time: timedelta) -> str:
    """Return a time in minutes: a whole number, or with one digit."""
    minutes = round(time / timedelta(minutes=1), 1)
    return "minute" if minutes == 1 else f"{minutes:g} minutes"


def _three_digits(value: float) -> str:
    digits = max(0, 2 - math.floor(math.log10(value)))
    return f"{value:,.{digits}f}"


def _end(standing: Standing, pace: Pace) -> str:
    if not standing.left:
        return "now: all of it is spent"
    how = "at the pace since the first answer" if pace.is_young else "at the pace of the last day"
    if pace.ends is None:
        return f"not in sight {how}"
    is_near = pace.ends - standing.moments[-1].time < _RECENT
    return f"{day(pace.ends)}{f', {pace.ends:%H:%M} UTC' if is_near else ''}, {how}"
