"""The card as a page of HTML: the same words, with a picture of each ceiling."""

import re
from collections.abc import Mapping
from typing import Any

from pacpredict.core.attacks import QUESTIONS
from pacpredict.distill.words import Part, Table, parts_of, title_of
from pacpredict.pages.document import bullets, document, facts, figures, section
from pacpredict.pages.markup import Child, Markup, join, tag
from pacpredict.pages.svg import reach

_MARKS = re.compile(r"(\*\*[^*]+\*\*|`[^`]+`)")


def render(card: Mapping[str, Any]) -> str:
    """Return the whole page."""
    promise, *others = parts_of(card)
    made = tag("p", f"{card['made']}, by pacpredict {card['pacpredict']}", class_="faint")
    return document(
        title_of(card),
        tag(
            "main",
            tag(
                "div",
                tag("header", tag("h1", title_of(card)), made),
                tag("div", [_item(item) for item in promise.content], class_="promise"),
                [_section(part, card) for part in others],
                class_="sheet",
            ),
        ),
    )


def _section(part: Part, card: Mapping[str, Any]) -> Markup:
    if part.title == "How often an attack can succeed":
        return section(part.title, _attacks(part.content[0], card["promise"]["bounds"]))
    return section(part.title, *(_item(item) for item in part.content))


def _attacks(table: Any, bounds: Mapping[str, Any]) -> Markup:
    rows: list[list[Child]] = [
        [*row, reach(bounds[attack]["prior"], bounds[attack]["success"])]
        for row, attack in zip(table.rows, QUESTIONS, strict=True)
    ]
    return figures([*table.columns, "0 to 100 %"], rows, plot=len(table.columns))


def _item(item: "str | Table | list[str]") -> Markup:
    if isinstance(item, str):
        return tag("p", _marked(item))
    if isinstance(item, list):
        return bullets([_marked(point) for point in item])
    if not any(item.columns):
        return facts([(name, _marked(value)) for name, value in item.rows])
    return figures(item.columns, [[_marked(cell) for cell in row] for row in item.rows])


def _marked(text: str) -> Markup:
    """Turn what is strong or code in Markdown into elements; everything else is escaped."""
    parts: list[Child] = []
    for piece in _MARKS.split(text):
        if piece.startswith("**"):
            parts.append(tag("strong", piece[2:-2]))
        elif piece.startswith("`"):
            parts.append(tag("code", piece[1:-1]))
        else:
            parts.append(piece)
    return join(*parts)
