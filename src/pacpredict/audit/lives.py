"""Lives of a deployment, played by an auditor who notes what they did.

She keeps a belief of her own, computed from what the ledger says was released and the noise that is *claimed*, by
formulas of her own; the game's secret is known to her for scoring. She first asks what all models say the same about.
Then she asks what tells most about a target, another one in each life, and in every other life what the claimed noise
would have to grow for: the query whose votes are more uncertain now than they were at first. Where the belief answers
she asks something else next, and goes on.

How closely a label through the channel was coupled to the secret is taken from what the mechanism learnt by its own
account, and tested by how often the secret's label came. Only queries with two voted labels are asked, where all of
this has a closed form.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pacpredict.audit.adversaries import told_about
from pacpredict.core.kernel import MASS_FLOOR
from pacpredict.exceptions import BudgetExhausted
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import Entry, MemoryLedger, State
from pacpredict.mechanism.secret import Secret
from pacpredict.mechanism.session import Session
from pacpredict.types import BoolArray, FloatArray, IntArray, Votes

# Makes one life: with this secret, this ledger, and this source of randomness; with none it draws as it is served.
Begin = Callable[[Secret, MemoryLedger, np.random.Generator | None], Session]

# The budget of the lives: small steps, and a total at which what is wrong can be seen. Those of deployments are so
# small that only millions of releases would show it.
STEP, TOTAL = 2.0**-9, 0.125
# Likewise the probability with which noise may pass the limit on odds: for one in a billion it would hardly release.
DELTA = 0.02
# The limit on odds in lives: most releases of such a step fit, and a life of telling questions comes near it.
ODDS_LIMIT = 3.0
# Answers of the belief after which a life ends: with sixty lives some two thousand, of which a few too many are seen.
_N_BELIEVED = 32
# A life that goes on beyond its total is left after so many times as many releases.
_PATIENCE = 1.5
# The smallest mass that noise is calibrated to, by the mechanism's own account, and what sums of rounded
# probabilities may differ by.
_LEAST, _ROUNDING = MASS_FLOOR, 1e-6
# Noise that differs by less is the same: it is known to a hundredth of that. By chance two of 4,000 are so near to each
# other in one of a thousand audits, and two such pairs in one of millions.
_SAME = 1e-10
# Who is surer than this is certain, and odds end there.
_UNSURE = 1e-12
# Queries to choose from.
_N_CANDIDATES = 128
# Units that lives are after in turn: a limit that is kept for some units only is seen on others.
_N_TARGETS = 8
# Queries by units that are looked at together, to find who is told most about: 2 MiB of doubles.
_PAIRS_AT_A_TIME = 2**18


class Watch(MemoryLedger):
    """A ledger that shows the last entry."""

    def __init__(self) -> None:
        super().__init__()
        self.last: Entry | None = None

    def commit(self, entries: Sequence[Entry], state: State) -> None:
        super().commit(entries, state)
        if entries:
            self.last = entries[-1]

    def belief(self) -> FloatArray:
        """Return the logarithm of what the mechanism says it believes."""
        state = self.load()
        return np.zeros(0) if state is None else state.log_belief


@dataclass
class Seen:
    """What was seen in all lives."""

    # Of each release how much more noise it had than claimed (see `_Reading`), by how queries were chosen.
    surplus: dict[bool, list[float]] = field(default_factory=lambda: {True: [], False: []})
    noise: list[list[float]] = field(
        default_factory=list
    )  # of the releases of each life, in claimed deviations
    too_coupled: int = 0  # labels through a channel that carried more than a step
    # That labels follow the secret twice as closely as the mechanism says: the logarithm of how much likelier they are
    # then. If they are as it says, this reaches log(1 / p) in no more than a share p of all audits, however long one
    # goes on (Ville's inequality); and if they follow it twice as closely, it falls to -log(1 / p) no more often.
    evidence: float = 0.0
    astray: int = 0  # releases after which the mechanism does not believe what follows from them
    mislabelled: int = 0  # releases with another label than follows from them
    # Of each answer of the belief whether its label was the secret's, and the likelier one, less how likely that was:
    # on average 0.
    own: list[float] = field(default_factory=list)
    likelier: list[float] = field(default_factory=list)
    uncharged: int = 0
    beyond_total: int = 0  # releases
    learnt: list[float] = field(default_factory=list)  # nats, of each life
    charged: list[float] = field(default_factory=list)
    largest: list[float] = field(default_factory=list)  # spread of log-likelihoods, of each life
    right: list[bool] = field(default_factory=list)  # about the target, in lives that were after one

    def products(self) -> FloatArray:
        """Return those of the noise of two releases in turn: on average 0."""
        lives = [np.asarray(life) for life in self.noise]
        return np.concatenate([np.empty(0), *(life[1:] * life[:-1] for life in lives)])

    def repeats(self) -> int:
        """Count releases whose noise is as large as that of another, in the same life or not."""
        sizes = np.sort(np.abs(np.concatenate([np.empty(0), *self.noise])))
        return int((np.diff(sizes) < _SAME).sum())


class Scene(NamedTuple):
    """Queries of two voted labels, which of them each model votes for, and who is in which subset, but not in all."""

    votes: Votes  # (n_queries, n_models)
    upper: FloatArray  # (n_queries, n_models), 1 for the higher label
    membership: (
        FloatArray  # (n_models, n_units), 1 for those within: multiplied with a belief after every answer
    )
    targets: IntArray
    claimed: Budget
    finite: bool  # labels through a channel, instead of noise


def set_scene(votes: Votes, membership: BoolArray, claimed: Budget, finite: bool) -> Scene:
    share = membership.mean(axis=0)
    moves = (share > 0) & (share < 1)
    members, share = membership[:, moves].astype(np.float64), share[moves]
    targets = np.argsort(-_most_told(votes, members), kind="stable")[:_N_TARGETS]
    # Half of the candidates tell most about the targets, the others are the most one-sided: noise for these is least.
    by_target = np.argsort(-told_about(votes, members[:, targets]), axis=0, kind="stable")
    by_target = by_target[: _N_CANDIDATES // 2 // targets.size].ravel()
    upper = (votes == votes.max(axis=1)[:, None]).astype(np.float64)
    one_sided = np.argsort(np.abs(upper.mean(axis=1) - 0.5), kind="stable")[::-1][: _N_CANDIDATES // 2]
    kept = np.unique(np.concatenate([by_target, one_sided]))
    return Scene(votes[kept], upper[kept], members, targets, claimed, finite)


def _most_told(votes: Votes, members: FloatArray) -> FloatArray:
    """Return what the most telling query tells about each unit; of a large pool all pairs would not fit into memory."""
    n_parts = 1 + len(votes) * members.shape[1] // _PAIRS_AT_A_TIME
    parts = np.array_split(members, min(n_parts, members.shape[1]), axis=1)
    return np.concatenate([told_about(votes, part).max(axis=0) for part in parts])


class Life:
    """One session and what the auditor knows of it. Without a target she asks what noise would have to grow for.

    As it is served, it draws from the operating system.
    """

    def __init__(
        self,
        begin: Begin,
        scene: Scene,
        rng: np.random.Generator,
        seen: Seen,
        target: int | None,
        *,
        is_served: bool = False,
    ) -> None:
        m = scene.votes.shape[1]
        self.scene, self.rng, self.seen = scene, rng, seen
        self.secret, self.ledger = int(rng.integers(m)), Watch()
        self.session = begin(Secret(self.secret, m), self.ledger, None if is_served else rng)
        self.log_belief = np.full(m, -math.log(m))
        self.at_first = _uncertainty(scene.upper, np.full(m, 1 / m))
        self.member = None if target is None else scene.membership[:, target]
        self.farthest, self.charged, self.released, self.believed = 0.0, 0, 0, 0
        self.noise: list[float] = []
        seen.noise.append(self.noise)
        self.was_believed = False  # the last answer: the same question would be answered so again

    def play(self) -> None:
        """Ask until the end, and note what is done."""
        most = _PATIENCE * self.scene.claimed.total_steps
        self._ask_agreed()
        while self.released <= most and self.believed < _N_BELIEVED:
            belief = np.exp(self.log_belief)
            q = self._ask(belief)
            before = self.ledger.belief()
            try:
                label = self.session.answer(self.scene.votes[q]).label
            except BudgetExhausted:
                break
            entry = self.ledger.last
            if entry is None:
                break  # a session that records nothing, of which nothing can be said
            self.seen.mislabelled += label != entry.label
            self.charged += entry.charged_steps
            self.was_believed = entry.kind == "belief"
            if self.was_believed:
                self._note_believed(q, entry, belief, before)
            else:
                self._note_released(q, entry, belief, before)
        self._note_end()

    def _ask_agreed(self) -> None:
        """Ask what all models say the same about: they are right, and nobody learns anything."""
        before, votes = self.ledger.belief(), self.scene.votes
        for label in (votes[0].min(), votes[0].max()):
            answered = self.session.answer(np.full(votes.shape[1], label)).label
            self.seen.mislabelled += answered != label
        self.seen.astray += not np.array_equal(before, self.ledger.belief())

    def _ask(self, belief: FloatArray) -> int:
        if self.was_believed:
            return int(self.rng.integers(len(self.scene.votes)))
        if self.member is not None:
            return _choose(self.scene, belief, self.member)
        return int(np.argmax(_uncertainty(self.scene.upper, belief) / self.at_first))

    def _note_believed(self, q: int, entry: Entry, belief: FloatArray, before: FloatArray) -> None:
        """Hold a label that should be drawn from the belief, without the secret, against both."""
        self.believed += 1
        upper, is_upper = self.scene.upper[q], entry.label == self.scene.votes[q].max()
        weight = float(upper @ belief)
        self.seen.astray += not np.array_equal(before, self.ledger.belief())
        if self.session.decode == "map":  # the likeliest label, which nothing is drawn for
            self.seen.mislabelled += is_upper != (weight > 0.5) and abs(weight - 0.5) > _ROUNDING
            return
        for side, values in ((upper[self.secret] > 0, self.seen.own), (weight > 0.5, self.seen.likelier)):
            values.append(float(is_upper == side) - (weight if side else 1 - weight))

    def _note_released(self, q: int, entry: Entry, belief: FloatArray, before: FloatArray) -> None:
        self.released += 1
        seen, scene = self.seen, self.scene
        seen.uncharged += entry.charged_steps == 0
        read = _read_label if scene.finite else _read_noise
        gain, surplus, leaked, noise, evidence = read(
            scene, q, entry, belief, self.ledger.belief() - before, self.secret
        )
        seen.evidence += evidence
        seen.surplus[self.member is not None].append(surplus)
        if noise is not None:
            self.noise.append(noise)
        seen.too_coupled += leaked > scene.claimed.step * (1 + _ROUNDING)
        log_belief = self.log_belief + gain
        log_belief -= log_belief.max()
        log_belief -= math.log(np.exp(log_belief).sum())
        self.log_belief = log_belief
        seen.mislabelled += not _follows(scene, q, entry, np.exp(log_belief))
        seen.astray += not np.allclose(
            np.exp(self.ledger.belief()), np.exp(log_belief), rtol=0, atol=_ROUNDING
        ) or not np.ptp(gain)
        self.farthest = max(self.farthest, float(np.ptp(log_belief)))  # the prior is uniform

    def _note_end(self) -> None:
        seen, scene, belief = self.seen, self.scene, np.exp(self.log_belief)
        seen.beyond_total += max(0, self.released - scene.claimed.total_steps)
        seen.learnt.append(float(belief @ self.log_belief) + math.log(belief.size))
        seen.charged.append(self.charged * scene.claimed.step)
        seen.largest.append(self.farthest)
        if self.member is not None:
            seen.right.append(bool(belief @ self.member > 0.5) == bool(self.member[self.secret]))


def _follows(scene: Scene, q: int, entry: Entry, belief: FloatArray) -> bool:
    """Tell whether a noisy release leads to its label, by the decoder on record and the belief afterwards."""
    is_upper = entry.label == scene.votes[q].max()
    if entry.kind == "argmax" and entry.noisy is not None:
        return bool(is_upper == (entry.noisy[0] < 0))
    if entry.kind == "map":
        weight = float(scene.upper[q] @ belief)
        return bool(is_upper == (weight > 0.5)) or abs(weight - 0.5) < _ROUNDING
    return True  # through a channel the label is what is released


def _choose(scene: Scene, belief: FloatArray, member: FloatArray) -> int:
    """Return the query whose votes follow the target's membership most closely, as likely as the belief makes both."""
    within = belief @ member
    often = scene.upper @ belief
    difference = scene.upper @ (belief * member) - often * within
    return int(np.argmax(difference**2 / np.maximum(often * (1 - often), _LEAST)))


