"""What an honest mechanism does: the auditor's own posterior, noise, channel and limit, in formulas of her own.

Only the axes along which three and more labels get noise are taken from the library, since released coordinates mean
nothing without them; what they would reveal is then computed from their numbers.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pacpredict.core.belief import Belief
from pacpredict.core.calibrate import calibrate_votes
from pacpredict.core.decode import Decoder, check_decoder
from pacpredict.core.kernel import MASS_FLOOR
from pacpredict.mechanism.budget import Budget
from pacpredict.types import FloatArray, IntArray, Votes

# A decision about the limit is left open where it hangs on less than this share of it: the mechanism rounds so.
_SLACK = 1e-6
# The mechanism's own cap: no label rules a model out.
_MOST_COUPLED = 1.0 - 2.0**-20
# Information density is a series up to here; the next term is below 1e-15 of the sum.
_SERIES_UP_TO = 1e-3
_NEWTON_STEPS = 50


@dataclass(frozen=True)
class Claim:
    """What is said of a mechanism, and what its sessions are held against."""

    budget: Budget
    decode: Decoder
    n_classes: int
    n_models: int

    @property
    def finite(self) -> bool:
        """Whether labels go through a channel, instead of being read off noise."""
        return check_decoder(self.decode)[0] == "channel"


class Question(NamedTuple):
    """The votes of all models on one query, by class."""

    votes: Votes  # (n_models,)
    classes: IntArray  # (k,) those voted for, ascending
    slots: IntArray  # (n_models,) where among them each model's vote stands
    sides: FloatArray  # (k, n_models), 1 where a model votes for the class

    @classmethod
    def of(cls, votes: Votes) -> "Question":
        classes, slots = np.unique(votes, return_inverse=True)
        return cls(votes, classes, slots, (slots == np.arange(classes.size)[:, None]).astype(np.float64))

    @property
    def is_contested(self) -> bool:
        return self.classes.size > 1


class NoiseLaw(NamedTuple):
    """A noisy release: the point of each voted class, and the variance of each coordinate."""

    points: FloatArray  # (k, r)
    variances: FloatArray  # (r,)

    def scores(self, noisy: FloatArray, slot: int) -> FloatArray:
        """Return the noise in standard deviations, if the secret votes for this class: standard normal."""
        return np.asarray((noisy - self.points[slot]) / np.sqrt(self.variances))

    def log_likelihoods(self, noisy: FloatArray) -> FloatArray:
        return np.asarray(-((noisy - self.points) ** 2 / (2 * self.variances)).sum(axis=1))

    def reach(self, heaviest: int, delta: float) -> float:
        """Bound how far log-likelihoods move against each other, but for delta (docs/theory.md, 10)."""
        apart = np.sqrt(((self.points - self.points[heaviest]) ** 2 / self.variances).sum(axis=1))
        d, k = float(np.sort(apart)[-2:].sum()), len(self.points)
        z = math.sqrt(2 * math.log((k - 1) / delta))
        return 0.5 * d * d + z * d * min(k - 1, 2)

    def leak(self, masses: FloatArray) -> float:
        """Bound in nats what the release reveals (docs/theory.md, 3)."""
        centred = self.points - masses @ self.points
        return float(0.5 * (masses @ centred**2 / self.variances).sum())


class LabelLaw(NamedTuple):
    """A label drawn from the belief but for the coupling, with which it is the secret's own."""

    masses: FloatArray  # (k,)
    coupling: float

    def chances(self, slot: int) -> FloatArray:
        """Return the probability of each label if the secret votes for this class."""
        chances = (1 - self.coupling) * self.masses
        chances[slot] += self.coupling
        return chances

    def log_likelihoods(self, drawn: int) -> FloatArray:
        """Return that of the drawn label under every class, less what all share."""
        gains = np.zeros_like(self.masses)
        gains[drawn] = math.log1p(self.coupling / ((1 - self.coupling) * float(self.masses[drawn])))
        return gains


class Expected(NamedTuple):
    """How a contested query must be answered; `is_open` where rounding may decide otherwise."""

    release: NoiseLaw | LabelLaw | None  # None: from the belief
    belief: LabelLaw
    is_open: bool = False


