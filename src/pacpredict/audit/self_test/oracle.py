"""What an honest mechanism does: the auditor's own posterior, noise, channel and limit, in formulas of her own.

Only the axes along which three and more labels get noise are the library's; see `axes`.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pacpredict.audit.self_test.axes import ReplayedAxes
from pacpredict.core.decode import Decoder, check_decoder
from pacpredict.core.kernel import MASS_FLOOR
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import State
from pacpredict.types import FloatArray, IntArray, Votes

# A decision about the limit is left open where it hangs on less than this share of it: the mechanism rounds so.
_SLACK = 1e-6
# The mechanism's own cap: no label rules a model out.
_MOST_COUPLED = 1.0 - 2.0**-20
# What an update of a belief rounds away, of numbers of size 1, as the mechanism counts it, and twice that.
_ROUNDING_OF_UPDATE = 2.0**-48
# How far the sum of a belief may be from 1.
_DRIFT = 1e-12
# Information density is a series up to here; the next term is below 1e-15 of the sum.
_SERIES_UP_TO = 1e-3
_NEWTON_STEPS, _NEWTON_ENDS = 50, 1e-9


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
        return cls(
            votes,
            classes.astype(np.int64),
            slots,
            (slots == np.arange(classes.size)[:, None]).astype(np.float64),
        )

    @property
    def is_contested(self) -> bool:
        return self.classes.size > 1

    def slot_of(self, label: int | None) -> int | None:
        """Return where a label stands among those voted for, None if nobody votes for it."""
        classes = self.classes.tolist()
        return classes.index(label) if label in classes else None


class NoiseLaw(NamedTuple):
    """A noisy release: the point of each voted class, and the variance of each coordinate. Lists: they are short."""

    points: list[list[float]]  # (k, r)
    variances: list[float]  # (r,)

    def scores(self, noisy: list[float], slot: int) -> list[float]:
        """Return the noise in standard deviations, if the secret votes for this class: standard normal."""
        mine = zip(noisy, self.points[slot], self.variances, strict=True)
        return [(x - point) / math.sqrt(variance) for x, point, variance in mine]

    def log_likelihoods(self, noisy: list[float]) -> list[float]:
        return [
            -sum((x - u) ** 2 / (2 * v) for x, u, v in zip(noisy, point, self.variances, strict=True))
            for point in self.points
        ]

    def reach(self, masses: list[float], delta: float) -> tuple[float, float]:
        """Bound how far log-likelihoods move against each other, but for delta (docs/theory.md, 10).

        The bound starts from the heaviest class. If several are, it lies between two figures.
        """
        k, heaviest = len(self.points), max(masses) * (1 - _SLACK)
        if k == 2:
            d = self._apart(*self.points)
            reach = 0.5 * d * d + d * math.sqrt(-2 * math.log(delta))
            return reach, reach
        z, reaches = math.sqrt(2 * math.log((k - 1) / delta)), []
        for origin in (c for c in range(k) if masses[c] >= heaviest):
            apart = sorted(self._apart(point, self.points[origin]) for point in self.points)
            d = apart[-1] + apart[-2]
            reaches.append(0.5 * d * d + z * d * min(k - 1, 2))
        if max(self.variances) <= min(self.variances) * (
            1 + _SLACK
        ):  # fair noise: all classes are equally far apart
            d = self._apart(*self.points[:2])
            reaches.append(0.5 * d * d + 2 * z * d)
        return min(reaches), max(reaches)

    def leak(self, masses: list[float]) -> float:
        """Bound in nats what the release reveals (docs/theory.md, 3)."""
        leak = 0.0
        for *column, variance in zip(*self.points, self.variances, strict=True):
            mean = sum(mass * x for mass, x in zip(masses, column, strict=True))
            leak += sum(mass * (x - mean) ** 2 for mass, x in zip(masses, column, strict=True)) / (
                2 * variance
            )
        return leak

    def _apart(self, one: list[float], other: list[float]) -> float:
        return math.sqrt(sum((a - b) ** 2 / v for a, b, v in zip(one, other, self.variances, strict=True)))


class LabelLaw(NamedTuple):
    """A label drawn from the belief but for the coupling, with which it is the secret's own."""

    masses: list[float]  # (k,)
    coupling: float

    def chances(self, slot: int) -> list[float]:
        """Return the probability of each label if the secret votes for this class."""
        free = (1 - self.coupling) / sum(self.masses)
        return [free * mass + self.coupling * (c == slot) for c, mass in enumerate(self.masses)]

    def log_likelihoods(self, drawn: int) -> list[float]:
        """Return that of the drawn label under every class, less what all share."""
        return [self.gain(drawn) if c == drawn else 0.0 for c in range(len(self.masses))]

    def gain(self, drawn: int) -> float:
        """Return how far a label lifts the models that vote for it above all others."""
        return math.log1p(self.coupling / ((1 - self.coupling) * self.masses[drawn]))


class Expected(NamedTuple):
    """How a contested query must be answered; `is_open` where rounding may decide otherwise."""

    release: NoiseLaw | LabelLaw | None  # None: from the belief
    belief: LabelLaw
    is_open: bool = False


