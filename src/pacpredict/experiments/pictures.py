"""Plots as files that stand alone: with a style, a legend and words of their own, on a light page or a dark one."""

from collections.abc import Sequence
from pathlib import Path

from pacpredict.files import write_whole
from pacpredict.pages.markup import Child, Markup, tag
from pacpredict.pages.svg import file_of, picture

_WIDTH = 640.0
_LINE = 20.0  # of words above a plot
_LETTER = 6.0  # about as wide as the letters of a legend are
_BETWEEN = 12.0  # plots


def save(path: Path, drawn: str) -> None:
    write_whole(path, f"{drawn}\n".encode())


def stand_alone(
    panels: Sequence[tuple[str, Markup]], keys: Sequence[tuple[str, str]], title: str, says: str
) -> str:
    """Put plots below one another, each under its words, with one legend above all of them."""
    children: list[Child] = [*_legend(keys)]
    top = _LINE
    for words, drawn in panels:
        if words:
            children.append(tag("text", words, x=0, y=top + 14))
            top += _LINE
        height = float(drawn.partition('viewBox="0 0 ')[2].partition('"')[0].split()[1])
        placed = drawn.replace("<svg", f'<svg y="{top:g}" width="{_WIDTH:g}" height="{height:g}"', 1)
        children.append(Markup(placed))
        top += height + _BETWEEN
    return file_of(picture(_WIDTH, top - _BETWEEN, title, *children), says)


def _legend(keys: Sequence[tuple[str, str]]) -> list[Child]:
    drawn: list[Child] = []
    left = 0.0
    for style, words in keys:
        drawn.append(tag("path", d=f"M{left:g} 10h20", class_=f"curve {style}"))
        drawn.append(tag("text", words, x=left + 26, y=14))
        left += 26 + _LETTER * len(words) + 20
    return drawn
