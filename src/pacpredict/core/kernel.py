"""The compiled inner loop of a release on label votes.

A query is the vector of the m models' labels. With w the belief summed per voted class (k classes), the
covariance of the one-hot output is diag(w) - w wᵀ, whose null vector is the vector of ones. So everything
happens in the (k-1)-dimensional sum-zero subspace, in coordinates: class c sits at row c of a matrix `axes`
of shape (k, k - 1), the secret's row is released with independent Gaussian noise per coordinate, and the
noisy vector of the paper is a function of that (theory.md, section 3).

The guarantee needs no property of `axes`: the variance of each coordinate is computed from the very numbers that
are released, and so is the belief. That the axes are orthonormal eigenvectors only makes the noise as small as
Theorem 2.5's; for fair noise, equal along all axes, they are fixed and merely orthonormal.
"""

import math
from typing import NamedTuple

import numpy as np

from pacpredict.core.axes import Scratch, helmert_axes, make_scratch, padded, principal_axes
from pacpredict.core.compiled import compiled, compiled_allocating, compiled_into_callers
from pacpredict.core.coordinates import choose_variances, spread_of_coordinates
from pacpredict.types import FloatArray, IntArray

# A class that somebody votes for keeps at least this mass when noise is calibrated, however little the belief
# leaves it. Raising a mass only raises noise, and 1e-24 keeps the noise (1e-12 / sqrt(b) and more) visible beside the
# one-hot vector's ones up to a million nats: no contested release is free of noise, even in rounded numbers.
MASS_FLOOR = 1e-24

# A model this unlikely never comes back; a finite number keeps every formula free of inf - inf.
LOG_BELIEF_FLOOR = -1e9

# Evidence below this, beside a best likelihood of 1, may rest on a mass that was raised to its floor: something
# happened that the belief had all but ruled out. The belief is then normalised anew.
LOG_SURPRISE = math.log(1e-15)

# Noise variances are inflated by this fraction, and the certificate of a calibration looks whether it sufficed.
ROUNDING_MARGIN = 1e-12

# How far the sum of a belief may be from 1. Every update rounds the logarithms, and with them the sum by up to
# 1e-15 (2 log m + 6 units of 2^-53, for any m in use), in random directions; so the sum is looked at after every
# 256 contested releases, and the belief normalised if it is off by more than 2e-13.
BELIEF_DRIFT = 5e-13
RELEASES_PER_LOOK = 256
_TOLERATED_DRIFT = 2e-13


@compiled
def rounding_of_masses(m: int) -> float:
    """Bound the relative error of a class mass, and of anything linear in them: it grows with the models added up.

    A sum of m rounded terms is wrong by m 2^-53 of itself, a difference from 1 that is at least a half by twice that.
    """
    return BELIEF_DRIFT + (m + 8) * 2.0**-51


class Workspace(NamedTuple):
    """Arrays for one query after the other, so that a loop over queries allocates nothing."""

    mass: FloatArray  # (k,)
    gain: FloatArray  # (k,)
    entries: FloatArray  # (k,)
    axes: FloatArray  # (k, padded(k - 1))
    variance: FloatArray  # (padded(k - 1),)
    deviation: FloatArray  # (padded(k - 1),)
    moment: FloatArray  # (padded(k - 1),)
    normals: FloatArray  # (padded(k - 1),)
    noisy: FloatArray  # (padded(k - 1),)
    dissent: FloatArray  # (m,)
    weights: IntArray  # (k,) of a finite channel
    room: FloatArray  # (k,) below the limit on odds
    scratch: Scratch


@compiled_allocating
def make_workspace(k: int, m: int) -> Workspace:
    """Allocate for up to k classes and m models."""
    return Workspace(
        np.empty(k),
        np.empty(k),
        np.empty(k),
        np.empty((k, padded(k - 1))),
        np.empty(padded(k - 1)),
        np.empty(padded(k - 1)),
        np.empty(padded(k - 1)),
        np.empty(padded(k - 1)),
        np.empty(padded(k - 1)),
        np.empty(m),
        np.empty(k, dtype=np.int64),
        np.empty(k),
        make_scratch(k),
    )


@compiled_into_callers
def sum_masses(
    log_belief: FloatArray, dissenters: IntArray, slots: IntArray, bulk: int, mass: FloatArray
) -> None:
    """Sum the belief of the models in each slot; `bulk` is the slot of all who are no dissenters.

    Masses below the floor are raised to it.
    """
    mass[:] = 0.0
    for j in range(slots.size):
        mass[slots[j]] += math.exp(log_belief[dissenters[j]])
    left = 1.0
    for c in range(mass.size):
        left -= mass[c]
    if left < 0.5:  # too little to be the difference of rounded numbers: add up the bulk itself
        left, j = 0.0, 0
        for i in range(log_belief.size):
            if j < dissenters.size and dissenters[j] == i:
                j += 1
            else:
                left += math.exp(log_belief[i])
    mass[bulk] = left
    for c in range(mass.size):
        mass[c] = max(mass[c], MASS_FLOOR)