class Posterior:
    """What follows from a history and the claimed budget, and from nothing else."""

    def __init__(self, claim: Claim, start: State) -> None:
        self.claim = claim
        self.log_prior = np.full(claim.n_models, -math.log(claim.n_models))
        self.log_belief = start.log_belief.copy()
        self.contested = start.contested
        self.movement = 0.0  # the sum of how far each release moved log-likelihoods against each other
        self._belief = np.exp(start.log_belief)
        self._at_first = self.spread()
        self._axes = ReplayedAxes(claim.n_classes, claim.budget, start.log_belief)
        self._follows_axes = False

    def follow_axes(self) -> None:
        """Expect queries with three labels and more, before any is read."""
        self._follows_axes = not self.claim.finite

    @property
    def rounding(self) -> float:
        """How far the mechanism's log-likelihoods may be off: each update rounds numbers as large as the largest."""
        return _ROUNDING_OF_UPDATE * (self.contested + 1) * (1 - float(self.log_belief.min()))

    def expect(self, question: Question, left: int) -> Expected:
        """Decide how a query is answered with `left` steps to charge, from history and votes alone."""
        masses = self._masses(question)
        belief = LabelLaw(masses, 0.0)
        if left <= 0:
            return Expected(None, belief)
        law, limit = self._unlimited(question, masses), self.claim.budget.epsilon
        if math.isinf(limit):
            return Expected(law, belief)
        least, most = self.reach(law, masses)
        slack = _SLACK * limit + self.rounding
        if self.spread_at_most + most < limit - slack:
            return Expected(law, belief)
        rooms = self._rooms(question, limit)
        room = min(rooms)
        if isinstance(law, NoiseLaw):
            is_open = room - most < slack and room - least > -slack
            return Expected(law if room >= least else None, belief, is_open)
        limited, is_open = LabelLaw(masses, _limited(law, rooms)), abs(room) <= slack
        return Expected(limited if limited.coupling > 0 or is_open else None, belief, is_open)

    def unlimited(self, question: Question) -> NoiseLaw | LabelLaw:
        """Return how a query would be released if there were no limit."""
        return self._unlimited(question, self._masses(question))

    def _unlimited(self, question: Question, masses: list[float]) -> NoiseLaw | LabelLaw:
        step = self.claim.budget.step
        if self.claim.finite:
            return LabelLaw(masses, largest_coupling(masses, step))
        if question.classes.size == 2:  # in closed form, the higher at -sqrt(1/2) (docs/theory.md, 4)
            return NoiseLaw(_TWO_POINTS, [max(masses[0] * masses[1], MASS_FLOOR) / step])
        coordinates, variances = self._axes.law(question.votes)
        first = [int(np.argmax(side)) for side in question.sides]  # a model of each class
        return NoiseLaw(coordinates[first].tolist(), variances.tolist())

    def reach(self, law: NoiseLaw | LabelLaw, masses: list[float]) -> tuple[float, float]:
        """Bound how far a release would move odds, from below and from above."""
        if isinstance(law, NoiseLaw):
            return law.reach(masses, self.claim.budget.step_delta)
        gain = law.gain(masses.index(min(masses)))
        return gain, gain

    def reach_about(self, question: Question) -> float:
        return self.reach(self.unlimited(question), self._masses(question))[0]

    @property
    def spread_at_most(self) -> float:
        """A bound on the spread that takes no look at the subsets."""
        return self._at_first + self.movement

    def spread(self) -> float:
        """Return how far the log-likelihoods of any two subsets are from each other."""
        return float(np.ptp(self.log_belief - self.log_prior))

    def learn(
        self, question: Question, masses: list[float], log_likelihoods: list[float], noisy: list[float]
    ) -> None:
        """Apply Bayes' rule to a release about a query whose classes had these masses."""
        if self._follows_axes:
            self._axes.follow(question.votes, noisy, self.contested)
        most = max(log_likelihoods)
        evidence = sum(p * math.exp(g - most) for p, g in zip(masses, log_likelihoods, strict=True))
        gains = np.array(log_likelihoods) - (most + math.log(evidence))
        self.movement += most - min(log_likelihoods)
        self.log_belief = self.log_belief + gains[question.slots]
        self._belief = np.exp(self.log_belief)
        if abs(float(self._belief.sum()) - 1) > _DRIFT:  # masses were at their floor
            log_belief = self.log_belief - self.log_belief.max()
            self.log_belief = log_belief - math.log(float(np.exp(log_belief).sum()))
            self._belief = np.exp(self.log_belief)

    def _masses(self, question: Question) -> list[float]:
        return [max(mass, MASS_FLOOR) for mass in (question.sides @ self._belief).tolist()]

    def _rooms(self, question: Question, limit: float) -> list[float]:
        """Return how far each class may rise above all others: its highest subset above the lowest of these."""
        moved = self.log_belief - self.log_prior
        return [limit - float(moved[side].max() - moved[~side].min()) for side in question.sides > 0]


_TWO_POINTS = [[math.sqrt(0.5)], [-math.sqrt(0.5)]]


def largest_coupling(masses: list[float], step: float) -> float:
    """Return the coupling at which a label reveals one step."""
    coupling = min(math.sqrt(2 * step / (len(masses) - 1)), _MOST_COUPLED)
    for _ in range(_NEWTON_STEPS):
        information, slope = channel_information(masses, coupling)
        following = min(coupling + (step - information) / slope, _MOST_COUPLED)
        moved, coupling = abs(following - coupling), following
        if moved <= _NEWTON_ENDS * coupling:
            break
    return coupling


def _limited(law: LabelLaw, rooms: list[float]) -> float:
    """Return the coupling at which no label lifts its models beyond their room, if that is less."""
    factor = min(math.expm1(min(room, 700.0)) * p for room, p in zip(rooms, law.masses, strict=True))
    return min(law.coupling, factor / (1 + factor)) if factor > 0 else 0.0


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
