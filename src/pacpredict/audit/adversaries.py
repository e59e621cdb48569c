"""Adversaries who are after one unit, and choose what to ask by what they believe by now.

    random      asks what the pool holds, in random order: the paper's attacker
    divided     asks what divides the belief most evenly: greedy about the secret as a whole
    memorised   asks again and again what tells most about the target, each time changed imperceptibly
    targeted    asks what tells most about the target under the present belief, chosen anew after every answer
    search      likewise, after a search for inputs that tell more than any record does

Each is played as somebody who sees the whole history, which the theorem counts, and as somebody who sees labels only.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from pacpredict.audit.estimates import Estimate, TruePositives, clopper_pearson, roc, success_ceiling
from pacpredict.audit.games import Choice, Game, Reading, Rules, play
from pacpredict.audit.membership import division
from pacpredict.audit.subject import Subject
from pacpredict.core.plan import propose_odds_limit
from pacpredict.types import FloatArray, IntArray, Votes

Adversary = Literal["random", "divided", "memorised", "targeted", "search"]
_CHOICES: dict[Adversary, Choice] = {
    "random": "random",
    "divided": "divided",
    "memorised": "first",
    "targeted": "target",
    "search": "target",
}
# What a target's queries are chosen from: those that tell most about it before any answer. The belief moves little
# while anything is left to learn, so that others hardly become better.
N_CANDIDATES = 128
# Steps of a game. Smaller ones make it longer and, at the same total, hardly another: the walk of the odds is the same.
N_STEPS = 400
# The total of a game: what (1, 1e-5)-DP matches on average, so that there is something to see. The totals of
# deployments are so small that a thousand runs could not tell a leak from chance.
TOTAL = 0.1109
# Votes that are looked at together: 16 MiB of doubles for 128 models.
_RECORDS_AT_A_TIME = 16_384


class Duel(NamedTuple):
    """What an adversary achieved against targets of one kind."""

    adversary: Adversary
    sees: Reading
    targets: str
    limit: float | None
    delta: float  # with which probability a game may pass it
    total_nats: float
    runs: int
    told: float  # mean share of what leaks that is about the target, before any answer
    success: Estimate
    ceiling: float
    true_positives: list[TruePositives]
    largest_spread: float  # of log-likelihoods over the subsets, ever
    beyond: Estimate  # share of runs in which it passed the limit, or what would be proposed for the total


def told_about(votes: Votes, membership: FloatArray) -> FloatArray:
    """Return the share (n_queries, n_units) of what each query leaks that is about each unit, before any answer.

    For two labels this is the squared correlation of votes and membership.
    """
    m = votes.shape[1]
    share = membership.mean(axis=0)
    centred = membership - share
    told, n_voted = np.zeros((len(votes), membership.shape[1])), np.zeros(len(votes))
    for label in range(int(votes.max()) + 1):
        gave = (votes == label).astype(np.float64)
        often = gave.mean(axis=1)
        n_voted += often > 0
        told += (gave @ centred / m) ** 2 / np.maximum(often, 1 / m)[:, None]
    scale = share * (1 - share) * np.maximum(n_voted - 1, 1)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(scale > 0, told / scale, 0.0)


def own_told(subject: Subject) -> FloatArray:
    """Return, of each unit, what its own records' votes tell about its membership: how well it is remembered."""
    best, by_unit = np.zeros(subject.n_units), np.ascontiguousarray(subject.membership.T)
    for records in np.array_split(
        np.arange(len(subject.votes)), 1 + len(subject.votes) // _RECORDS_AT_A_TIME
    ):
        units = subject.units[records]
        told = _told_of_each(subject.votes[records], by_unit[units].astype(np.float64))
        np.maximum.at(best, units, told)
    return best


def _told_of_each(votes: Votes, members: FloatArray) -> FloatArray:
    """Return the same share for each query and the one unit (a row of `members`) that goes with it."""
    share = members.mean(axis=1)
    centred = members - share[:, None]
    told, n_voted = np.zeros(len(votes)), np.zeros(len(votes))
    for label in range(int(votes.max()) + 1):
        gave = votes == label
        often = gave.mean(axis=1)
        n_voted += often > 0
        told += (gave * centred).mean(axis=1) ** 2 / np.maximum(often, 1 / votes.shape[1])
    scale = share * (1 - share) * np.maximum(n_voted - 1, 1)
    return np.divide(told, scale, out=np.zeros(len(votes)), where=scale > 0)


