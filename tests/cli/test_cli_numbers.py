import contextlib
from argparse import ArgumentTypeError

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pacpredict.cli.numbers import count, real


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.25", 0.25),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e-5", 1e-5),
        ("1E6", 1e6),
        ("2**-32", 2.0**-32),
        ("2^-32", 2.0**-32),
        ("2**10", 1024.0),
        ("0.5^2", 0.25),
        ("1/128", 1 / 128),
        ("1/3", 1 / 3),
        ("0.5/2", 0.25),
        ("1_000_000", 1e6),
        (" 7 ", 7.0),
        ("-3", -3.0),
        ("+3", 3.0),
        ("2**-2000", 0.0),
    ],
)
def test_reals_are_read(text, value):
    """The ways in which people write budgets and probabilities are all understood."""
    assert real(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e6", 10**6),
        ("1_000_000", 10**6),
        ("10**6", 10**6),
        ("6/3", 2),
        ("1.5e3", 1500),
        ("2^70", 2**70),
        ("0", 0),
    ],
)
def test_counts_are_read_exactly(text, value):
    """A number of queries may be written as a power or with an exponent and stays an integer."""
    assert count(text) == value
    assert isinstance(count(text), int)


@pytest.mark.parametrize("text", ["1.5", "1/3", "2**-1", "1e-3"])
def test_broken_counts_are_refused(text):
    """There is no half query."""
    with pytest.raises(ArgumentTypeError, match="whole number"):
        count(text)


NOT_NUMBERS = [
    "x",
    "1x",
    "2**",
    "**2",
    "2**0.5",
    "2**2**2",
    "1/2/3",
    "1//2",
    "1__0",
    "_1",
    "1_",
    "1e",
    "1e99999",
    "2**99999",
    "nan",
    "inf",
    "0x10",
    "(1)",
    "1+1",
    "__import__('os')",
    "٣",
]


@pytest.mark.parametrize("text", [*NOT_NUMBERS, "", " ", "1 2", "9" * 61])
def test_anything_else_is_refused(text):
    """Nothing is evaluated, and what is not a number is refused with examples."""
    with pytest.raises(ArgumentTypeError, match=r"like 0\.25"):
        real(text)


def test_impossible_numbers_are_refused():
    """Division by zero and overflow are told apart from nonsense."""
    for text in ("1/0", "0**-1", "0^-3"):
        with pytest.raises(ArgumentTypeError, match="divides by zero"):
            real(text)
    for text in ("1e400", "2**1024"):
        with pytest.raises(ArgumentTypeError, match="too large"):
            real(text)


@settings(deadline=None)
@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_is_read_back(value):
    """What Python prints for a float is read as the same float."""
    assert real(repr(value)) == value


@settings(deadline=None)
@given(text=st.text(alphabet="0123456789._eE+-*/^ x", max_size=70))
def test_no_text_does_anything_else(text):
    """Any text gives a float or the one error that argparse reports."""
    with contextlib.suppress(ArgumentTypeError):
        assert isinstance(real(text), float)
