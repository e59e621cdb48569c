"""How large a breach an audit would have noticed: that nothing was found says no more than this.

A breach is noticed where the whole interval of what was measured lies beyond what is promised. How large it must be for
that depends on chance, so it is said for a chance of POWER. All of it follows from the number of trials and the
ceiling, whatever was found.
"""

from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pacpredict.audit.estimates import clopper_pearson, mean_passes

# Of breaches that are said to be noticeable this share is noticed.
POWER = 0.95
# Halvings of an interval of length 1: far finer than percentages are shown.
_HALVINGS = 30


class Noticeable(NamedTuple):
    """Successes above a ceiling from which on so many trials notice a breach."""

    ceiling: float
    alike: float  # if the success is the same in all trials
    all_or_nothing: float  # if each trial is told wholly or not at all, with chance POWER


def noticeable_games(n: int, ceiling: float) -> float | None:
    """Return the success in n games that are won or lost from which on it passes a ceiling with chance POWER.

    None: not even somebody who wins all would.
    """
    needed = _fewest(n, lambda hits: clopper_pearson(hits, n).low > ceiling)
    return None if needed is None else _rate_for(needed, n)


def noticeable_means(n: int, ceiling: float) -> Noticeable | None:
    """Return the same of a mean over n futures, in each of which a share from 0 to 1 is told.

    The less futures differ the more they show. So two cases are computed: all have the same share, and each has all or
    nothing, which is the widest spread that there can be.
    """
    low, high = ceiling, 1.0
    if not mean_passes(np.ones(n), ceiling):
        return None
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if mean_passes(np.full(n, middle), ceiling) else (middle, high)
    needed = _fewest(n, lambda hits: mean_passes(np.arange(n) < hits, ceiling))
    return None if needed is None else Noticeable(ceiling, high, _rate_for(needed, n))


def _fewest(n: int, is_noticed: Callable[[int], bool]) -> int | None:
    """Return the fewest hits of n that are noticed; more are, too."""
    needed = bisect_left(range(n + 1), True, key=is_noticed)
    return None if needed > n else needed


def _rate_for(needed: int, n: int) -> float:
    """Return the rate at which there are that many hits, or more, with chance POWER."""
    from scipy.special import betaincinv  # noqa: PLC0415

    return float(betaincinv(needed, n - needed + 1, POWER))
