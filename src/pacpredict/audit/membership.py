"""Optimal membership inference (Proposition 6.1) in simulated futures of a deployment, as queries grow.

In every trial a secret is drawn, queries are answered as the deployment would answer them, and an attacker who has seen
everything computes of each unit how probably it was trained on. Guessed is what is more probable than not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from pacpredict.audit.estimates import (
    Estimate,
    TruePositives,
    clopper_pearson,
    curve,
    mean_of,
    roc,
    students_mean,
    success_ceiling,
)
from pacpredict.audit.subject import Subject, check_memory
from pacpredict.core.simulate import Simulation, simulate
from pacpredict.exceptions import InvalidInput, InvalidSubsets, InvalidVotes
from pacpredict.types import BoolArray, FloatArray, IntArray, Votes

# What is asked: the pool's records in random order, again and again with fresh noise; each once; other records, which
# are public; those first on which the models are most divided.
Strategy = Literal["random", "once", "public", "contested"]
STRATEGIES: tuple[Strategy, ...] = ("random", "once", "public", "contested")
# Numbers of queries after which the attacker is looked at.
N_LOOKS = 10
# Of the records on which models differ, the share that is taken to be the most contested.
_MOST_CONTESTED = 0.1
# Units whose scores make a ROC curve: with a hundred trials half of them make 200,000 cases without membership.
_UNITS_IN_CURVE = 4000


class Look(NamedTuple):
    """What the attacker achieves after so many queries."""

    queries: int
    charged_nats: float
    success: Estimate
    ceiling: float


@dataclass(frozen=True)
class Inference:
    strategy: Strategy
    step_budget: float
    trials: int
    looks: list[Look]
    true_positives: list[TruePositives]  # after all queries
    curve: list[tuple[float, float]]  # false and true positive rates
    information: Estimate  # nats that were learnt about the secret, on average; the interval is approximate
    limit: float | None  # on the spread of log-likelihoods
    delta: float  # with which probability a trial may pass it
    largest_spread: float  # of log-likelihoods over the subsets, at the end of any trial
    beyond: Estimate  # share of trials in which it passed the limit
    from_belief: int  # answers of all trials that the limit on odds kept from being released


class Questions(NamedTuple):
    """Votes on what is asked, true labels if they are known, and how many queries that makes."""

    votes: Votes
    labels: IntArray
    n_queries: int


def questions(subject: Subject, strategy: Strategy, n_queries: int, public: Votes | None = None) -> Questions:
    """Choose what is asked. Where all models agree answers are free and teach nothing: such records are left out."""
    if strategy == "public":
        if public is None:
            raise InvalidInput("the strategy `public` needs votes on public records")
        if public.ndim != 2 or public.shape[1] != subject.n_models:
            raise InvalidVotes(
                f"public votes must be those of {subject.n_models} models, got shape {public.shape}"
            )
        asked = public[public.min(axis=1) < public.max(axis=1)]
        if not len(asked):
            raise InvalidVotes(
                "all models agree on all public records: there is nothing to attack with them; leave --public out, or "
                "give others"
            )
        return Questions(asked, np.zeros(len(asked), np.int64), n_queries)
    chosen = subject.contested()
    if strategy == "contested":
        n = max(1, round(_MOST_CONTESTED * chosen.size))
        chosen = chosen[np.argsort(-division(subject.votes[chosen]), kind="stable")[:n]]
    total = min(n_queries, chosen.size) if strategy == "once" else n_queries
    return Questions(subject.votes[chosen], subject.labels[chosen], total)


def division(votes: Votes) -> FloatArray:
    """Return how divided the models are about each row: 1 less the sum of the squared shares of all labels."""
    n_models = votes.shape[1]
    squares = np.zeros(len(votes))
    for label in range(int(votes.max()) + 1):
        squares += ((votes == label).sum(axis=1) / n_models) ** 2
    return 1 - squares


def imagine(
    subject: Subject,
    asked: Questions,
    *,
    n_trials: int,
    seed: int,
    step_budget: float | None = None,
    odds_limit: float | None = None,
    n_jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Simulation:
    """Simulate futures of a deployment, each with a secret of its own, within a limit on odds if one is given."""
    stops = spread_out(asked.n_queries)
    needed = memory_needed(subject.n_models, subject.n_units, n_trials, len(stops))
    check_memory(needed, f"{n_trials:,} trials")
    return simulate(
        asked.votes,
        asked.labels,
        step_budget or subject.budget.step,
        n_trials=n_trials,
        seed=seed,
        mechanism=subject.mechanism,
        noise=subject.budget.noise,
        odds_limit=odds_limit,
        delta=subject.budget.odds_delta,
        n_classes=subject.n_classes,
        n_queries=asked.n_queries,
        checkpoints=stops,
        membership=subject.membership,
        n_jobs=n_jobs,
        progress=progress,
    )


def score(subject: Subject, strategy: Strategy, found: Simulation, odds_limit: float | None) -> Inference:
    """Compare what was achieved with what is possible at most."""
    accuracy = found.membership_accuracy
    if accuracy is None:
        raise InvalidSubsets("these trials were simulated without membership: there is nothing to score")
    spent = found.spent_nats(subject.budget.charging).max(axis=0)
    prior, delta = subject.priors["membership"], subject.delta
    looks = [
        Look(
            int(queries),
            float(nats),
            mean_of(accuracy[:, i]),
            success_ceiling(float(nats), prior, odds_limit, delta),
        )
        for i, (queries, nats) in enumerate(zip(found.checkpoints, spent, strict=True))
    ]
    scores, members = _cases(subject, found)
    spread = np.ptp(found.log_belief[:, -1], axis=1)  # the prior is uniform
    return Inference(
        strategy,
        found.step_budget,
        len(found.secrets),
        looks,
        roc(scores, members, float(spent[-1]), odds_limit, delta),
        curve(scores, members),
        students_mean(_learnt(found.log_belief[:, -1])),
        odds_limit,
        delta,
        float(spread.max()),
        clopper_pearson(0 if odds_limit is None else int((spread > odds_limit).sum()), len(spread)),
        int(found.believed[:, -1].sum()),
    )


def _cases(subject: Subject, found: Simulation) -> tuple[FloatArray, BoolArray]:
    """Return the shifts of log-odds (n_trials, n) of some units at the end, and whether each was trained on."""
    units = np.random.default_rng(0).permutation(subject.n_units)[:_UNITS_IN_CURVE]
    subsets = subject.membership[:, np.sort(units)]
    share = subsets.mean(axis=0)
    watched = (share > 0) & (share < 1)
    subsets, share = subsets[:, watched], share[watched]
    inside = np.clip(np.exp(found.log_belief[:, -1]) @ subsets, 0, 1)
    with np.errstate(divide="ignore"):
        shifts = np.log(inside) - np.log1p(-inside) - np.log(share / (1 - share))
    return shifts, subsets[found.secrets]


def _learnt(log_belief: FloatArray) -> FloatArray:
    """Return, of each trial, the divergence of what is believed from what was at first: its mean is I(S; H)."""
    p = np.exp(log_belief)
    return np.asarray((p * log_belief).sum(axis=1) + np.log(log_belief.shape[1]))


def spread_out(n_queries: int, wanted: int = N_LOOKS) -> list[int]:
    """Return numbers of queries at equal distances, up to all."""
    return sorted({max(1, round(n_queries * i / wanted)) for i in range(1, wanted + 1)})


def memory_needed(n_models: int, n_units: int, n_trials: int, n_looks: int) -> int:
    """Return the bytes that so many trials take, about: beliefs, scores of units, and signs of membership."""
    beliefs = n_trials * n_looks * n_models * 8
    cases = n_trials * min(n_units, _UNITS_IN_CURVE) * 8 * 4
    return beliefs + cases + n_models * n_units * 9
