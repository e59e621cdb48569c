"""Nothing that is put into a page can become markup unless it is markup."""

from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pacpredict.pages.document import document, facts, figures
from pacpredict.pages.markup import Markup, join, tag


class Seen(HTMLParser):
    """Collects elements and text as a browser would see them."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(page)
        self.close()

    def handle_starttag(self, name, attributes):
        self.tags.append(name)
        self.attributes.append(dict(attributes))

    def handle_data(self, data):
        self.text += data


@given(text=st.text())
def test_texts_stay_texts(text):
    """Whatever a text holds, a browser shows it and makes no element of it, in content and in attributes."""
    seen = Seen(tag("p", text, title=text))
    assert seen.tags == ["p"]
    assert unescape(tag("p", text)) == f"<p>{text}</p>" or "&" in text
    # A parser replaces NUL and normalises line ends; the rest comes back as it was.
    if not set(text) & {"\0", "\r"}:
        assert seen.text == text
        assert seen.attributes == [{"title": text}]


def test_elements_nest():
    """Markup inside markup is not escaped again; lists are flattened, None is nothing."""
    items = [tag("li", number) for number in (1, 2.5)]
    assert tag("ul", items, None, "&") == "<ul><li>1</li><li>2.5</li>&amp;</ul>"
    assert join("<", Markup("<br>")) == "&lt;<br>"


def test_attributes():
    """Names become those of HTML and SVG, numbers are short, and what is not given is left out."""
    given = {
        "class_": "a",
        "text_anchor": "end",
        "x": 1.23456,
        "width": 5,
        "hidden": True,
        "id": None,
        "open": False,
    }
    assert tag("text", **given) == '<text class="a" text-anchor="end" x="1.23" width="5" hidden></text>'
    assert tag("meta", charset="utf-8") == '<meta charset="utf-8">'


def test_a_document_needs_nothing_else():
    """A page has its style inside, runs no script, and forbids that anything is loaded."""
    page = document("A <title>", tag("p", "text"))
    seen = Seen(page)
    assert page.startswith('<!doctype html>\n<html lang="en">')
    assert not {"script", "link", "img", "iframe", "object"} & set(seen.tags)
    assert "default-src 'none'" in next(a["content"] for a in seen.attributes if "http-equiv" in a)
    assert "url(" not in page
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page
    assert "A &lt;title&gt;" in page


@pytest.mark.parametrize("table", [facts([("a <b>", "c")]), figures(["x", "y"], [["a <b>", 1]])])
def test_tables_escape(table):
    """Cells are texts."""
    assert "a &lt;b&gt;" in table
