"""Plots are well-formed, stay within their frame, and show the numbers that they are given."""

import math
import re
from datetime import UTC, datetime
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pacpredict.pages.svg import (
    Point,
    Scale,
    Series,
    file_of,
    histogram,
    over_time,
    plot,
    reach,
    share,
    stacked,
    ticks,
)

SVG = "{http://www.w3.org/2000/svg}"


def read(picture):
    root = ET.fromstring(picture)
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title").text
    return root


def size_of(root):
    return [float(number) for number in root.get("viewBox").split()[2:]]


def rects(root, kind):
    return [
        {name: float(rect.get(name)) for name in ("x", "y", "width", "height")}
        for rect in root.iter(f"{SVG}rect")
        if rect.get("class") == kind
    ]


@given(prior=st.floats(0, 1), success=st.floats(0, 1))
def test_reach_shows_both_shares(prior, success):
    """The grey part is the guess, the coloured part what answers may add, on a scale of the whole width."""
    low, high = sorted((prior, success))
    root = read(reach(low, high))
    width, _ = size_of(root)
    (known,), (added,) = rects(root, "known"), rects(root, "added")
    assert known["width"] == pytest.approx(width * low, abs=0.006)
    assert added["x"] + added["width"] == pytest.approx(width * high, abs=0.012)


@settings(deadline=None)
@given(counts=st.lists(st.integers(0, 10**9), min_size=1, max_size=40).filter(any))
def test_bars_are_as_high_as_their_counts(counts):
    """Heights are proportional, the highest bar fills the frame, and empty bins have none."""
    edges = [i * i for i in range(len(counts) + 1)]
    root = read(histogram(edges, counts, "counts"))
    bars = rects(root, "added")
    assert len(bars) == sum(n > 0 for n in counts)
    tallest = max(bar["height"] for bar in bars)
    for bar, n in zip(bars, [n for n in counts if n], strict=True):
        assert bar["height"] == pytest.approx(tallest * n / max(counts), abs=0.02)
    _assert_inside(root)


moments = st.lists(
    st.tuples(st.floats(1.5e9, 2e9), st.just(0.0) | st.floats(1e-12, 100)), min_size=1, max_size=50
)


@settings(deadline=None)
@given(pairs=moments)
def test_curves_stay_inside(pairs):
    """Whenever and whatever was spent, the curve is in the frame and ends at the last point."""
    times, spent = (sorted(column) for column in zip(*pairs, strict=True))
    points = [Point(x, y) for x, y in zip(times, spent, strict=True)]
    root = read(over_time(points, 100.0, "spent"))
    _assert_inside(root)
    path = root.find(f"{SVG}path").get("d")
    assert not re.search("nan|inf", path)
    assert len(re.findall("H", path)) == len(points) - 1


def test_a_curve_by_hand():
    """Half of the budget in the middle of the time is in the middle of the frame, beneath the limit."""
    start, end = (datetime(2026, 1, day, tzinfo=UTC).timestamp() for day in (1, 11))
    points = [Point(start, 0.0), Point((start + end) / 2, 50.0), Point(end, 100.0)]
    root = read(over_time(points, 100.0, "spent"))
    (left, bottom), (middle, half), (right, top) = _corners(root.find(f"{SVG}path").get("d"))
    assert middle == pytest.approx((left + right) / 2, abs=0.02)
    assert half == pytest.approx((top + bottom) / 2, abs=0.02)
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"0%", "50%", "100%", "01 Jan 2026", "11 Jan 2026"} <= set(texts)


def test_little_is_shown_large():
    """What is a thousandth of the budget is not a flat line: the scale ends at a round number above it."""
    root = read(over_time([Point(0.0, 0.0), Point(3600.0, 0.07)], 100.0, "spent"))
    assert "0.1%" in [text.text for text in root.iter(f"{SVG}text")]
    assert root.find(f"{SVG}line[@class='limit']") is None


@given(low=st.floats(-1e6, 1e6), length=st.floats(1e-3, 1e6), wanted=st.integers(2, 10))
def test_ticks_are_round_and_within(low, length, wanted):
    """Ticks are multiples of 1, 2 or 5 times a power of ten, inside the range, and not too many."""
    high = low + length
    found = ticks(low, high, wanted)
    slack = 1e-6 * max(abs(low), abs(high), length)
    assert all(low - slack <= tick <= high + slack for tick in found)
    assert len(found) <= wanted + 1
    steps = {b - a for a, b in pairwise(found)}
    for step in steps:
        digit = step / 10 ** math.floor(math.log10(step) + 1e-3)
        assert min(abs(digit - round_one) for round_one in (1, 2, 5)) < 0.2


def _corners(path):
    """Return the points of a staircase M x y H x V y ..."""
    x, y = map(float, re.match(r"M([\d.]+) ([\d.]+)", path).groups())
    corners = [(x, y)]
    for across, up in re.findall(r"H([\d.]+)V([\d.]+)", path):
        corners.append((float(across), float(up)))
    return corners


def _assert_inside(root):
    width, height = size_of(root)
    for rect in root.iter(f"{SVG}rect"):
        x, y, w, h = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
        assert x >= 0
        assert y >= 0
        assert x + w <= width + 0.02
        assert y + h <= height + 0.02
    for path in root.iter(f"{SVG}path"):
        for x, y in _corners(path.get("d")):
            assert 0 <= x <= width
            assert 0 <= y <= height


