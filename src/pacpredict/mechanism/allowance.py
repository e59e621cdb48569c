"""What one client may still be answered, of what all of them share.

A quota keeps one client from spending what is for all. It is no boundary of privacy, since clients can put together
what they were told: that is the budget's business.
"""

import math
from typing import Literal, NamedTuple

from pacpredict.exceptions import KeyMissing, QuotaReached, RateReached

# What sets the limit: the number of answers, the share of the budget, their rate, or that the key is no longer valid.
Bound = Literal["queries", "nats", "rate", "revoked"]

_WORDS: dict[Bound, str] = {
    "queries": "the number of queries that this key may ask",
    "nats": "the share of the privacy budget that this key may spend",
    "rate": "the rate at which this key may ask",
    "revoked": "",
}


class Allowance(NamedTuple):
    """How many queries a client may still be answered that were not answered before.

    Each of them counts as if the models differed on it: what is refused does not tell on which they do.
    """

    rows: int
    bound: Bound
    seconds: float = 0.0  # until there is room for one more, if that is a matter of time

    def take(self, n_fresh: int, *, partial: bool) -> int:
        """Return how many of `n_fresh` new queries may be answered: all, or with `partial` the first of them."""
        if n_fresh <= self.rows:
            return n_fresh
        if partial and self.rows:
            return self.rows
        self._refuse(n_fresh)
        return 0

    def less(self, n_rows: int) -> "Allowance":
        return self._replace(rows=self.rows - n_rows)

    def _refuse(self, n_fresh: int) -> None:
        if self.bound == "revoked":
            raise KeyMissing("this key is not valid any more")
        left = f"; {self.rows:,} of these {n_fresh:,} new rows fit" if self.rows else ""
        text = (
            f"{_WORDS[self.bound]} is reached{left}. Nothing was charged; what was answered before still is"
        )
        if self.bound == "rate":
            raise RateReached(text, seconds=max(1, math.ceil(self.seconds)))
        raise QuotaReached(text)
