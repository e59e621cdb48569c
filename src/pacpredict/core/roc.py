"""From leaked nats to true positives at a given rate of false positives, and back (docs/theory.md, 9).

A test says of a unit whether it was trained on: "yes" with probability t if it was (true positive rate) and f if it
was not (false positive rate). With pi the prior probability that it was, the answer of the test has

    J(t, f) = h(pi t + (1 - pi) f) - pi h(t) - (1 - pi) h(f),    h(x) = -x log x - (1 - x) log(1 - x),

nats of information about membership, hence at most what was leaked. The bound is the largest t with J(t, f) <= B.

J is a small difference of large entropies: of the order of B, out of numbers of the order of 1. So it is computed with
as many decimal digits as cancel, and _SPARE more.
"""

import bisect
import math
import struct
from decimal import Context, Decimal, localcontext

from pacpredict.core.bounds import DEFAULT_DELTA
from pacpredict.core.scalars import check_delta, check_epsilon, check_leakage, check_prior, check_rate
from pacpredict.exceptions import InvalidProbability

DEFAULT_FPR = 0.001  # where auditors look

# Digits beyond those that cancel. Logarithms and products are right to the last digit; some ten of them make a J.
_SPARE = 40
# A computed J of at least (1 + this) B is truly at least B: by far more than ten units of the last digit.
_COVER = Decimal("1.000000000000000000000000000001")
# From here on e^epsilon is above 1 / f for every float f above 0, so that only f = 0 is limited, by delta; much larger
# powers of e are no decimal numbers any more.
_NO_LIMIT = Decimal(1000)


def tpr_bound(budget_nats: float, fpr: float = DEFAULT_FPR, prior: float = 0.5) -> float:
    """Return the highest true positive rate of any test with this false positive rate, after so many nats.

    `prior` is the probability of a "yes" that is true: 1/2 for membership in a random half. Never below the exact
    bound, and at most one float above it. It holds on average over secrets and histories, as all that follows from
    nats does.
    """
    pi, f, budget = check_prior(prior), check_rate(fpr, "fpr"), check_leakage(budget_nats)
    if budget == 0 or f == 1:
        return f
    if budget == math.inf:
        return 1.0
    with localcontext(_digits_for(budget)):
        least = _covered(budget)
        rates = range(_number(f) + 1, _number(1.0))
        position = bisect.bisect_left(rates, least, key=lambda number: _information(_float(number), f, pi))
        return 1.0 if position == len(rates) else _float(rates[position])


def budget_for_tpr(tpr: float, fpr: float = DEFAULT_FPR, prior: float = 0.5) -> float:
    """Return the most nats that may leak while no test with this false positive rate finds more than `tpr`.

    Rounded down: `tpr_bound(budget_for_tpr(t, f), f) <= t` for every t below 1, to the last bit. At a rate of 1 this is
    where the guarantee ends.
    """
    pi, f, t = check_prior(prior), check_rate(fpr, "fpr"), check_rate(tpr, "tpr")
    if t < f:
        raise InvalidProbability(
            f"tpr {tpr!r} lies below fpr {fpr!r}, which a test that knows nothing has; ask for at least that"
        )
    if t == f:
        return 0.0
    # By Pinsker's inequality J is at least this, so it has at least these digits.
    with localcontext(_digits_for(2 * pi * (1 - pi) * (t - f) ** 2)):
        # Far below 5e-324 it may come out on either side of 0.
        information = max(_information(t, f, pi), Decimal(0))
        budget = float(information / _COVER)
        while _covered(budget) > information:
            budget = math.nextafter(budget, 0.0)
        while _covered(following := math.nextafter(budget, math.inf)) <= information:
            budget = following
        return budget


def tpr_for_epsilon(epsilon: float, fpr: float = DEFAULT_FPR, delta: float = DEFAULT_DELTA) -> float:
    """Return the highest true positive rate that (epsilon, delta)-DP allows at this false positive rate, rounded up.

    For every test, "yes" is at most e^epsilon times as probable, plus delta, if the unit was trained on; and so is "no"
    if it was not. Unlike `tpr_bound` this holds for every history.
    """
    e, f, d = Decimal(check_epsilon(epsilon)), Decimal(check_rate(fpr, "fpr")), Decimal(check_delta(delta))
    if e == Decimal("inf"):
        return 1.0
    e = min(e, _NO_LIMIT)
    with localcontext(Context(prec=_SPARE)):
        by_yes = e.exp() * f + d
        by_no = 1 - (-e).exp() + (-e).exp() * (d + f)  # in this order: 1 - f would lose a tiny f
        exact = min(by_yes, by_no, Decimal(1)) * _COVER
    nearest = float(exact)
    return min(1.0, nearest if Decimal(nearest) >= exact else math.nextafter(nearest, 1.0))


def _information(t: float, f: float, pi: float) -> Decimal:
    """Return J(t, f) in the present context."""
    member = Decimal(pi)
    rest = 1 - member
    return _entropy(member * Decimal(t) + rest * Decimal(f)) - member * _entropy(t) - rest * _entropy(f)


def _entropy(rate: float | Decimal) -> Decimal:
    yes = +Decimal(rate)
    no = 1 - Decimal(rate)
    return -sum((p * p.ln() for p in (yes, no) if p > 0), start=Decimal(0))


def _covered(budget: float) -> Decimal:
    return Decimal(budget) * _COVER


def _digits_for(least: float) -> Context:
    """Return a context with _SPARE digits in differences of entropies that are at least this small."""
    # A float is never smaller than 5e-324; a product of floats may come out as 0.
    lost = 324 if least == 0 else max(0, -math.floor(math.log10(least)))
    return Context(prec=_SPARE + lost)


def _number(value: float) -> int:
    """Return the place of a float of at least 0 in the order of all floats."""
    (number,) = struct.unpack("<q", struct.pack("<d", value))
    return int(number)


def _float(number: int) -> float:
    (value,) = struct.unpack("<d", struct.pack("<q", number))
    return float(value)
