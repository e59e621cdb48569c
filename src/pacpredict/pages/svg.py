"""Plots as inline SVG, in the colours of the page around them. Each says in words what it shows."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from pacpredict.pages.markup import Child, Markup, tag
from pacpredict.show import percent_up

_WIDTH, _HEIGHT = 640.0, 170.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 66.0, 12.0, 12.0, 24.0
_NAME = 25.0  # how high the name of an axis is, in the large letters of a narrow screen
_LINE = 13.0  # of words


# How moments are written, by the seconds that a picture spans; longer ones have days only.
_FORMS = ((600, "%H:%M:%S"), (43_200, "%H:%M"), (172_800, "%d %b, %H:%M"))

# The colours of a picture that is a file of its own: grey words are readable on light and on dark.
_STYLE = (
    "text{font:11px sans-serif;fill:#6b757f}.axis{stroke:#9aa4ae;stroke-opacity:.4}.curve{fill:none;stroke:#c8692f;"
    "stroke-width:2}.curve.second{stroke:#2f8f6b}.curve.third{stroke:#b55;stroke-dasharray:2 3}.curve.plain{stroke:"
    "#8a949e}.band{fill:#c8692f;fill-opacity:.2}.band.second{fill:#2f8f6b}.dot{fill:#c8692f}.dot.second{fill:#2f8f6b}"
    ".curve.limit,.limit{stroke:#8a949e;stroke-dasharray:4 4}"
    "@media (prefers-color-scheme:dark){text{fill:#aab4be}.axis{stroke:#5b656f}}"
)


class Point(NamedTuple):
    x: float
    y: float


def picture(width: float, height: float, says: str, *children: Child) -> Markup:
    """Return an image that screen readers read out as `says`."""
    box = f"0 0 {width:g} {height:g}"
    return tag(
        "svg", tag("title", says), *children, viewBox=box, role="img", xmlns="http://www.w3.org/2000/svg"
    )


def file_of(drawn: Markup, describes: str) -> str:
    """Return a picture as a file that needs no page around it, with a sentence for those who do not see it."""
    return drawn.replace("</title>", f"</title>{tag('desc', describes)}<style>{_STYLE}</style>", 1)


def reach(prior: float, success: float) -> Markup:
    """Draw, on a scale from 0 to 100 %, what a guess reaches without any answer and what answers may add."""
    width, height = 200.0, 12.0
    says = f"{percent_up(prior)} before any answer, at most {percent_up(success)} ever"
    return picture(
        width,
        height,
        says,
        tag("rect", x=0.5, y=0.5, width=width - 1, height=height - 1, class_="rest"),
        tag("rect", x=0, y=0, width=width * prior, height=height, class_="known"),
        tag("rect", x=width * prior, y=0, width=width * (success - prior), height=height, class_="added"),
    )


def share(spent: float, says: str) -> Markup:
    """Draw what is spent of 1, and what is left of it, as one bar."""
    width, height = _WIDTH, 22.0
    return picture(
        width,
        height,
        says,
        tag("rect", x=0, y=0, width=width * spent, height=height, class_="added"),
        tag("rect", x=width * spent, y=0, width=width * (1 - spent), height=height, class_="left"),
    )


def histogram(edges: Sequence[float], counts: Sequence[int], says: str) -> Markup:
    """Draw how many there are between each two edges; bins are drawn equally wide, whatever they span."""
    most, n = max([*counts, 1]), len(counts)
    axes = _Axes(0.0, float(n), 0.0, float(most))
    width = axes.x(1) - axes.x(0)
    bars = [
        tag(
            "rect",
            x=axes.x(i) + 1,
            y=axes.y(count),
            width=width - 2,
            height=axes.y(0) - axes.y(count),
            class_="added",
        )
        for i, count in enumerate(counts)
        if count
    ]
    x_marks = [(float(i), f"{edge:g}") for i, edge in enumerate(edges)]
    y_marks = [(value, f"{value:,.0f}") for value in ticks(0, most, 4) if value == int(value)]
    return picture(_WIDTH, _HEIGHT, says, axes.draw(x_marks, y_marks), bars)


def stacked(bars: Sequence[Mapping[str, float]], x_marks: Sequence[tuple[float, str]], says: str) -> Markup:
    """Draw bars of parts, one upon another; each part has the colour of the class that it is named after."""
    most = max([*(sum(bar.values()) for bar in bars), 1.0])
    axes = _Axes(0.0, float(len(bars)), 0.0, _round_up(most))
    width = axes.x(1) - axes.x(0)
    parts: list[Child] = []
    for i, bar in enumerate(bars):
        low = 0.0
        for name, count in bar.items():
            if count > 0:
                top, bottom = axes.y(low + count), axes.y(low)
                parts.append(
                    tag("rect", x=axes.x(i) + 0.5, y=top, width=width - 1, height=bottom - top, class_=name)
                )
                low += count
    y_marks = [(value, f"{value:,.0f}") for value in ticks(0, axes.y_high, 4) if value == int(value)]
    return picture(_WIDTH, _HEIGHT, says, axes.draw(x_marks, y_marks), parts)


def key(name: str) -> Markup:
    """Draw the colour of a class, for a legend whose words stand beside it."""
    return tag(
        "svg", tag("rect", width=10.0, height=10.0, class_=name), viewBox="0 0 10 10", aria_hidden="true"
    )


def over_time(points: Sequence[Point], limit: float, says: str) -> Markup:
    """Draw what grows in steps, in percent, over seconds since 1970, beneath a limit if that is near."""
    start, end = points[0].x, max(points[-1].x, points[0].x + 1)
    highest = max(point.y for point in points)
    top = limit if highest > limit / 4 else _round_up(highest)
    axes = _Axes(start, end, 0.0, top or limit)
    steps = [f"M{axes.x(points[0].x):.2f} {axes.y(points[0].y):.2f}"]
    steps += [f"H{axes.x(point.x):.2f}V{axes.y(point.y):.2f}" for point in points[1:]]
    y_marks = [(value, f"{value:.3g}%") for value in ticks(0, axes.y_high, 4)]
    line = tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=axes.y(limit), y2=axes.y(limit), class_="limit")
    return picture(
        _WIDTH,
        _HEIGHT,
        says,
        axes.draw(_moments(start, end), y_marks),
        line if axes.y_high >= limit else None,
        tag("path", d="".join(steps), class_="curve"),
    )


class Series(NamedTuple):
    """A curve in the colour of a class, perhaps with a band around it."""

    name: str  # a class of the style sheet: curve, second, third, limit
    points: Sequence[Point]
    band: Sequence[tuple[float, float]] = ()  # low and high, at each point
    says: str = ""  # written behind its end, where the axes must leave room for it


class Scale(NamedTuple):
    """What an axis shows, and the numbers beside it; logarithms are taken of all that is put on a logarithmic one."""

    low: float
    high: float
    marks: Sequence[tuple[float, str]]
    log: bool = False
    name: str = ""  # what is measured, and in which unit

    def place(self, value: float) -> float:
        inside = min(max(value, self.low), self.high)
        return math.log10(inside) if self.log else inside


def plot(series: Sequence[Series], x: Scale, y: Scale, says: str, *, height: float = _HEIGHT) -> Markup:
    """Draw curves over one another; what is outside of the axes is drawn at their edge."""
    top, bottom = _TOP + _NAME * bool(y.name), _BOTTOM + _NAME * bool(x.name)
    whole = height + top - _TOP + bottom - _BOTTOM
    axes = _Axes(x.place(x.low), x.place(x.high), y.place(y.low), y.place(y.high), whole, top, bottom)

    def at(point: Point) -> str:
        return f"{axes.x(x.place(point.x)):.2f} {axes.y(y.place(point.y)):.2f}"

    drawn: list[Child] = []
    for one in series:
        if one.band:
            lower = [Point(p.x, low) for p, (low, _) in zip(one.points, one.band, strict=True)]
            upper = [Point(p.x, high) for p, (_, high) in zip(one.points, one.band, strict=True)]
            outline = "L".join(at(point) for point in [*upper, *reversed(lower)])
            drawn.append(tag("path", d=f"M{outline}Z", class_=f"band {one.name}"))
        drawn.append(tag("path", d="M" + "L".join(map(at, one.points)), class_=f"curve {one.name}"))
    ends = [(one.says, one.points[-1]) for one in series if one.says]
    drawn += _words([(says, axes.x(x.place(end.x)), axes.y(y.place(end.y))) for says, end in ends])
    marks = ([(scale.place(value), text) for value, text in scale.marks] for scale in (x, y))
    names = [
        tag("text", y.name, x=0, y=14) if y.name else None,
        tag("text", x.name, x=_WIDTH - _RIGHT, y=whole - 6, text_anchor="end") if x.name else None,
    ]
    return picture(_WIDTH, whole, says, axes.draw(*marks), names, drawn)


def _words(ends: Sequence[tuple[str, float, float]]) -> list[Child]:
    """Write words behind places, from top to bottom, and further down where they would cover others."""
    written: list[Child] = []
    free = 0.0
    for says, x, y in sorted(ends, key=lambda end: end[2]):
        line = max(y + 4, free)
        written.append(tag("text", says, x=x + 6, y=line))
        free = line + _LINE
    return written


class _Axes:
    """Where values are in a picture, and the lines and numbers beside them."""

    def __init__(
        self,
        x_low: float,
        x_high: float,
        y_low: float,
        y_high: float,
        height: float = _HEIGHT,
        top: float = _TOP,
        bottom: float = _BOTTOM,
    ) -> None:
        self.x_low, self.x_high, self.y_low, self.y_high = x_low, x_high, y_low, y_high
        self.floor, self.depth = height - bottom, height - top - bottom

    def x(self, value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (value - self.x_low) / (self.x_high - self.x_low)

    def y(self, value: float) -> float:
        share = (value - self.y_low) / (self.y_high - self.y_low)
        return self.floor - self.depth * share

    def draw(self, x_marks: Sequence[tuple[float, str]], y_marks: Sequence[tuple[float, str]]) -> list[Child]:
        lines: list[Child] = []
        for value, text in y_marks:
            y = self.y(value)
            lines.append(tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, class_="axis"))
            lines.append(tag("text", text, x=_LEFT - 6, y=y + 4, text_anchor="end"))
        for i, (value, text) in enumerate(x_marks):
            x, share = self.x(value), (value - self.x_low) / (self.x_high - self.x_low)
            anchor = "end" if share > 0.96 else "start" if share < 0.04 else "middle"
            lines.append(
                tag(
                    "text",
                    text,
                    x=x,
                    y=self.floor + _BOTTOM - 6,
                    text_anchor=anchor,
                    class_="minor" if i % 2 else None,
                )
            )
        return lines


def ticks(low: float, high: float, wanted: int) -> list[float]:
    """Return round numbers from `low` to `high`, about as many as wanted."""
    if high <= low:
        return [low]
    raw = (high - low) / wanted
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def _round_up(value: float) -> float:
    if value <= 0:
        return 0.0
    size = 10.0 ** math.floor(math.log10(value))
    return next(float(f"{size * factor:.12g}") for factor in (1, 2, 5, 10) if size * factor >= value)


def _moments(start: float, end: float, wanted: int = 5) -> list[tuple[float, str]]:
    """Return moments for an axis of time, as finely as its length asks for."""
    form = next((form for longest, form in _FORMS if end - start < longest), "%d %b %Y")
    return [
        (moment, datetime.fromtimestamp(moment, UTC).strftime(form))
        for moment in (start + (end - start) * i / (wanted - 1) for i in range(wanted))
    ]
