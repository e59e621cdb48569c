"""A page in one file: no script, no request to anywhere, the same on screen, in the dark and on paper."""

from functools import cache
from importlib.resources import files

from pacpredict.pages.markup import Child, Markup, join, tag

# Nothing is loaded and nothing is run, wherever the page is opened.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@cache
def read_style() -> Markup:
    return Markup((files(__package__) / "style.css").read_text())


def document(title: str, *body: Child) -> str:
    """Return a whole HTML page."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("title", title),
        tag("style", read_style()),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', *body), lang='en')}\n"


def section(title: str, *body: Child, class_: str | None = None) -> Markup:
    return tag("section", tag("h2", title), *body, class_=class_)


def bullets(items: list[Child]) -> Markup:
    return tag("ul", [tag("li", item) for item in items])


def facts(rows: list[tuple[str, Child]]) -> Markup:
    """Return a table of names and values."""
    return tag(
        "table",
        tag("tbody", [tag("tr", tag("th", name, scope="row"), tag("td", value)) for name, value in rows]),
    )


def figures(columns: list[str], rows: list[list[Child]], plot: int | None = None, n_words: int = 1) -> Markup:
    """Return a table whose first columns are words, whose others are numbers, and one of them perhaps a plot."""

    def kind(position: int) -> str | None:
        return "plot" if position == plot else "number" if position >= n_words else None

    head = tag("tr", [tag("th", name, scope="col", class_=kind(i)) for i, name in enumerate(columns)])
    lines = [tag("tr", [tag("td", cell, class_=kind(i)) for i, cell in enumerate(row)]) for row in rows]
    return tag("div", tag("table", tag("thead", head), tag("tbody", lines)), class_="wide")


def figure(picture: Markup, caption: Child) -> Markup:
    return tag("figure", picture, tag("figcaption", caption, class_="faint"), class_="figure")


def legend(*keys: tuple[str, str]) -> Markup:
    """Say in words what the curves of a picture are, each named by the class of its colour."""
    named = [tag("span", tag("i", class_=style or None), words) for style, words in keys]
    return tag("span", named, class_="keys")


def commands(*lines: str) -> Markup:
    return tag("pre", tag("code", join("\n".join(lines))))
