"""The card as a page of HTML: the same words, with a picture of each ceiling."""

from collections.abc import Mapping
from typing import Any

from pacpredict.core.attacks import QUESTIONS
from pacpredict.distill.words import Part, Table, parts_of, title_of
from pacpredict.pages.document import bullets, document, facts, figures, section
from pacpredict.pages.markup import Child, Markup, tag
from pacpredict.pages.sentences import marked
from pacpredict.pages.svg import reach


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
        table, *reasons = part.content
        return section(part.title, _attacks(table, card["promise"]["bounds"]), *map(_item, reasons))
    return section(part.title, *(_item(item) for item in part.content))


def _attacks(table: Any, bounds: Mapping[str, Any]) -> Markup:
    rows: list[list[Child]] = [
        [*row, reach(bounds[attack]["prior"], bounds[attack]["success"])]
        for row, attack in zip(table.rows, QUESTIONS, strict=True)
    ]
    return figures([*table.columns, "0 to 100%"], rows, plot=len(table.columns))


def _item(item: "str | Table | list[str]") -> Markup:
    if isinstance(item, str):
        return tag("p", marked(item))
    if isinstance(item, list):
        return bullets([marked(point) for point in item])
    if not any(item.columns):
        return facts([(name, marked(value)) for name, value in item.rows])
    return figures(item.columns, [[marked(cell) for cell in row] for row in item.rows])
