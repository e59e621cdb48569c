"""Decoders by their names."""

import pytest

from pacpredict.core.decode import DECODERS, check_decoder
from pacpredict.exceptions import InvalidInput


def test_decoders_have_columns():
    """Each decoder has its own place in the table of labels."""
    assert [check_decoder(name) for name in DECODERS] == [("gaussian", 0), ("gaussian", 1), ("channel", 0)]
    assert DECODERS == ("argmax", "map", "sample")


@pytest.mark.parametrize("name", ["", "Argmax", "median", None, 0])
def test_unknown_decoders(name):
    """A misspelt decoder is not taken for the default."""
    with pytest.raises(InvalidInput, match="argmax, map"):
        check_decoder(name)