def _uncertainty(upper: FloatArray, belief: FloatArray) -> FloatArray:
    # Both sums: of a mass that is nearly 1, a difference would leave no digits of the rest.
    return np.maximum((upper @ belief) * ((1 - upper) @ belief), _LEAST)


class _Reading(NamedTuple):
    """What a release says about each model, and how much more noise it had than claimed: on average 0 or more."""

    gain: FloatArray
    surplus: float
    leaked: float  # nats that it carries by its own account; 0 for noise, which is measured instead
    noise: float | None = None  # in claimed standard deviations
    evidence: float = 0.0  # see `Seen`; none of noise, which is measured instead


def _read_noise(
    scene: Scene, q: int, entry: Entry, belief: FloatArray, _: FloatArray, secret: int
) -> _Reading:
    """Hold the deviation from the secret's point against the claimed variance, w (1 - w) / b at least.

    The higher label stands at -sqrt(1/2), the lower at +sqrt(1/2).
    """
    upper = scene.upper[q]
    noisy = math.nan if entry.noisy is None else float(entry.noisy[0])
    points, variance = (
        math.sqrt(0.5) * (1 - 2 * upper),
        _uncertainty(upper[None], belief)[0] / scene.claimed.step,
    )
    noise = float((noisy - points[secret]) / math.sqrt(variance))
    return _Reading(-((noisy - points) ** 2) / (2 * variance), noise**2 - 1, 0.0, noise)


