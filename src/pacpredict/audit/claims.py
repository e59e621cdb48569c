"""A lint for claims: lives of a deployment are played, and what they did is held against what is claimed of them.

The auditor keeps a belief of her own, computed from what the ledger says was released and the noise that is *claimed*,
by formulas of her own; the game's secret is known to her for scoring. She asks what tells most about a target, and in
every other life what the claimed noise would have to grow for: the query whose votes are more uncertain now than they
were at first. Checked is that

    noise        is at least what the budget and the belief ask for
    belief       is the posterior that follows from what was released
    charges      are made for every release that could tell something, and nothing is released beyond the total
    information  about the secret is on average no more than what was charged
    odds         of nobody's membership move beyond the limit
    success      of the attack on the target is no more than promised

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
from pacpredict.audit.estimates import LEVEL, clopper_pearson, mean_of, success_ceiling
from pacpredict.core.kernel import MASS_FLOOR
from pacpredict.exceptions import BudgetExhausted
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import Entry, MemoryLedger, State
from pacpredict.mechanism.secret import Secret
from pacpredict.mechanism.session import Session
from pacpredict.types import BoolArray, FloatArray, Votes

# Makes one life: with this secret, this ledger, and this source of randomness.
Begin = Callable[[Secret, MemoryLedger, np.random.Generator], Session]

# The budget of the lives: small steps, and a total at which what is wrong can be seen. Those of deployments are so
# small that only millions of releases would show it.
STEP, TOTAL = 2.0**-9, 0.125
# Likewise the probability with which noise may pass the limit on odds: for one in a billion it would hardly release.
DELTA = 0.02
N_LIVES = 60
# A life that goes on beyond its total is left after so many times as many releases.
_PATIENCE = 1.5
# The smallest mass that noise is calibrated to, by the mechanism's own account, and what sums of rounded
# probabilities may differ by.
_LEAST, _ROUNDING = MASS_FLOOR, 1e-6
# Who is surer than this is certain, and odds end there.
_UNSURE = 1e-12
# Queries to choose from.
_N_CANDIDATES = 128


class Finding(NamedTuple):
    """A claim and whether what was seen contradicts it."""

    claim: str
    holds: bool
    seen: str  # in words


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

    # Of each release how much more noise it had than claimed (see `_Read`), by how queries were chosen.
    surplus: dict[bool, list[float]] = field(default_factory=lambda: {True: [], False: []})
    too_coupled: int = 0  # labels through a channel that carried more than a step
    astray: int = 0  # releases after which the mechanism does not believe what follows from them
    uncharged: int = 0
    beyond_total: int = 0  # releases
    learnt: list[float] = field(default_factory=list)  # nats, of each life
    charged: list[float] = field(default_factory=list)
    largest: list[float] = field(default_factory=list)  # shift of anybody's log-odds, of each life
    right: list[bool] = field(default_factory=list)  # about the target, in lives that were after one


class Scene(NamedTuple):
    """Queries of two voted labels, which of them each model votes for, and who is in which subset."""

    votes: Votes  # (n_queries, n_models)
    upper: FloatArray  # (n_queries, n_models), 1 for the higher label
    membership: BoolArray  # (n_models, n_units)
    target: int
    claimed: Budget
    finite: bool  # labels through a channel, instead of noise


def examine(
    begin: Begin,
    claimed: Budget,
    votes: Votes,
    membership: BoolArray,
    *,
    finite: bool,
    seed: int,
    n_lives: int = N_LIVES,
) -> list[Finding]:
    """Play lives and say of each claim whether it holds; nothing, if there is no question with two voted labels."""
    two = _two_sided(votes)
    if not two.any():
        return []
    scene = _set_scene(votes[two], membership, claimed, finite)
    seen, rng = Seen(), np.random.default_rng(seed)
    for life in range(n_lives):
        _live(begin, scene, life % 2 == 0, rng, seen)
    return _judge(scene, seen)


def _two_sided(votes: Votes) -> BoolArray:
    """Tell which queries have exactly two voted labels."""
    low, high = votes.min(axis=1), votes.max(axis=1)
    is_either = (votes == low[:, None]) | (votes == high[:, None])
    return np.asarray((low < high) & is_either.all(axis=1))


def _set_scene(votes: Votes, membership: BoolArray, claimed: Budget, finite: bool) -> Scene:
    told = told_about(votes, membership.astype(np.float64))
    target = int(np.unravel_index(np.argmax(told), told.shape)[1])
    # Half of the candidates tell most about the target, the others are the most one-sided: noise for these is least.
    by_target = np.argsort(-told[:, target], kind="stable")[: _N_CANDIDATES // 2]
    upper = (votes == votes.max(axis=1)[:, None]).astype(np.float64)
    one_sided = np.argsort(np.abs(upper.mean(axis=1) - 0.5), kind="stable")[::-1][: _N_CANDIDATES // 2]
    kept = np.unique(np.concatenate([by_target, one_sided]))
    return Scene(votes[kept], upper[kept], membership, target, claimed, finite)


def _live(begin: Begin, scene: Scene, is_targeted: bool, rng: np.random.Generator, seen: Seen) -> None:
    """Play one life to its end, and note what it did."""
    m = scene.votes.shape[1]
    secret, ledger = Secret(int(rng.integers(m)), m), Watch()
    session = begin(secret, ledger, rng)
    log_belief, farthest, charged, released = np.full(m, -math.log(m)), 0.0, 0, 0
    at_first = _uncertainty(scene.upper, np.full(m, 1 / m))
    column = scene.membership[:, [scene.target]].astype(np.float64)
    while released <= _PATIENCE * scene.claimed.total_steps:
        belief = np.exp(log_belief)
        grown = _uncertainty(scene.upper, belief) / at_first
        q = _choose(scene, belief, column[:, 0]) if is_targeted else int(np.argmax(grown))
        before = ledger.belief()
        try:
            session.answer(scene.votes[q])
        except BudgetExhausted:
            break
        entry = ledger.last
        if entry is None or entry.kind == "belief":
            break  # the limit on odds is reached: whatever is asked now, the belief answers much of it
        released, charged = released + 1, charged + entry.charged_steps
        seen.uncharged += entry.charged_steps == 0
        read = _read_label if scene.finite else _read_noise
        gain, surplus, leaked = read(scene, q, entry, belief, ledger.belief() - before, secret.reveal())
        seen.surplus[is_targeted].append(surplus)
        seen.too_coupled += leaked > scene.claimed.step * (1 + _ROUNDING)
        log_belief = log_belief + gain
        log_belief -= log_belief.max()
        log_belief -= math.log(np.exp(log_belief).sum())
        seen.astray += not np.allclose(
            np.exp(ledger.belief()), np.exp(log_belief), rtol=0, atol=_ROUNDING
        ) or not np.ptp(gain)
        farthest = max(farthest, float(np.abs(_shifts(np.exp(log_belief), scene.membership)).max()))
    belief = np.exp(log_belief)
    seen.beyond_total += max(0, released - scene.claimed.total_steps)
    seen.learnt.append(float(belief @ log_belief) + math.log(m))
    seen.charged.append(charged * scene.claimed.step)
    seen.largest.append(farthest)
    if is_targeted:
        seen.right.append(
            bool((belief @ column[:, 0] > 0.5) == scene.membership[secret.reveal(), scene.target])
        )


def _choose(scene: Scene, belief: FloatArray, member: FloatArray) -> int:
    """Return the query whose votes follow the target's membership most closely, as likely as the belief makes both."""
    within = belief @ member
    often = scene.upper @ belief
    difference = scene.upper @ (belief * member) - often * within
    return int(np.argmax(difference**2 / np.maximum(often * (1 - often), _LEAST)))


