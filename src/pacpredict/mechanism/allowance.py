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


_MINUTE = 60.0


class Quota(NamedTuple):
    """How many queries are left of what is given once."""

    rows: int
    bound: Bound


class Rate(NamedTuple):
    """A store of answers that fills up within a minute."""

    per_minute: int
    stored: float  # as many answers fit now; less than none if it was emptied in advance

    def seconds_until(self, n_rows: int) -> int:
        """Return after how many whole seconds so many fit; never too few."""
        return math.floor((n_rows - self.stored) * _MINUTE / self.per_minute) + 1


class Allowance(NamedTuple):
    """How many queries a client may still be answered that were not answered before.

    Each of them counts as if the models differed on it: what is refused does not tell on which they do.
    """

    quota: Quota | None = None  # the tightest
    rate: Rate | None = None

    @property
    def rows(self) -> int:
        """How many may be answered now."""
        rows = [self.quota.rows] if self.quota else []
        return min([*rows, max(0, math.floor(self.rate.stored))] if self.rate else rows)

    def take(self, n_fresh: int, *, partial: bool) -> int:
        """Return how many of `n_fresh` new queries may be answered: all, or with `partial` the first of them."""
        if n_fresh <= self.rows:
            return n_fresh
        if partial and self.rows:
            return self.rows
        raise self._refusal(n_fresh, 1 if partial else n_fresh)

    def less(self, n_rows: int) -> "Allowance":
        quota, rate = self.quota, self.rate
        return Allowance(
            quota and quota._replace(rows=quota.rows - n_rows),
            rate and rate._replace(stored=rate.stored - n_rows),
        )

    def _refusal(self, n_fresh: int, needed: int) -> KeyMissing | QuotaReached:
        """Say why fewer fit than are needed: first what waiting does not change."""
        if self.quota is not None and self.quota.bound == "revoked":
            return KeyMissing("this key is not valid any more")
        if self.quota is not None and needed > self.quota.rows:
            return QuotaReached(self._text(self.quota.bound, n_fresh))
        if self.rate is None or needed > self.rate.per_minute:
            return QuotaReached(
                f"{n_fresh:,} new rows at once are more than this key may ask in a minute; send fewer at a time. "
                "Nothing was charged; what was answered before still is"
            )
        return RateReached(self._text("rate", n_fresh), seconds=self.rate.seconds_until(needed))

    def _text(self, bound: Bound, n_fresh: int) -> str:
        left = f"; {self.rows:,} of these {n_fresh:,} new rows fit" if self.rows else ""
        return f"{_WORDS[bound]} is reached{left}. Nothing was charged; what was answered before still is"
