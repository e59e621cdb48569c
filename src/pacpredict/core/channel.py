"""Releasing a label itself, through a finite channel in whole numbers (docs/theory.md, 11).

With w the belief's masses of the k voted classes and c the secret model's label, the answer is y with probability

    W(y | c) = (weight[y] + coupled [y = c]) / 2^62,    weight[y] about (2^62 - coupled) w[y], all adding up to 2^62:

mostly a draw from what everybody may believe, and with probability coupled / 2^62 the secret's own label. The weights
are integers and the draw compares integers, so the numbers that the guarantee speaks about are those that are drawn.

With l = coupled / 2^62 and r[y] = weight[y] / (2^62 - coupled), an answer reveals at most

    sum_c w[c] KL(W(. | c) || r) = sum_c w[c] ( r[c] h(x[c]) + (1 - r[c]) h(-l) ),    x[c] = l (1 - r[c]) / r[c],

where h(u) = (1 + u) log(1 + u) - u is never negative, so nothing cancels. It multiplies the odds of the models that
vote y, against all others, by 1 + coupled / weight[y], and no others.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pacpredict.core.belief import Belief
from pacpredict.core.compiled import compiled
from pacpredict.core.kernel import MASS_FLOOR, rounding_of_masses
from pacpredict.core.validate import check_budget, check_votes
from pacpredict.exceptions import InvalidInput
from pacpredict.types import FloatArray, IntArray

# The unit in which probabilities are counted. It is a signed 64-bit integer together with any sum of weights.
UNITY_BITS = 62
UNITY = 1 << UNITY_BITS

# The coupling stays this far from 1, so that no answer rules a model out.
_MOST_COUPLED = 1.0 - 2.0**-20

# h is a series up to here; what follows its last term is below 2^-53 of the sum in either range.
_SHORT_SERIES_UP_TO, _SERIES_UP_TO = 2.0**-10, 0.125

# Newton's method ends with steps below this fraction; what is missing from the largest coupling is of that order.
_SMALL_STEP = 1e-13

# The coupling aims this far below its limits, so that the certificate, computed otherwise, finds it within them.
_AIM = 1.0 - 2.0**-42


@compiled
def information_density(u: float) -> float:
    """Return h(u) = (1 + u) log(1 + u) - u for u above -1, to 1e-14 of itself."""
    if abs(u) <= _SHORT_SERIES_UP_TO:
        return u * u * (1 / 2 - u * (1 / 6 - u * (1 / 12 - u * (1 / 20 - u / 30))))
    if abs(u) <= _SERIES_UP_TO:
        total = 0.0
        for n in range(19, 1, -1):
            total = 1.0 / (n * (n - 1)) - u * total
        return u * u * total
    return (1.0 + u) * math.log1p(u) - u


@compiled
def _information_and_slope(mass: FloatArray, rest: FloatArray, l: float) -> tuple[float, float]:  # noqa: E741
    """Compute what an answer reveals if its weights follow the masses, and how fast that grows with the coupling l."""
    information, slope = 0.0, 0.0
    for_others, log_others = information_density(-l), math.log1p(-l)
    for c in range(mass.size):
        x = l * rest[c] / mass[c]
        information += mass[c] * (mass[c] * information_density(x) + rest[c] * for_others)
        slope += mass[c] * rest[c] * (math.log1p(x) - log_others)
    return information, slope


@compiled
def _largest_coupling(mass: FloatArray, rest: FloatArray, b: float) -> float:
    """Find the l at which an answer reveals b, by Newton's method: the information is convex and increases with l."""
    coupling = min(math.sqrt(2.0 * b / (mass.size - 1)), _MOST_COUPLED)
    for _ in range(100):  # three are typical
        information, slope = _information_and_slope(mass, rest, coupling)
        following = min(coupling + (b - information) / slope, _MOST_COUPLED)
        step = abs(following - coupling)
        coupling = following
        if step <= _SMALL_STEP * coupling:
            break
    return coupling


@compiled
def heaviest(mass: FloatArray) -> int:
    """Return the class of the largest mass, the first of equals."""
    best = 0
    for c in range(1, mass.size):
        best = c if mass[c] > mass[best] else best
    return best


@compiled
def _sum_others(mass: FloatArray, rest: FloatArray) -> None:
    """Compute the mass of all other classes; for the heaviest, which may leave them next to nothing, by adding up."""
    first, others = heaviest(mass), 0.0
    for c in range(mass.size):
        others += mass[c] * (c != first)
        rest[c] = 1.0 - mass[c]
    rest[first] = others


@compiled
def fill_weights(mass: FloatArray, coupled: int, weights: IntArray) -> None:
    """Give each class its share of what is not coupled; rounding falls to the heaviest."""
    share, left = float(UNITY - coupled), UNITY - coupled
    for c in range(mass.size):
        weights[c] = max(int(share * mass[c]), 1)
        left -= weights[c]
    weights[heaviest(mass)] += left


