"""What was measured, how sure that is, and whether it is above a ceiling.

All intervals are two-sided at LEVEL. A measured rate passes a ceiling if the whole interval lies above it. Those of
`clopper_pearson` and `mean_of` are proved for any number of trials, `rate_over_trials` and `students_mean` approximate.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pacpredict.core.attacks import success_after, true_positives
from pacpredict.core.bounds import success_for_epsilon
from pacpredict.exceptions import InvalidInput
from pacpredict.types import BoolArray, FloatArray

# A report has some 150 comparisons. If all of its rates were exactly at their ceilings, and independent, about one of
# thirteen reports would call one of them too high.
LEVEL = 0.999
# Shares of their capital that gamblers against a mean stake (see `mean_of`): large ones win where trials differ little
# or are few, small ones where they differ much and are many. The least is right for some 100,000 trials of a coin.
_STAKES = 2.0 ** -np.arange(10)
# Halvings of an interval of length 1, to about what doubles can tell apart.
_HALVINGS = 50
# False positive rates at which true positives are reported: where auditors look.
RATES = (0.01, 0.001, 0.0001)


class Estimate(NamedTuple):
    """A rate with its confidence interval."""

    value: float
    low: float
    high: float

    def passes(self, ceiling: float) -> bool:
        """Tell whether the true rate is surely above a ceiling."""
        return self.low > ceiling


class TruePositives(NamedTuple):
    """Members found at a rate of false alarms, and how many can be found at most."""

    fpr: float  # at which the threshold was put
    accused: Estimate  # what the rate of false alarms really is, as far as is known
    tpr: Estimate
    ceiling: float
    surely: float  # the ceiling at the highest rate that it can be

    def passes(self) -> bool:
        """Tell whether more were found than can be, whatever the rate of false alarms really is."""
        return self.tpr.passes(self.surely)


def clopper_pearson(hits: float, n: float) -> Estimate:
    """Return the rate of hits in n independent cases, with the exact interval; counts may be effective ones."""
    from scipy.special import betaincinv  # noqa: PLC0415  # takes time to import

    if not 0 <= hits <= n or n <= 0:
        raise InvalidInput(f"there cannot be {hits!r} hits in {n!r} cases")
    tail = (1 - LEVEL) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, n - hits + 1, tail))
    high = 1.0 if hits == n else float(betaincinv(hits + 1, n - hits, 1 - tail))
    return Estimate(hits / n, low, high)


def mean_of(values: npt.ArrayLike, level: float = LEVEL) -> Estimate:
    """Return the mean of independent values from 0 to 1, with an interval that holds for all of these.

    Whoever doubts that the mean is m or less may bet on it: of a share c of the capital, each value x returns x / m. If
    m is the mean nothing is won on average, whatever the distribution, so that capital grows by a factor 1 / p with
    probability p at most (Markov). The lower end is where the average of ten such gamblers has just won enough; the
    upper one likewise for 1 - x. See Waudby-Smith and Ramdas (2024), with stakes that are fixed beforehand.
    """
    given = np.asarray(values, np.float64)
    if not given.size or not ((given >= 0) & (given <= 1)).all():
        raise InvalidInput("an interval of a mean needs values from 0 to 1, and at least one")
    tail = (1 - level) / 2
    return Estimate(float(given.mean()), _least_mean(given, tail), 1 - _least_mean(1 - given, tail))


def _least_mean(values: FloatArray, tail: float) -> float:
    """Return the largest m against which bets have won 1 / tail times what was staked."""
    low, high = 0.0, float(values.mean())  # at their own mean values win nothing
    for _ in range(_HALVINGS):
        m = (low + high) / 2
        if m <= 0:
            return 0.0
        low, high = (m, high) if _has_won(values, m, tail) else (low, m)
    return low


def _has_won(values: FloatArray, m: float, tail: float) -> bool:
    with np.errstate(divide="ignore"):  # whoever stakes everything may lose it
        grown = np.log1p(_STAKES[:, None] * (values / m - 1)).sum(axis=1)
    return bool(np.logaddexp.reduce(grown) >= math.log(_STAKES.size / tail))


def mean_passes(values: npt.ArrayLike, ceiling: float) -> bool:
    """Tell whether the lower end of `mean_of` is above a ceiling, without looking for it."""
    return ceiling < 1 and _has_won(np.asarray(values, np.float64), ceiling, (1 - LEVEL) / 2)


def least_to_tell(ceiling: float, *, of_means: bool) -> int | None:
    """Return how many games it takes to show a rate above a ceiling, if the attacker wins all; None: nothing shows it.

    Games that are won or lost are counted exactly. Means are bet on, and whoever stakes everything has to win for all.
    """
    if ceiling >= 1:
        return None
    tail = (1 - LEVEL) / 2 / (_STAKES.size if of_means else 1)
    return math.floor(math.log(tail) / math.log(ceiling)) + 1


def students_mean(values: npt.ArrayLike) -> Estimate:
    """Return the mean of independent values that nothing bounds, such as nats, with Student's interval.

    It is exact for normal values only, and else an approximation that needs many of them.
    """
    given = np.asarray(values, np.float64)
    n, mean = given.size, float(given.mean())
    if n < 2:
        return Estimate(mean, -math.inf, math.inf)
    margin = _students_quantile(n - 1) * float(given.std(ddof=1)) / math.sqrt(n)
    return Estimate(mean, mean - margin, mean + margin)


def _students_quantile(degrees: float) -> float:
    from scipy.special import stdtrit  # noqa: PLC0415

    return float(stdtrit(degrees, 1 - (1 - LEVEL) / 2))


def rate_over_trials(hits: npt.ArrayLike, cases: npt.ArrayLike) -> Estimate:
    """Return the rate of hits where those of one trial belong together: the interval of Korn and Graubard (1998).

    It is Clopper and Pearson's with as many cases as independent ones would have been needed for the spread between
    trials; fewer, since a spread that few trials show is not known well. There are never more of these than cases, so
    that the interval is never narrower than theirs.
    """
    k, n = np.asarray(hits, np.float64), np.asarray(cases, np.float64)
    k, n = k[n > 0], n[n > 0]
    total, trials = float(n.sum()), n.size
    rate = float(k.sum() / total)
    spread = float(((k - rate * n) ** 2).sum()) / total**2  # the variance of a ratio
    if 0 < rate < 1 and spread > 0 and trials > 1:
        known = (_students_quantile(total - 1) / _students_quantile(trials - 1)) ** 2
        effective = min(total, known * rate * (1 - rate) / (spread * trials / (trials - 1)))
    else:
        effective = float(trials)
    return clopper_pearson(rate * effective, effective)


def roc(
    scores: FloatArray, members: BoolArray, budget_nats: float, odds_limit: float | None, delta: float
) -> list[TruePositives]:
    """Measure what the test "yes beyond a threshold" finds, by scores (n_trials, n_cases) of each trial's cases.

    The threshold is the lowest at which no more than the stated share of all non-members is accused. Without members,
    or without others, there is nothing to find.
    """
    if members.all() or not members.any():
        return []
    outside = np.sort(scores[~members])[::-1]
    found = []
    for fpr in RATES:
        threshold = outside[min(math.floor(fpr * outside.size), outside.size - 1)]
        hits = ((scores > threshold) & members).sum(axis=1)
        alarms = ((scores > threshold) & ~members).sum(axis=1)
        accused = rate_over_trials(alarms, (~members).sum(axis=1))
        ceiling, surely = (
            true_positives(budget_nats, 0.5, odds_limit, delta, rate)
            for rate in (fpr, max(fpr, accused.high))
        )
        tpr = rate_over_trials(hits, members.sum(axis=1))
        found.append(TruePositives(fpr, accused, tpr, ceiling, surely))
    return found


def curve(
    scores: FloatArray, members: BoolArray, least: float = 1e-5, n_points: int = 60
) -> list[tuple[float, float]]:
    """Return points (false, true positive rate) of the same test, evenly spread over a logarithmic axis."""
    outside, inside = np.sort(scores[~members])[::-1], np.sort(scores[members])
    first = max(least, 1 / outside.size)
    points = []
    for fpr in np.geomspace(first, 1.0, n_points):
        threshold = outside[min(math.floor(fpr * outside.size), outside.size - 1)]
        accused = np.searchsorted(-outside, -threshold, side="left") / outside.size
        found = 1 - np.searchsorted(inside, threshold, side="right") / inside.size
        points.append((float(accused), float(found)))
    return points


def success_ceiling(budget_nats: float, prior: float, odds_limit: float | None, delta: float) -> float:
    """Return how often membership can be told at most: by what nats allow, and by the limit on odds."""
    by_nats = success_after(budget_nats, prior)
    if odds_limit is None:
        return by_nats
    # Under (epsilon, delta)-DP whichever is larger (docs/theory.md, 6).
    by_odds = max(success_for_epsilon(odds_limit, delta), prior + (1 - prior) * delta)
    return min(by_nats, by_odds)
