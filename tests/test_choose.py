"""The rule of thumb in docs/choose.md is what the table beside it says."""

import math
import re
from pathlib import Path

from pacpredict.core.roc import tpr_bound

PAGE = Path(__file__).parents[1] / "docs" / "choose.md"
NUMBERS = {"five": 5, "six": 6, "seven": 7, "eight": 8}


def test_the_rule_of_thumb_rounds_up():
    """Of members no more can be found than the page says, in words, of the total that it advises."""
    said = re.search(
        r"stay below ([0-9.]+) nats\. Even without the limit\s+at most (\w+) in a hundred", PAGE.read_text()
    )
    assert NUMBERS[said[2]] == math.ceil(100 * tpr_bound(float(said[1]), 0.001))