@compiled
def leak_of_weights(mass: FloatArray, weights: IntArray, coupled: int, margin: float) -> float:
    """Certify a channel: bound what an answer reveals, from the very weights; masses may be wrong by `margin`."""
    free = UNITY - coupled
    l = coupled / UNITY  # noqa: E741
    for_others, leak = information_density(-l), 0.0
    for c in range(mass.size):
        r, others = weights[c] / free, (free - weights[c]) / free  # the difference of integers is exact
        leak += mass[c] * (r * information_density(l * others / r) + others * for_others)
    return leak * (1.0 + margin + (mass.size + 16) * 2.0**-52)  # and what the sum itself rounds away


@compiled
def reach_of_weights(weights: IntArray, coupled: int) -> float:
    """Bound how far any answer can move log-likelihoods against each other, rounded up."""
    smallest = weights[0]
    for c in range(1, weights.size):
        smallest = min(smallest, weights[c])
    return math.log1p(coupled / smallest) * (1.0 + 2.0**-50)


@compiled
def _stays_within(weights: IntArray, coupled: int, room: FloatArray) -> bool:
    """Tell whether every label lifts the models that vote for it by no more than its room."""
    for c in range(weights.size):
        if room[c] < np.inf and math.log1p(coupled / weights[c]) * (1.0 + 2.0**-50) > room[c]:
            return False
    return True


@compiled
def couple(
    mass: FloatArray, b: float, room: FloatArray, margin: float, weights: IntArray, rest: FloatArray
) -> int:
    """Choose the weights of a channel with as much coupling as budget and room allow; returns the coupling.

    An answer then reveals at most b nats, and label c lifts the log-likelihood of the models that vote for it by no
    more than room[c]. The masses are relative to their sum, and positive; `rest` is overwritten. No coupling at all is
    always allowed and reveals nothing.
    """
    factor = np.inf
    for c in range(mass.size):
        factor = min(factor, math.expm1(min(room[c], 700.0)) * mass[c])
    coupling = 0.0
    if factor > 0.0:
        _sum_others(mass, rest)
        most = _largest_coupling(mass, rest, b / (1.0 + margin))
        coupling = min(most, factor / (1.0 + factor)) * _AIM
    coupled = int(coupling * UNITY)
    cut = 1 + (coupled >> 40)
    while coupled > 0:
        fill_weights(mass, coupled, weights)
        fits = leak_of_weights(mass, weights, coupled, margin) <= b
        if fits and _stays_within(weights, coupled, room):
            return coupled
        coupled -= cut  # rounding: of a weight that is a small number, or of a logarithm
        cut *= 2
    fill_weights(mass, 0, weights)
    return 0


@compiled
def draw_slot(weights: IntArray, secret_slot: int, uniform: int) -> int:
    """Draw the answer's slot from a number between 0 and 2^62 - 1, each equally likely.

    The first weights[0] of them mean slot 0, the next weights[1] slot 1, and so on; what the weights leave, the coupled
    ones, mean the secret's slot. In arithmetic alone: the time tells neither which it was, nor what the secret's slot
    is.
    """
    slot, end = 0, 0
    for c in range(weights.size):
        end += weights[c]
        slot += uniform >= end
    return slot + (secret_slot - weights.size) * (slot == weights.size)


@compiled
def uniform_of(high: float, low: float) -> int:
    """Make a number below 2^62 of the first 31 bits of two uniform numbers below 1: for experiments with a seed."""
    return (int(high * 2.0**31) << 31) | int(low * 2.0**31)


@dataclass(frozen=True, eq=False)
class Channel:
    """How the label of one query would be released: a weight for each voted class, and the coupling to the secret."""

    classes: IntArray  # (k,) the voted classes, ascending
    masses: FloatArray  # (k,) the belief in each
    weights: IntArray  # (k,)
    coupled: int

    @cached_property
    def transition(self) -> FloatArray:
        """W(y | c), a row for each label that the secret can have."""
        matrix: FloatArray = (self.weights + self.coupled * np.eye(self.classes.size)) / UNITY
        return matrix

    def leakage(self, margin: float = 0.0) -> float:
        """Bound in nats what an answer reveals, if masses are wrong by a fraction of `margin` at most."""
        return leak_of_weights(self.masses, self.weights, self.coupled, margin)

    def reach(self) -> float:
        """Bound how far any answer moves log-likelihoods against each other."""
        return reach_of_weights(self.weights, self.coupled)


def calibrate_channel(
    votes: npt.ArrayLike, n_classes: int, belief: Belief, step_budget: float, *, room: float = math.inf
) -> Channel:
    """Choose the channel for the labels of m models: what `calibrate_votes` is for Gaussian noise."""
    b = check_budget(step_budget, "step_budget")
    row = check_votes(votes, n_classes, belief.n_models)
    if row.shape[0] != 1:
        raise InvalidInput(f"calibrate_channel takes one query of shape ({belief.n_models},)")
    classes, slots = np.unique(row[0].astype(np.int64), return_inverse=True)
    masses = np.maximum(np.bincount(slots, weights=belief.probabilities()), MASS_FLOOR)
    weights = np.full(classes.size, UNITY)
    coupled = 0  # nothing to tell apart
    if classes.size > 1:
        margin = rounding_of_masses(belief.n_models)
        coupled = couple(masses, b, np.full(classes.size, room), margin, weights, np.empty(classes.size))
    return Channel(classes, masses, weights, coupled)