def _uncertainty(upper: FloatArray, belief: FloatArray) -> FloatArray:
    # Both sums: of a mass that is nearly 1, a difference would leave no digits of the rest.
    return np.maximum((upper @ belief) * ((1 - upper) @ belief), _LEAST)


def _shifts(belief: FloatArray, membership: BoolArray) -> FloatArray:
    share, inside = membership.mean(axis=0), np.clip(belief @ membership, _UNSURE, 1 - _UNSURE)
    moves = (share > 0) & (share < 1)
    share, inside = share[moves], inside[moves]
    return np.asarray(np.log(inside / (1 - inside)) - np.log(share / (1 - share)))


class _Reading(NamedTuple):
    """What a release says about each model, and how much more noise it had than claimed: on average 0 or more."""

    gain: FloatArray
    surplus: float
    leaked: float  # nats that it carries by its own account; 0 for noise, which is measured instead


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
    deviation = (noisy - points[secret]) ** 2 / variance
    return _Reading(-((noisy - points) ** 2) / (2 * variance), float(deviation - 1), 0.0)


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
    own = belief[upper == upper[secret]].sum() * (1 - coupling) + coupling
    return _Reading(
        np.where(voted, gained, 0.0), float(own - voted[secret]), _channel_information(w, coupling)
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


def _judge(scene: Scene, seen: Seen) -> list[Finding]:
    claimed = scene.claimed
    gained = mean_of(np.subtract(seen.learnt, seen.charged))
    surplus = [mean_of(values) for values in seen.surplus.values() if values]
    shown = (
        ", ".join(f"{one.value:+.3f} ({one.low:+.3f} to {one.high:+.3f})" for one in surplus)
        or "nothing released"
    )
    findings = [
        Finding(
            "noise",
            not any(one.high < 0 for one in surplus) and not seen.too_coupled,
            f"beyond what is claimed, by {'labels' if scene.finite else 'variance'}: {shown}",
        ),
        Finding(
            "belief",
            not seen.astray,
            f"after {seen.astray:,} releases it was not what follows from what was released and the claimed noise",
        ),
        Finding(
            "charges",
            not seen.uncharged and not seen.beyond_total,
            f"{seen.uncharged:,} releases without a charge, {seen.beyond_total:,} beyond the total",
        ),
        Finding(
            "information",
            not gained.low > 0,
            f"{np.mean(seen.learnt):.4f} nats learnt, {np.mean(seen.charged):.4f} charged, on average",
        ),
    ]
    if claimed.exposure is not None:
        beyond = sum(shift > claimed.exposure for shift in seen.largest)
        delta = 0.0 if scene.finite else claimed.exposure_delta
        kept = not beyond or clopper_pearson(beyond, len(seen.largest)).low <= delta
        words = f"beyond the limit of {claimed.exposure:g} in {beyond} of {len(seen.largest)} lives"
        findings.append(Finding("odds", kept, words))
    right = clopper_pearson(sum(seen.right), len(seen.right))
    share = float(scene.membership[:, scene.target].mean())
    ceiling = success_ceiling(
        claimed.total,
        max(share, 1 - share),
        claimed.exposure,
        0.0 if scene.finite else claimed.exposure_delta,
    )
    words = f"{right.value:.3f} ({right.low:.3f} to {right.high:.3f}, level {LEVEL}), at most {ceiling:.3f}"
    return [*findings, Finding("success", not right.passes(ceiling), words)]