def _read_label(
    scene: Scene, q: int, entry: Entry, belief: FloatArray, learnt: FloatArray, secret: int
) -> _Reading:
    """Take what the mechanism learnt by its own account for how the label was coupled to the secret, and test that.

    Models that voted for the label gain log(1 + lambda / ((1 - lambda) w)). With that lambda the secret's own label
    comes with probability (1 - lambda) w + lambda.
    """
    upper = scene.upper[q]
    voted = upper == float(entry.label == scene.votes[q].max())
    gained = float(learnt[voted].mean() - learnt[~voted].mean())
    w = float(np.clip(belief[voted].sum(), _UNSURE, 1 - _UNSURE))
    odds = max(math.expm1(gained), 0.0) * w
    coupling = odds / (1 + odds)
    mass = float(belief[upper == upper[secret]].sum())
    # How likely the secret's own label is with this coupling, and with twice as much.
    own, closer = (mass * (1 - c) + c for c in (coupling, min(2 * coupling, 1.0)))
    ratio = closer / own if voted[secret] else (1 - closer) / (1 - own)
    return _Reading(
        np.where(voted, gained, 0.0),
        own - float(voted[secret]),
        _channel_information(w, coupling),
        evidence=math.log(max(ratio, _UNSURE)),
    )


def _channel_information(w: float, coupling: float) -> float:
    """Compute what a label of two tells through the channel (docs/theory.md, 11)."""
    rest = 1 - coupling
    total = 0.0
    for mass in (w, 1 - w):
        own = rest * mass + coupling
        total += mass * (
            own * math.log(own / mass) + ((1 - mass) * rest * math.log(rest) if rest > 0 else 0.0)
        )
    return total
