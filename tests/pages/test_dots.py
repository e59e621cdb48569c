"""Rates with intervals: each is where its number is, within the picture, and says its name."""

import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from pacpredict.pages.dots import Dot, Line, dots
from pacpredict.pages.svg import Scale

SVG = "{http://www.w3.org/2000/svg}"
X = Scale(0.4, 0.8, [(0.4, "40 %"), (0.6, "60 %"), (0.8, "80 %")])
LINES = [
    Line("random", [Dot("", 0.5, 0.45, 0.55), Dot("second", 0.6, 0.5, 0.7)], 0.73),
    Line("search", [Dot("", 0.7, 0.6, 0.95)], 0.73),
    Line("nobody", [], None),
]


def test_dots_are_where_their_numbers_are():
    """Dots lie in proportion to the axis, on their intervals, and what is outside of the axis ends at its edge."""
    root = ET.fromstring(dots(LINES, X, "some rates"))
    assert root.find(f"{SVG}title").text == "some rates"
    at = {text.text: float(text.get("x")) for text in root.iter(f"{SVG}text")}
    assert at["60 %"] == pytest.approx((at["40 %"] + at["80 %"]) / 2)
    drawn = [float(dot.get("cx")) for dot in root.iter(f"{SVG}circle")]
    span = at["80 %"] - at["40 %"]
    assert drawn == pytest.approx([at["40 %"] + span * share for share in (0.25, 0.5, 0.75)], abs=0.02)
    ends = [
        tuple(map(float, re.fullmatch(r"M([\d.]+) [\d.]+H([\d.]+)", path.get("d")).groups()))
        for path in root.iter(f"{SVG}path")
    ]
    assert all(low <= x <= high for (low, high), x in zip(ends, drawn, strict=True))
    assert ends[-1][1] == pytest.approx(at["80 %"])


def test_rows_do_not_touch():
    """Each row has its words, below those before it, and only rows that have a limit show one."""
    root = ET.fromstring(dots(LINES, X, "some rates"))
    words = {text.text: float(text.get("y")) for text in root.iter(f"{SVG}text")}
    rows = [words[line.words] for line in LINES]
    assert all(after - before >= 20 for before, after in pairwise(rows))
    assert sum(line.get("class") == "limit" for line in root.iter(f"{SVG}line")) == 2
    assert float(root.get("viewBox").split()[3]) > max(rows)
