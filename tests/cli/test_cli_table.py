import json
import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pacpredict.cli.as_json import print_json
from pacpredict.cli.table import BAR_COLUMN, BAR_LEGEND, at_most, bar, nats, percent_at_most, print_table


@settings(deadline=None)
@given(value=st.floats(0, 1))
def test_printed_bounds_are_not_below_the_bound(value):
    """Percentages and four digits of a bound round up, by one unit at most."""
    shown = float(percent_at_most(value).removesuffix("%"))
    assert 100 * value - 1e-12 <= shown <= 100 * value + 1.001e-4
    assert value <= float(at_most(value)) <= value * 1.0011


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "50.0000%"),
        (0.51, "51.0000%"),
        (0.5107891, "51.0790%"),
        (1, "100.0000%"),
        (1 / 128, "0.7813%"),
    ],
)
def test_percentages(value, text):
    """Round numbers stay round, others go up."""
    assert percent_at_most(value) == text


def test_no_bound_is_said():
    """An infinite epsilon is none at all."""
    assert at_most(math.inf) == "none"
    assert at_most(0.0) == "0"


@settings(deadline=None)
@given(prior=st.floats(0, 1), success=st.floats(0, 1))
def test_bars_have_one_length(prior, success):
    """A bar is ten characters, whatever it shows."""
    low, high = sorted((prior, success))
    assert len(bar(low, high)) == 10


def test_bar_by_hand():
    """Prior, advantage and rest follow each other."""
    assert bar(0.5, 0.75) == "=====###.."


def test_budgets_are_shown_in_full():
    """A budget can be copied from the table, and its power of two stands beside it."""
    assert nats(2.0**-32) == "2.3283064365386963e-10 nats (2^-32.00)"
    assert nats(0.0) == "0.0 nats"
    assert nats(math.inf) == "inf nats"


def test_table_prints_its_cells_verbatim(capsys):
    """Square brackets are text, not markup, and no line ends in blanks."""
    print_table("Title [b]", ("word", "number"), [("[red]", "1"), ("plain", "22")], "caption [/]")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Title [b]"
    assert [line.split() for line in lines[-4:-2]] == [["[red]", "1"], ["plain", "22"]]
    assert lines[-1] == "caption [/]"
    assert not any(line.endswith(" ") for line in lines)


WORDS = st.text(st.sampled_from("abc e1.%"), max_size=30)


@settings(deadline=None)
@given(
    columns=st.sampled_from([(), ("attack", "before", BAR_COLUMN), ("attack", "before", "at most")]),
    cells=st.lists(st.tuples(WORDS, WORDS, st.just("=" * 20)), min_size=1, max_size=4),
    width=st.integers(20, 130),
)
def test_tables_fit_and_nothing_is_cut_off(columns, cells, width):
    """Within any width of 20 or more every word of every cell is there, whole; only bars may be left out."""
    with pytest.MonkeyPatch.context() as patch:
        printed = []
        patch.setattr("builtins.print", printed.append)
        patch.setenv("COLUMNS", str(width))
        patch.setenv("LINES", "24")
        print_table("A title", columns, cells, f"{BAR_LEGEND}\nend")
    (text,) = printed
    words = [word for row in cells for cell in row for word in cell.split()]
    assert all(len(line) <= width for line in text.splitlines())
    if not any(len(word) > width - 3 for word in words):  # such a one is folded
        wanted = Counter(word for word in words if BAR_COLUMN not in columns or not word.startswith("="))
        assert not wanted - Counter(text.split())


@settings(deadline=None)
@given(value=st.floats(allow_nan=False))
def test_json_floats_read_back(value):
    """Floats survive JSON to the last bit, and infinity becomes null."""
    with pytest.MonkeyPatch.context() as patch:
        printed = []
        patch.setattr("builtins.print", printed.append)
        print_json({"value": value})
    read = json.loads(printed[0], parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))["value"]
    assert read == (None if math.isinf(value) else value)
