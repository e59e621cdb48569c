"""How far a history has moved anybody's odds of membership, and how far the next answer could (docs/theory.md, 10).

The odds of a unit (a record, or a person with several) are the belief in the subsets that have it, over the belief in
those that have not. Their logarithm, less that before any answer, is its shift. Each step moves every shift by at most
the range of the log-likelihoods of the step's outcome. So between two looks at all units a sum of such ranges bounds
all shifts at once, and looks are rare.

The track of a history is two numbers: the room that the last look found, which is epsilon less the largest shift, and
how far odds can have moved since.
"""

import hashlib
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pacpredict.core.belief import Belief
from pacpredict.core.compiled import compiled
from pacpredict.core.kernel import rounding_of_masses
from pacpredict.exceptions import InvalidSubsets
from pacpredict.types import FloatArray

# Places in a track.
ROOM, MOVED = 0, 1

# Every update of a belief rounds the logarithm of a probability above 1e-27 by at most 2^-45: half a unit in the last
# place of a number below 64, and as much again for the gain that is added.
ROUNDING_OF_UPDATE = 2.0**-45

# Covers the rounding of a few operations on a bound.
_UP = 1.0 + 2.0**-48


class Bits(NamedTuple):
    """Membership as the kernels read it: which models' subsets have a unit, eight to a byte as np.packbits has them."""

    members: npt.NDArray[np.uint8]  # (n_units, n_models / 8 rounded up)
    prior_odds: FloatArray  # (n_units,)


