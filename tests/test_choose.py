"""What docs/choose.md says about odds limits is what the library proposes."""

import math
import re
from pathlib import Path

from pacpredict.core.plan import propose_odds_limit

PAGE = Path(__file__).parents[1] / "docs" / "choose.md"


def test_the_rule_of_thumb_quotes_the_proposed_limit():
    """The limit and the factor that the page gives for a total are those of `plan`, rounded up."""
    total, limit, factor = re.search(
        r"at ([0-9.]+) nats it is ([0-9.]+), a factor of (\d+)", PAGE.read_text()
    ).groups()
    assert float(limit) == propose_odds_limit(float(total))
    assert int(factor) == math.ceil(math.exp(float(limit)))
