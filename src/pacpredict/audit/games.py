"""Games of an adversary who chooses each question in view of all answers, compiled, played many times.

The mechanism is the real one (`core/release.py`). The adversary has a belief of its own: that of everybody who sees the
whole history, or that of somebody who sees labels only. Noise is scaled to the belief, so that every contested query
leaks about the same number of nats; what can be chosen is what these nats are about.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from pacpredict import defaults
from pacpredict.core import kernel
from pacpredict.core.channel import uniform_of
from pacpredict.core.compiled import compiled, compiled_allocating
from pacpredict.core.decode import Mechanism, NoiseRule, check_noise
from pacpredict.core.release import RELEASED, Ground, Terms, answer_contested, lay_ground
from pacpredict.core.tally import Query, Tally, query_of, tally_votes
from pacpredict.types import BoolArray, FloatArray, IntArray, Votes

# How the next query is chosen: at random; always the first of them; the one that tells most about the target under the
# present belief; the one that would move the two subsets that are farthest apart most; the one that divides the belief
# most evenly.
Choice = Literal["random", "first", "target", "extremes", "divided"]
CHOICES: tuple[Choice, ...] = ("random", "first", "target", "extremes", "divided")
_RANDOM, _FIRST, _TARGET, _EXTREMES = range(4)

# What the adversary sees: the whole history, or the labels that a decoder reads off it.
Reading = Literal["history", "argmax", "map"]
READINGS: tuple[Reading, ...] = ("history", "argmax", "map")
_HISTORY, _ARGMAX = range(2)

# Of the uncertainty of a vote before any answer, what is always taken to be left by who sees labels of argmax only.
_CAUTION = 0.25
# What a label of map adds to the belief in those that voted for it: so little that thousands of them add up.
_LEAN = 1e-3


class Rules(NamedTuple):
    """Under which a game is played."""

    mechanism: Mechanism
    step: float
    n_steps: int
    limit: float | None = None  # on the spread of log-likelihoods over the subsets
    delta: float = 0.0  # with Gaussian noise, the probability that a run may pass it
    noise: NoiseRule = defaults.NOISE


@dataclass(frozen=True, eq=False)
class Game:
    """What came of many runs."""

    secrets: IntArray  # (n_runs,)
    log_belief: FloatArray  # (n_runs, n_models) of the adversary, at the end
    shifts: FloatArray  # (n_runs,) of the target's log-odds in the adversary's eyes, at the end
    members: BoolArray  # whether the target was trained on
    largest: FloatArray  # the largest spread of log-likelihoods over the subsets, at any time
    released: IntArray  # answers that came from the secret


def play(
    votes: Votes,
    member: BoolArray,
    choice: Choice,
    rules: Rules,
    n_runs: int,
    *,
    reading: Reading = "history",
    seed: int = 1,
) -> Game:
    """Play a game many times, each with a secret of its own.

    The adversary may ask about any of the votes (n_queries, n_models) and is after a unit; `member` says which subsets
    have it.
    """
    m = votes.shape[1]
    epsilon = math.inf if rules.limit is None else rules.limit
    per_step, fair = rules.delta / rules.n_steps, check_noise(rules.noise)
    terms = Terms(rules.step, rules.mechanism == "channel", epsilon, per_step, fair=fair)
    generator = np.random.Generator(np.random.SFC64(seed))
    secrets = generator.integers(m, size=n_runs)
    log_belief, largest = np.empty((n_runs, m)), np.zeros(n_runs)
    released = np.zeros(n_runs, np.int64)
    n_classes, which = int(votes.max()) + 1, (CHOICES.index(choice), READINGS.index(reading))
    _play_all(
        *(tally_votes(votes, n_classes), votes, n_classes, member.astype(np.float64), which, terms),
        *(secrets, rules.n_steps, generator, log_belief, largest, released),
    )
    shifts = log_odds(np.exp(log_belief), member) - log_odds(np.full((1, m), 1 / m), member)
    return Game(secrets, log_belief, shifts, member[secrets], largest, released)


def log_odds(beliefs: FloatArray, member: BoolArray) -> FloatArray:
    """Return the log-odds of a unit's membership under each belief (n, n_models)."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(beliefs[:, member].sum(axis=1)) - np.log(beliefs[:, ~member].sum(axis=1)))


@compiled_allocating
def _play_all(
    tally: Tally,
    votes: Votes,
    n_classes: int,
    member: FloatArray,
    which: tuple[int, int],
    terms: Terms,
    secrets: IntArray,
    n_steps: int,
    generator: np.random.Generator,
    beliefs: FloatArray,
    largest: FloatArray,
    released: IntArray,
) -> None:
    m, k_max = votes.shape[1], tally.n_voted.max()
    log_belief, seen, belief = np.empty(m), np.empty(m), np.empty(m)
    ground = lay_ground(log_belief, np.full(m, -math.log(m)), k_max)
    normals, noisy = np.empty(k_max - 1), np.empty(k_max - 1)
    by_class, both = np.empty(n_classes), np.empty(n_classes)
    for run in range(secrets.size):
        log_belief[:] = -math.log(m)
        seen[:] = -math.log(m)
        ground.spread[0] = np.inf
        # An adversary who sees everything believes what the mechanism believes.
        eyes = log_belief if which[1] == _HISTORY else seen
        largest[run], released[run] = _play(
            *(tally, votes, member, which, terms, secrets[run], n_steps, generator, ground, eyes),
            *(normals, noisy, belief, by_class, both),
        )
        beliefs[run] = eyes