@dataclass(frozen=True, eq=False)
class Membership:
    """Which subsets have which units of privacy, for all units whose odds can move: in some subsets and not in all."""

    bits: Bits
    n_models: int

    @classmethod
    def of(cls, membership: npt.ArrayLike, prior: Belief) -> "Membership":
        """Read a boolean matrix (n_models, n_units)."""
        members = np.asarray(membership)
        if members.ndim != 2 or members.dtype != np.bool_ or len(members) != prior.n_models:
            raise InvalidSubsets(
                f"membership must be a boolean matrix ({prior.n_models}, n_units), got {members.dtype} of shape "
                f"{members.shape}"
            )
        return cls.of_packed(np.packbits(members, axis=1), members.shape[1], prior)

    @classmethod
    def of_packed(cls, packed: npt.NDArray[np.uint8], n_units: int, prior: Belief) -> "Membership":
        """Read bits (n_models, n_units / 8 rounded up), as np.packbits writes them."""
        m = prior.n_models
        if packed.dtype != np.uint8 or packed.shape != (m, -(-n_units // 8)):
            raise InvalidSubsets(
                f"packed membership must be uint8 of shape {(m, -(-n_units // 8))}, got {packed.dtype} {packed.shape}"
            )
        members = np.zeros((n_units, -(-m // 8)), np.uint8)
        _turn(packed, members)
        everywhere = np.packbits(np.ones(m, np.bool_))
        members = members[members.any(axis=1) & (members != everywhere).any(axis=1)]
        inside, total = _add_up(members, prior)
        watched = (inside > 0) & (inside < total)  # a prior may rule subsets out
        odds = inside[watched] / (total - inside[watched])
        return cls(Bits(members[watched], odds), m)

    def __len__(self) -> int:
        return self.bits.prior_odds.size

    def shifts(self, belief: Belief) -> FloatArray:
        """Compute how far each unit's log-odds are from where they were before any answer."""
        inside, total = _add_up(self.bits.members, belief)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(inside / (total - inside) / self.bits.prior_odds))

    def digest(self) -> bytes:
        """Return what stands for these units: a history that was limited for them is not continued for others."""
        parts = (
            np.array([self.n_models, len(self)], "<i8").tobytes(),
            self.bits.prior_odds.astype("<f8").tobytes(),
        )
        return hashlib.sha256(b"".join(parts) + self.bits.members.tobytes()).digest()


def _add_up(members: npt.NDArray[np.uint8], belief: Belief) -> tuple[FloatArray, float]:
    """Compute the belief in the subsets of each unit, and in all of them."""
    tables, inside = np.empty((members.shape[1], 256)), np.empty(len(members))
    total = fill_tables(belief.log_probabilities, tables)
    add_up(members, tables, inside)
    return inside, total


@compiled
def _turn(packed: npt.NDArray[np.uint8], members: npt.NDArray[np.uint8]) -> None:
    """Turn bits from a row per model to a row per unit."""
    for i in range(packed.shape[0]):
        for u in range(members.shape[0]):
            bit = (packed[i, u >> 3] >> (7 - (u & 7))) & 1
            members[u, i >> 3] |= bit << (7 - (i & 7))


@compiled
def fill_tables(log_belief: FloatArray, tables: FloatArray, grain: float = 0.0) -> float:
    """Write the belief in each of the 256 sets of eight models, for all bytes of a row; returns the belief in all.

    With a grain, a power of 2, every probability is first rounded to a multiple of it.
    """
    total = 0.0
    for j in range(tables.shape[0]):
        table, size = tables[j], 1
        table[0] = 0.0
        for i in range(8 * j + 7, 8 * j - 1, -1):  # the last of eight models is the lowest bit
            p = math.exp(log_belief[i]) if i < log_belief.size else 0.0
            if grain > 0.0:
                p = round(p / grain) * grain
            for low in range(size):
                table[size + low] = table[low] + p
            size *= 2
        total += table[255]
    return total


@compiled
def _inside(members: npt.NDArray[np.uint8], u: int, tables: FloatArray) -> float:
    inside = 0.0
    for j in range(tables.shape[0]):
        inside += tables[j, members[u, j]]
    return inside


@compiled
def add_up(members: npt.NDArray[np.uint8], tables: FloatArray, inside: FloatArray) -> None:
    """Write the belief that each unit is in the training set."""
    for u in range(inside.size):
        inside[u] = _inside(members, u, tables)


@compiled
def largest_shift(log_belief: FloatArray, n_updates: int, bits: Bits, tables: FloatArray) -> float:
    """Look at all units: bound the largest shift of any log-odds, rounded up."""
    total = fill_tables(log_belief, tables)
    highest, lowest, most, least = 1.0, 1.0, 1.0, 1.0
    for u in range(bits.prior_odds.size):
        inside = _inside(bits.members, u, tables)
        odds = inside / (total - inside)
        relative = odds / bits.prior_odds[u]
        highest, lowest = max(highest, relative), min(lowest, relative)
        most, least = max(most, odds), min(least, odds)
    # A sum of probabilities is wrong by this fraction of itself; what it leaves of the total by more, if it is little.
    error = rounding_of_masses(log_belief.size) + n_updates * ROUNDING_OF_UPDATE
    shift = max(math.log(highest), -math.log(lowest))
    return shift * _UP + error * (2.0 + max(most, 1.0 / least))


@compiled
def room_for(
    reach: float,
    patience: float,
    epsilon: float,
    log_belief: FloatArray,
    n_updates: int,
    track: FloatArray,
    bits: Bits,
    tables: FloatArray,
) -> float:
    """Return how far odds may move now, for a step that could move them by `reach`.

    All units are looked at only if the step does not fit otherwise, something has moved since the last look, and no
    more than the share `patience` is left of the room that it found: whoever can do with less need not look every time.
    """
    left = room_left(track)
    if reach > left and left <= patience * track[ROOM]:
        settle(epsilon, log_belief, n_updates, track, bits, tables)
        left = track[ROOM]
    return left


@compiled
def settle(
    epsilon: float,
    log_belief: FloatArray,
    n_updates: int,
    track: FloatArray,
    bits: Bits,
    tables: FloatArray,
) -> None:
    """Look at all units if anything has moved since the last look."""
    if track[MOVED] > 0.0:
        track[ROOM] = epsilon - largest_shift(log_belief, n_updates, bits, tables)
        track[MOVED] = 0.0


@compiled
def room_left(track: FloatArray) -> float:
    """Return the room that is left, rounded down."""
    room: float = track[ROOM] - track[MOVED] * _UP
    return room


@compiled
def move(track: FloatArray, distance: float) -> None:
    """Note that an answer moved odds by up to `distance`, rounded up."""
    track[MOVED] = (track[MOVED] + distance) * _UP


@compiled
def reach_of_noise(coordinates: FloatArray, variance: FloatArray, origin: int, delta: float) -> float:
    """Bound how far a noisy release moves any log-odds, but for a probability of delta whoever the secret is.

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
    d = farthest + second
    z = math.sqrt(2.0 * math.log((k - 1) / delta))
    return (0.5 * d * d + z * d * min(k - 1, 2)) * _UP