class Posterior:
    """What follows from a history and the claimed budget, and from nothing else."""

    def __init__(self, claim: Claim, log_belief: FloatArray) -> None:
        self.claim = claim
        self.log_prior = np.full(claim.n_models, -math.log(claim.n_models))
        self.log_belief = log_belief.copy()
        self.movement = 0.0  # the sum of how far each release moved log-likelihoods against each other

    def expect(self, question: Question, left: int) -> Expected:
        """Decide how a query is answered with `left` steps to charge, from history and votes alone."""
        budget = self.claim.budget
        masses = self._masses(question)
        belief = LabelLaw(masses, 0.0)
        if left <= 0:
            return Expected(None, belief)
        rooms = None if budget.odds_limit is None else self._rooms(question, budget.odds_limit)
        if self.claim.finite:
            law = LabelLaw(masses, largest_coupling(masses.tolist(), budget.step, rooms))
            is_open = rooms is not None and abs(min(rooms)) <= _SLACK * budget.epsilon
            return Expected(law if law.coupling > 0 or is_open else None, belief, is_open)
        noise = self._noise(question, masses)
        if rooms is None:
            return Expected(noise, belief)
        # Of several heaviest classes the mechanism may start from any.
        heaviest = np.flatnonzero(masses >= masses.max() * (1 - _SLACK))
        spare = [min(rooms) - noise.reach(int(c), budget.step_delta) for c in heaviest]
        slack = _SLACK * budget.epsilon
        return Expected(noise if max(spare) >= 0 else None, belief, min(spare) < slack and max(spare) > -slack)

    def reach(self, question: Question) -> float:
        """Bound how far a release about this query would move odds if there were no limit."""
        law, masses = self.unlimited(question), self._masses(question)
        if isinstance(law, NoiseLaw):
            return law.reach(int(np.argmax(masses)), self.claim.budget.step_delta)
        return float(law.log_likelihoods(int(np.argmin(masses))).max())

    def unlimited(self, question: Question) -> "NoiseLaw | LabelLaw":
        """Return how a query would be released if there were no limit."""
        masses = self._masses(question)
        if not self.claim.finite:
            return self._noise(question, masses)
        return LabelLaw(masses, largest_coupling(masses.tolist(), self.claim.budget.step, None))

    def spread(self) -> float:
        """Return how far the log-likelihoods of any two subsets are from each other."""
        return float(np.ptp(self.log_belief - self.log_prior))

    def learn(self, question: Question, log_likelihoods: FloatArray) -> None:
        """Apply Bayes' rule."""
        gains = log_likelihoods - log_likelihoods.max()
        self.movement -= float(gains.min())
        log_belief = self.log_belief + gains[question.slots]
        self.log_belief = log_belief - math.log(float(np.exp(log_belief).sum()))

    def _masses(self, question: Question) -> FloatArray:
        return np.maximum(question.sides @ np.exp(self.log_belief), MASS_FLOOR)

    def _rooms(self, question: Question, limit: float) -> list[float]:
        """Return how far each class may rise above all others: its highest subset above the lowest of these."""
        moved, rooms = self.log_belief - self.log_prior, []
        for c in range(question.classes.size):
            mine = question.slots == c
            rooms.append(limit - float(moved[mine].max() - moved[~mine].min()))
        return rooms

    def _noise(self, question: Question, masses: FloatArray) -> NoiseLaw:
        """Return the noise of the step: of two labels in closed form, the higher at -sqrt(1/2) (docs/theory.md, 4)."""
        step, claim = self.claim.budget.step, self.claim
        if question.classes.size == 2:
            variance = max(float(masses[0] * masses[1]), MASS_FLOOR) / step
            return NoiseLaw(_TWO_POINTS, np.array([variance]))
        noise = calibrate_votes(question.votes, claim.n_classes, Belief(self.log_belief), step)
        first = [int(np.argmax(question.slots == c)) for c in range(question.classes.size)]
        return NoiseLaw(noise.coordinates[first], noise.variances)


_TWO_POINTS = np.array([[math.sqrt(0.5)], [-math.sqrt(0.5)]])


def largest_coupling(masses: list[float], step: float, rooms: list[float] | None) -> float:
    """Return the coupling at which a label reveals one step, or less if a label would pass its room."""
    coupling = min(math.sqrt(2 * step / (len(masses) - 1)), _MOST_COUPLED)
    for _ in range(_NEWTON_STEPS):
        information, slope = channel_information(masses, coupling)
        following = min(coupling + (step - information) / slope, _MOST_COUPLED)
        moved, coupling = abs(following - coupling), following
        if moved <= 1e-12 * coupling:
            break
    if rooms is not None:
        factor = min(math.expm1(min(room, 700.0)) * mass for room, mass in zip(rooms, masses, strict=True))
        coupling = min(coupling, factor / (1 + factor)) if factor > 0 else 0.0
    return coupling


def channel_information(masses: list[float], coupling: float) -> tuple[float, float]:
    """Compute what a label reveals through the channel (docs/theory.md, 11), and how fast that grows."""
    information = slope = 0.0
    others = _density(-coupling)
    for c, mass in enumerate(masses):
        rest = sum(masses[:c]) + sum(masses[c + 1 :])  # of a mass near 1, a difference would leave no digits
        x = coupling * rest / mass
        information += mass * (mass * _density(x) + rest * others)
        slope += mass * rest * (math.log1p(x) - math.log1p(-coupling))
    return information, slope


def _density(u: float) -> float:
    """Return (1 + u) log(1 + u) - u."""
    if abs(u) <= _SERIES_UP_TO:
        return u * u * (1 / 2 - u * (1 / 6 - u * (1 / 12 - u * (1 / 20 - u / 30))))
    return (1 + u) * math.log1p(u) - u
