"""The limit on how far answers move the odds of any statement about the training set (docs/theory.md, 10).

Let l(s) be the log-likelihood of the history if the secret is subset s: the logarithm of belief over prior, up to a
constant. The spread of a history is the largest l less the smallest, over all subsets that the prior allows. While the
spread stays within epsilon, no event is e^epsilon times as likely under one subset as under another, so the odds of any
two disjoint statements about the secret move by at most e^epsilon, whatever else an attacker knows about the subsets.

Whether a release fits is decided before anything is drawn, from history and votes alone. It leaves differences within
a voted class alone, so its room is what the spread between classes leaves.
"""

import math

import numpy as np

from pacpredict.core.compiled import compiled
from pacpredict.core.kernel import LOG_BELIEF_FLOOR
from pacpredict.core.tally import Query
from pacpredict.types import FloatArray

# An update adds a rounded gain to a rounded logarithm, and one in 256 is followed by a normalisation; each rounds by
# half a unit in the last place of a number no larger than the logarithm itself. Both ends of a difference are rounded.
_ROUNDING_OF_UPDATE = 2.0**-49

# Covers the rounding of a few operations on a bound.
_UP = 1.0 + 2.0**-48

# Subsets that the prior rules out have the logarithm LOG_BELIEF_FLOOR, give or take the rounding of a normalisation.
_RULED_OUT = LOG_BELIEF_FLOOR / 2


@compiled
def spread_of(log_belief: FloatArray, log_prior: FloatArray, n_updates: int) -> float:
    """Bound the spread of a history after so many contested releases, rounded up."""
    most, least, depth = -np.inf, np.inf, 1.0
    for i in range(log_belief.size):
        if log_prior[i] > _RULED_OUT:
            shift = log_belief[i] - log_prior[i]
            most, least = max(most, shift), min(least, shift)
            depth = max(depth, -log_belief[i])
    return (most - least) + _rounding(depth, n_updates)


@compiled
def most_moved(distance: float, n_updates: int) -> float:
    """Bound how much larger the bound on the spread is after a release that moved log-likelihoods by `distance`.

    Deeper logarithms are rounded more, in all updates so far; the last term is the rounding of this one, for logarithms
    down to -1000.
    """
    return distance * (1.0 + _ROUNDING_OF_UPDATE * (n_updates + 2)) * _UP + 1024 * _ROUNDING_OF_UPDATE


@compiled
def _rounding(depth: float, n_updates: int) -> float:
    """Bound the error of a difference of log-likelihoods, if no logarithm of the belief is below -depth."""
    return _ROUNDING_OF_UPDATE * (n_updates + 1) * (depth + 1.0)


@compiled
def fill_rooms(
    log_belief: FloatArray,
    log_prior: FloatArray,
    query: Query,
    n_updates: int,
    epsilon: float,
    highest: FloatArray,
    lowest: FloatArray,
    room: FloatArray,
) -> float:
    """Write how far the log-likelihood of each voted class may rise above that of all others; returns the least.

    Only subsets of different classes move against each other: class c may rise until its highest subset is epsilon
    above the lowest subset of any other class. `highest` and `lowest` are overwritten.
    """
    highest[:], lowest[:] = -np.inf, np.inf
    depth, j = 1.0, 0
    for i in range(log_belief.size):
        slot = query.bulk
        if j < query.slots.size and query.dissenters[j] == i:
            slot, j = query.slots[j], j + 1
        if log_prior[i] > _RULED_OUT:
            shift = log_belief[i] - log_prior[i]
            highest[slot], lowest[slot] = max(highest[slot], shift), min(lowest[slot], shift)
            depth = max(depth, -log_belief[i])
    first = second = np.inf  # the lowest of all classes, and of all but that one
    where = 0
    for c in range(room.size):
        if lowest[c] < first:
            first, second, where = lowest[c], first, c
        else:
            second = min(second, lowest[c])
    least = np.inf
    for c in range(room.size):
        others = second if c == where else first
        room[c] = epsilon - (highest[c] - others) - _rounding(depth, n_updates)
        least = min(least, room[c])
    return least


@compiled
def reach_of_noise(coordinates: FloatArray, variance: FloatArray, origin: int, delta: float) -> float:
    """Bound how far a noisy release moves log-likelihoods against each other, but for delta under every secret.

    The secret can release one of k points. Let d be the distance of two of them in deviations of the noise. With the
    secret at s, log-likelihoods differ from that of s by -d²/2 + d Z with a standard normal Z. Of k - 1 such Z none is
    beyond z = sqrt(2 log((k - 1) / delta)), but for delta; each difference then lies between -d²/2 - z d and z d. With
    two points there is one, else the range is that between two of them. No distance is greater than the two greatest
    from a point of origin together.
    """
    k, farthest, second = coordinates.shape[0], 0.0, 0.0
    for c in range(k):
        square = 0.0
        for i in range(variance.size):
            difference = coordinates[c, i] - coordinates[origin, i]
            square += difference * difference / variance[i]
        distance = math.sqrt(square)
        second = max(second, min(distance, farthest))
        farthest = max(farthest, distance)
    return _reach_of_distance(farthest + second, k, delta)


@compiled
def reach_of_fair_noise(k: int, variance: float, delta: float) -> float:
    """Bound the same for fair noise on k labels, which is as large in every direction.

    One-hot labels are sqrt(2) apart, and so are their coordinates along any orthonormal axes, up to the rounding of k
    numbers: no two are farther apart than any other two.
    """
    return _reach_of_distance(math.sqrt(2.0 / variance) * (1.0 + k * 2.0**-48), k, delta)


@compiled
def _reach_of_distance(d: float, k: int, delta: float) -> float:
    """Bound it for k points of which no two are more than d deviations of the noise apart."""
    z = math.sqrt(2.0 * math.log((k - 1) / delta))
    return (0.5 * d * d + z * d * min(k - 1, 2)) * _UP