@compiled_into_callers
def calibrate_masses(
    mass: FloatArray, b: float, fair: bool, axes: FloatArray, variance: FloatArray, space: Workspace
) -> int:
    """Choose axes and noise variances for one contested query: the least noise (Theorem 2.5), or fair noise.

    Coordinates with variances v meet the budget exactly with sigma_i² = d_i sum_j v_j / d_j / (2 b), whatever the
    positive d are: d_i = sqrt(v_i) along the eigenvectors has the least total, d_i = 1 is fair. The margin makes that
    hold for the rounded numbers, and the certificate below checks it on them. Between two classes there is one axis,
    and both are the same noise.

    There are k - 1 axes, then zeros up to whole lanes (see `padded`): these release nothing.
    Returns the heaviest class.
    """
    deviation, moment = space.deviation[: variance.size], space.moment
    if fair and mass.size > 2:
        heaviest = helmert_axes(mass, axes, space.scratch)
        spread_of_coordinates(axes, mass, heaviest, deviation, moment)
        total = 0.0
        for i in range(variance.size):
            deviation[i], total = 1.0, total + moment[i]
    else:
        heaviest = principal_axes(mass, axes, space.scratch)
        total = spread_of_coordinates(axes, mass, heaviest, deviation, moment)
    factor = total / (2.0 * b) * (1.0 + ROUNDING_MARGIN)
    leak = choose_variances(deviation, moment, factor, mass.size - 1, variance)
    leak *= 1.0 + rounding_of_masses(space.dissent.size)
    if leak > b:
        for i in range(variance.size):
            variance[i] *= leak / b * (1.0 + ROUNDING_MARGIN)
    return heaviest


@compiled
def slot_of(secret: int, dissenters: IntArray, slots: IntArray, bulk: int) -> int:
    """Find the slot that the secret votes for, in arithmetic alone.

    A choice, even one without an `if`, may be compiled to a jump, and a jump that is taken for some secrets only
    takes longer for them.
    """
    slot = bulk
    for j in range(slots.size):
        slot += (slots[j] - bulk) * (dissenters[j] == secret)
    return slot


@compiled_into_callers
def decode_argmax(entries: FloatArray) -> int:
    """Pick the largest entry of the noisy one-hot vector R_t, the first of equals: the paper's decoder.

    On the voted classes R_t is 1 / k + axes @ noisy, and 0 elsewhere; `entries` lack the 1 / k.
    """
    best, most = 0, -np.inf
    for c in range(entries.size):
        if entries[c] > most:
            best, most = c, entries[c]
    return best


@compiled
def largest(values: FloatArray) -> float:
    top: float = values[0]
    for i in range(1, values.size):
        top = max(top, values[i])
    return top


@compiled
def smallest(values: FloatArray) -> float:
    least: float = values[0]
    for i in range(1, values.size):
        least = min(least, values[i])
    return least


@compiled_into_callers
def decode_map(mass: FloatArray, gain: FloatArray) -> tuple[int, float]:
    """Pick the class of the largest posterior mass; returns it and the log evidence, log sum mass exp(gain).

    The largest gain is first made 0, for all share it: a gain may be so large that the masses would be lost
    beside it.
    """
    top = largest(gain)
    best, most, total = 0, -1.0, 0.0
    for c in range(gain.size):
        gain[c] -= top
        posterior = mass[c] * math.exp(gain[c])
        total += posterior
        if posterior > most:
            best, most = c, posterior
    return best, math.log(total)


@compiled
def normalise(log_belief: FloatArray) -> None:
    """Make the belief sum to 1, in log space."""
    top, total = largest(log_belief), 0.0
    for i in range(log_belief.size):
        total += math.exp(log_belief[i] - top)
    log_total = math.log(total)
    for i in range(log_belief.size):  # the top goes first: beside a large one the sum would lose its digits
        log_belief[i] = max((log_belief[i] - top) - log_total, LOG_BELIEF_FLOOR)


@compiled_into_callers
def keep_normalised(log_belief: FloatArray, contested: int) -> None:
    """Look at the belief's sum now and then, counted in contested releases, and repair it if it has drifted.

    Counted, so that a replay looks at the same places.
    """
    if contested % RELEASES_PER_LOOK:
        return
    total = 0.0
    for i in range(log_belief.size):
        total += math.exp(log_belief[i])
    if abs(total - 1.0) > _TOLERATED_DRIFT:
        normalise(log_belief)


@compiled_into_callers
def update_belief(
    log_belief: FloatArray,
    dissenters: IntArray,
    slots: IntArray,
    bulk: int,
    gain: FloatArray,
    log_evidence: float,
    dissent: FloatArray,
) -> None:
    """Apply Bayes' rule (eq. 4) in place; a model's gain depends only on the class that it votes for."""
    for j in range(slots.size):
        dissent[j] = log_belief[dissenters[j]] + (gain[slots[j]] - log_evidence)
    shift = gain[bulk] - log_evidence
    for i in range(log_belief.size):
        log_belief[i] = max(log_belief[i] + shift, LOG_BELIEF_FLOOR)
    for j in range(slots.size):
        log_belief[dissenters[j]] = max(dissent[j], LOG_BELIEF_FLOOR)
    if log_evidence < LOG_SURPRISE:
        normalise(log_belief)