@compiled
def _play(
    tally: Tally,
    votes: Votes,
    member: FloatArray,
    which: tuple[int, int],
    terms: Terms,
    secret: int,
    n_steps: int,
    generator: np.random.Generator,
    ground: Ground,
    eyes: FloatArray,
    normals: FloatArray,
    noisy: FloatArray,
    belief: FloatArray,
    by_class: FloatArray,
    both: FloatArray,
) -> tuple[float, int]:
    """Ask until the total is spent; returns the largest spread ever, and how often the secret answered."""
    choice, reading = which
    farthest, n_released, chosen, last = 0.0, 0, 0, -1
    for step in range(n_steps):
        if choice == _RANDOM:
            chosen = int(generator.random() * votes.shape[0])
        elif choice == _EXTREMES:
            chosen = _most_separating(votes, eyes, by_class)
        elif choice != _FIRST:
            about = member if choice == _TARGET else member[:0]
            chosen = _most_telling(votes, about, eyes, belief, by_class, both)
        query = query_of(tally, chosen)
        for i in range(query.n_voted - 1):
            normals[i] = generator.standard_normal()
        uniform = uniform_of(generator.random(), generator.random())
        how, by_argmax, by_map = answer_contested(query, secret, terms, step, normals, uniform, ground, noisy)
        n_released += how == RELEASED
        if reading == _ARGMAX and how == RELEASED:
            _read_label(query, by_argmax, terms.b, eyes)
        elif reading != _HISTORY and how == RELEASED:
            last = _read_lean(query, by_map, last, eyes)
        farthest = max(farthest, kernel.largest(ground.log_belief) - kernel.smallest(ground.log_belief))
    return farthest, n_released


@compiled
def _most_separating(votes: Votes, log_belief: FloatArray, by_class: FloatArray) -> int:
    """Find the query that could move the likeliest and the least likely subset farthest apart.

    They must vote differently, and the fewer believe in either side, the farther one answer moves it.
    """
    high = low = 0
    for i in range(log_belief.size):
        high = i if log_belief[i] > log_belief[high] else high
        low = i if log_belief[i] < log_belief[low] else low
    best, least = 0, np.inf
    for q in range(votes.shape[0]):
        by_class[:] = 0.0
        for i in range(log_belief.size):
            by_class[votes[q, i]] += math.exp(log_belief[i])
        smaller = min(by_class[votes[q, high]], by_class[votes[q, low]])
        if (votes[q, high] != votes[q, low] or high == low) and smaller < least:
            best, least = q, smaller
    return best


@compiled
def _most_telling(
    votes: Votes,
    member: FloatArray,
    log_belief: FloatArray,
    belief: FloatArray,
    by_class: FloatArray,
    both: FloatArray,
) -> int:
    """Find the query whose label depends most on membership, as likely as the belief makes both.

    At equal charge a label tells a share of its nats about membership: for two labels the squared correlation of vote
    and membership, for more the mean square contingency by degrees of freedom. Without a member it is the query whose
    labels are most evenly likely.
    """
    within = 0.0
    for i in range(belief.size):
        belief[i] = math.exp(log_belief[i])
        within += belief[i] * (member[i] if member.size else 0.0)
    best, most = 0, -1.0
    for q in range(votes.shape[0]):
        by_class[:] = 0.0
        both[:] = 0.0
        for i in range(belief.size):
            by_class[votes[q, i]] += belief[i]
            if member.size:
                both[votes[q, i]] += belief[i] * member[i]
        told, n_likely = 0.0, 0
        for c in range(by_class.size):
            if by_class[c] > 0.0:
                n_likely += 1
                difference = both[c] - by_class[c] * within
                told += difference * difference / by_class[c] if member.size else -by_class[c] * by_class[c]
        told = told / max(n_likely - 1, 1) if member.size else 1.0 + told
        if told > most:
            best, most = q, told
    return best


@compiled
def _read_label(query: Query, slot: int, b: float, log_belief: FloatArray) -> None:
    """Learn from a label of argmax about two classes; one's own belief is taken for the mechanism's.

    With masses w and 1 - w the noise is such that the two points are d = sqrt(2 b / (w (1 - w))) deviations apart, and
    the label is that of the nearer point.
    """
    if query.n_voted != 2:
        return  # a label among more classes is left unread: its probability has no closed form
    dissent = 0.0
    for i in query.dissenters:
        dissent += math.exp(log_belief[i])
    share = query.dissenters.size / log_belief.size
    # Whoever is surer than the mechanism would take its noise for less than it is, and grow surer still.
    uncertainty = max(dissent * (1.0 - dissent), _CAUTION * share * (1.0 - share))
    right = 0.5 * math.erfc(-math.sqrt(0.5 * b / uncertainty) / math.sqrt(2.0))
    gain = math.log(right / max(1.0 - right, 2.0**-53))  # half of the last place of 1
    for i in query.dissenters:
        log_belief[i] += gain if slot != query.bulk else -gain
    kernel.normalise(log_belief)


@compiled
def _read_lean(query: Query, slot: int, last: int, log_belief: FloatArray) -> int:
    """Learn from a label of map which way the whole belief leans by now; returns the label.

    It says nothing about one release. But if the same is asked again and again, the last label is what the mechanism
    believes, and the longer it has not changed, the surer that is. Only the order of what is then believed is used.
    """
    label = query.classes[slot]
    if label != last:
        log_belief[:] = -math.log(log_belief.size)
    for j in range(query.dissenters.size):
        log_belief[query.dissenters[j]] += _LEAN * ((query.slots[j] == slot) - (query.bulk == slot))
    kernel.normalise(log_belief)
    return label
