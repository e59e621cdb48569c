"""How large a breach a self-test would have noticed with a chance of 95%.

All figures follow from the number of draws and from how likely false alarms may be, not from what was seen.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import gammaincinv, ndtri

from pacpredict.audit.power import POWER
from pacpredict.audit.self_test.evidence import Scores
from pacpredict.audit.self_test.hypotheses import N_ALTERNATIVES, SHARES, kinds_of
from pacpredict.audit.self_test.oracle import Claim, channel_information
from pacpredict.audit.self_test.statistics import n_places
from pacpredict.types import FloatArray

_SURE = float(ndtri(POWER))  # deviations by which a threshold must be passed on average


def lean(n: int, n_models: int, alarm: float) -> float:
    """Return the lean of n standard normals that follows a parity of the secret, in deviations."""
    return (_threshold(alarm / (n_places(n_models) - 1)) + _SURE) / math.sqrt(n)


def lean_in_words(n: int, claim: Claim, alarm: float) -> str:
    shift = lean(n, claim.n_models, alarm)
    return f"noise shifted by {shift:.2g} standard deviations by a parity of the secret, {_leak(shift**2 / 2, claim)}"


def variance_in_words(scores: Scores, groups: Sequence[str], alarm: float) -> str:
    kinds = kinds_of(scores, groups)
    n, tail = max(int(kind.sum()) for kind in kinds), alarm / len(kinds) / 2
    low = gammaincinv(n / 2, tail) / gammaincinv(n / 2, POWER)
    high = gammaincinv(n / 2, 1 - tail) / gammaincinv(n / 2, 1 - POWER)
    return f"a variance below {low:.4f} or above {high:.4f} of the claimed one"


def own_share(chances: FloatArray, n_tests: int, alarm: float) -> float | None:
    """Return the share of answers that may be the secret's own label instead, before that is noticed."""
    needed = math.log(n_tests / alarm)
    for share in SHARES:
        other = (1 - share) * chances + share
        own, not_own = np.log(other / chances), math.log1p(-share)
        mean, square = other * own + (1 - other) * not_own, other * own**2 + (1 - other) * not_own**2
        if mean.sum() - _SURE * math.sqrt(float((square - mean**2).sum())) >= needed:
            return share
    return None


def own_share_in_words(scores: Scores, groups: Sequence[str], claim: Claim, alarm: float) -> str:
    kinds = kinds_of(scores, groups)
    largest = max(kinds, key=lambda kind: int(kind.sum()))
    n_tests = N_ALTERNATIVES * len(kinds) * (1 + np.unique(scores.label).size)
    share = own_share(scores.value[largest], n_tests, alarm)
    if share is None:
        return ""
    leak = _leak(channel_information([0.5, 0.5], share)[0], claim)
    return f"the secret's own label in {100 * share:g}% of answers, {leak}"


def secrets_in_words(n: int, n_models: int, alarm: float) -> str:
    if not n:
        return ""
    parity = (_threshold(alarm / (n_places(n_models) - 1)) + _SURE) / (2 * math.sqrt(n))
    one = (_threshold(alarm / n_models) + _SURE) * math.sqrt((n_models - 1) / n)
    return (
        f"a parity of the index that comes in {100 * (0.5 + parity):.1f}% of draws, or one subset that comes "
        f"{1 + one:.2f} times as often as it should"
    )


def _threshold(alarm: float) -> float:
    return float(-ndtri(alarm / 2))


def _leak(nats: float, claim: Claim) -> str:
    return f"{nats:.2g} nats an answer or {nats / claim.budget.step:,.3g} steps"