def choose_targets(subject: Subject, n_each: int, seed: int) -> dict[str, IntArray]:
    """Choose units to attack: those that are remembered best, and others at random."""
    told = own_told(subject)
    share = subject.membership.mean(axis=0)
    usable = np.flatnonzero((share > 0) & (share < 1))
    n_each = min(n_each, usable.size // 2)
    remembered = usable[np.argsort(-told[usable], kind="stable")[:n_each]]
    rest = np.setdiff1d(usable, remembered)
    ordinary = np.random.default_rng(seed).permutation(rest)[:n_each]
    return {"remembered": remembered, "ordinary": ordinary}


class Bout(NamedTuple):
    """One adversary under one set of rules, against all targets."""

    adversary: Adversary
    sees: Reading
    rules: Rules
    runs_each: int


def duel(
    subject: Subject,
    kind: str,
    targets: IntArray,
    bout: Bout,
    *,
    seed: int,
    found: Sequence[Votes] = (),
    progress: Callable[[int], None] | None = None,
) -> Duel:
    """Let an adversary attack each target in turn; `found` has, for each, votes on inputs that a search found."""
    rng = np.random.default_rng(seed)
    contested = subject.votes[subject.contested()]
    games, told = [], []
    for i, target in enumerate(targets):
        votes, share = _askable(
            subject, contested, int(target), bout.adversary, found[i] if len(found) else None
        )
        told.append(share)
        games.append(
            play(
                votes,
                subject.membership[:, target],
                _CHOICES[bout.adversary],
                bout.rules,
                bout.runs_each,
                reading=bout.sees,
                seed=int(rng.integers(2**31)),
            )
        )
        if progress is not None:
            progress(i + 1)
    return _score(subject, kind, bout, games, float(np.mean(told)))


def _askable(
    subject: Subject, contested: Votes, target: int, adversary: Adversary, found: Votes | None
) -> tuple[Votes, float]:
    """Return the votes on what this adversary may choose from, most telling first, and how much the first tells."""
    if found is not None:
        contested = np.concatenate([contested, found[found.min(axis=1) < found.max(axis=1)]])
    told = told_about(contested, subject.membership[:, [target]].astype(np.float64))[:, 0]
    if adversary == "random":
        return contested, float(told.mean())
    if adversary == "divided":
        order = np.argsort(-division(contested), kind="stable")[:N_CANDIDATES]
        return np.ascontiguousarray(contested[order]), float(told[order].mean())
    order = np.argsort(-told, kind="stable")[:N_CANDIDATES]
    kept = order[:1] if adversary == "memorised" else order
    return np.ascontiguousarray(contested[kept]), float(told[order[0]])


def _score(subject: Subject, kind: str, bout: Bout, games: Sequence[Game], told: float) -> Duel:
    rules = bout.rules
    shifts, members = (
        np.concatenate([getattr(game, part) for game in games]) for part in ("shifts", "members")
    )
    largest = np.concatenate([game.largest for game in games])
    # The test says yes if membership became more probable than not, from where the prior left it.
    share = float(subject.membership.mean())
    prior_odds = np.log(share / (1 - share))
    right = (shifts + prior_odds > 0) == members
    total = rules.step * rules.n_steps
    claimed = propose_odds_limit(total) if rules.limit is None else rules.limit
    delta = rules.delta if rules.mechanism == "gaussian" else 0.0
    return Duel(
        bout.adversary,
        bout.sees,
        kind,
        rules.limit,
        delta,
        total,
        len(right),
        told,
        clopper_pearson(int(right.sum()), len(right)),
        success_ceiling(total, subject.priors["membership"], rules.limit, delta),
        roc(shifts[:, None], members[:, None], total, rules.limit, delta),
        float(largest.max()),
        clopper_pearson(int((largest > claimed).sum()), len(largest)),
    )
