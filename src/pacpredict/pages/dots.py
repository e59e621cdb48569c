"""Rates with their intervals, one row each, beside what they can be at most: for what does not grow over anything."""

from collections.abc import Sequence
from typing import NamedTuple

from pacpredict.pages.markup import Child, Markup, tag
from pacpredict.pages.svg import Scale, picture

_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 640.0, 236.0, 26.0, 8.0, 26.0
_ROW = 26.0  # so high that letters of a narrow screen do not touch
_APART = 7.0  # between the dots of a row


class Dot(NamedTuple):
    """A rate in the colour of a class, and the interval around it."""

    name: str
    value: float
    low: float
    high: float


class Line(NamedTuple):
    """A row of the picture: its words, its dots, and what these can be at most."""

    words: str
    dots: Sequence[Dot]
    limit: float | None = None


def dots(lines: Sequence[Line], x: Scale, says: str) -> Markup:
    """Draw the dots of each row below one another, each on its interval; what is outside is drawn at the edge."""
    height = _TOP + _ROW * len(lines) + _BOTTOM
    span = x.place(x.high) - x.place(x.low)

    def at(value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (x.place(value) - x.place(x.low)) / span

    drawn: list[Child] = []
    for i, (value, text) in enumerate(x.marks):
        drawn.append(tag("line", x1=at(value), x2=at(value), y1=_TOP, y2=height - _BOTTOM + 4, class_="axis"))
        drawn.append(
            tag(
                "text",
                text,
                x=at(value),
                y=height - 6,
                text_anchor="middle",
                class_="minor" if i % 2 else None,
            )
        )
    for i, line in enumerate(lines):
        middle = _TOP + _ROW * (i + 0.5)
        drawn.append(tag("text", line.words, x=_LEFT - 10, y=middle + 4, text_anchor="end"))
        if line.limit is not None:
            edge, half = at(line.limit), _ROW / 2
            drawn.append(tag("line", x1=edge, x2=edge, y1=middle - half, y2=middle + half, class_="limit"))
        for j, dot in enumerate(line.dots):
            y = middle + _APART * (j - (len(line.dots) - 1) / 2)
            drawn.append(
                tag("path", d=f"M{at(dot.low):.2f} {y:g}H{at(dot.high):.2f}", class_=f"curve {dot.name}")
            )
            drawn.append(tag("circle", cx=at(dot.value), cy=y, r=3.5, class_=f"dot {dot.name}"))
    return picture(_WIDTH, height, says, drawn)