@given(spent=st.floats(0, 1))
def test_share_fills_the_bar(spent):
    """What is spent and what is left make up the whole bar."""
    root = read(share(spent, "so much"))
    (gone,), (left,) = rects(root, "added"), rects(root, "left")
    assert gone["width"] == pytest.approx(640 * spent, abs=0.01)
    assert gone["width"] + left["width"] == pytest.approx(640, abs=0.02)


@settings(deadline=None)
@given(pairs=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=9))
def test_stacked_bars_are_as_high_as_their_sums(pairs):
    """Each part is as high as its count, and stands upon the one before."""
    bars = [{"a": a, "b": b} for a, b in pairs]
    root = read(stacked(bars, [(0.0, "then")], "so many"))
    drawn = {name: rects(root, name) for name in ("a", "b")}
    counts = {name: [bar[name] for bar in bars if bar[name]] for name in ("a", "b")}
    heights = [
        rect["height"] / count
        for name in drawn
        for rect, count in zip(drawn[name], counts[name], strict=True)
    ]
    assert heights == pytest.approx([heights[0]] * len(heights) if heights else [], abs=0.03)
    for lower in drawn["a"]:
        for upper in (each for each in drawn["b"] if each["x"] == lower["x"]):
            assert upper["y"] + upper["height"] == pytest.approx(lower["y"], abs=0.02)


@settings(deadline=None)
@given(
    values=st.lists(st.tuples(st.floats(1e-9, 10), st.floats(1e-9, 10)), min_size=1, max_size=20),
    is_log=st.booleans(),
)
def test_curves_stay_within_their_axes(values, is_log):
    """Curve and band are drawn inside of the frame, whatever the numbers, and larger ones farther right and higher."""
    points = [Point(x, y) for x, y in sorted(values)]
    scale = Scale(1e-5, 1.0, [(1e-5, "a"), (1.0, "b")], log=is_log)
    band = [(point.y / 2, point.y * 2) for point in points]
    root = read(plot([Series("second", points, band), Series("limit", points)], scale, scale, "a plot"))
    width, height = size_of(root)
    paths = {path.get("class"): path.get("d") for path in root.iter(f"{SVG}path")}
    assert set(paths) == {"curve second", "band second", "curve limit"}
    for drawn in paths.values():
        numbers = [tuple(map(float, pair.split())) for pair in re.findall(r"[\d.]+ [\d.]+", drawn)]
        assert all(0 <= x <= width and 0 <= y <= height for x, y in numbers)
    curve = [tuple(map(float, pair.split())) for pair in re.findall(r"[\d.]+ [\d.]+", paths["curve limit"])]
    assert all(before[0] <= after[0] for before, after in pairwise(curve))
    for (one, a), (other, b) in pairwise(zip(points, curve, strict=True)):
        assert (one.y <= other.y) <= (a[1] >= b[1])


def test_axes_say_what_they_measure():
    """A name stands beyond the numbers of its axis, in room of its own; without names a picture is as it was."""
    x, y = Scale(0, 1, [(0, "0"), (1, "1")]), Scale(0, 1, [(0, "none"), (1, "all")])
    curve = [Series("", [Point(0, 0), Point(1, 1)])]
    bare = read(plot(curve, x, y, "says"))
    named = read(plot(curve, x._replace(name="queries"), y._replace(name="told"), "says"))
    assert size_of(named)[1] > size_of(bare)[1]
    places = {text.text: float(text.get("y")) for text in named.iter(f"{SVG}text")}
    assert places["told"] < places["all"] - 5
    assert places["queries"] > places["0"] + 10
    assert size_of(read(plot(curve, x, y, "says", height=300)))[1] == 300


def test_words_behind_curves_do_not_cover_each_other():
    """What a curve shows stands behind its end, at its height, or lower if there are other words already."""
    scale = Scale(0.0, 1.0, [])
    ends = {"low": 0.1, "high": 0.9, "nearly as high": 0.89, "as high": 0.9}
    curves = [Series("", [Point(0.0, 0.0), Point(0.5, y)], says=says) for says, y in ends.items()]
    root = read(plot(curves, scale, scale, "a plot"))
    words = {text.text: (float(text.get("x")), float(text.get("y"))) for text in root.iter(f"{SVG}text")}
    assert list(words) == ["high", "as high", "nearly as high", "low"]
    assert all(after - before >= 12 for (_, before), (_, after) in pairwise(words.values()))
    paths = [path.get("d") for path in root.iter(f"{SVG}path")]
    x, y = map(float, re.findall(r"[\d.]+ [\d.]+", paths[1])[-1].split())
    assert words["high"] == pytest.approx((x + 6, y + 4))


def test_a_picture_is_a_file_of_its_own():
    """Without a page around it a picture has a description, colours of its own, and others where it is dark."""
    root = read(file_of(plot([], Scale(0, 1, []), Scale(0, 1, []), "a plot"), "it falls & rises"))
    assert root.find(f"{SVG}desc").text == "it falls & rises"
    assert "prefers-color-scheme:dark" in root.find(f"{SVG}style").text
