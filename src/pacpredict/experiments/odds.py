"""Adversaries against the limit on odds, played many times over real votes.

    python -m pacpredict.experiments.odds
    python -m pacpredict.experiments.odds --runs 1000 --json

Decision trees are trained on random halves of breast cancer records: they memorise, so that the votes on a record's own
features can follow its membership. An adversary who knows everything but the secret asks

    memorised   the query that tells most about the record that is remembered best, again and again
    greedy      after every answer the query that moves the odds of an ordinary record most, given the current posterior
    extremes    after every answer the query that could move the two subsets farthest apart that are so already
    xor         whether exactly one of two records was trained on, and knows the membership of the second
    friends     random queries, and knows the membership of 1 to 14 other records

until the total is spent. Each game is played with a limit on odds and without, through the finite channel and with
Gaussian noise. Printed are the largest spread of log-likelihoods over the subsets, the share of runs in which it passed
the limit, the largest shift of the target's log-odds for an adversary with that knowledge, and the success of the best
test without it, with both ceilings.
"""

import argparse
import json
import math
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from pacpredict.audit.games import Choice, Game, Rules
from pacpredict.audit.games import play as play_games
from pacpredict.core.bounds import success_bound, success_for_epsilon
from pacpredict.core.decode import DECODERS_OF, Mechanism
from pacpredict.core.roc import tpr_bound, tpr_for_epsilon
from pacpredict.training.subsets import balanced
from pacpredict.types import BoolArray, FloatArray, Votes

Adversary = Literal["memorised", "greedy", "extremes", "xor", "friends"]
_CHOICES: dict[Adversary, Choice] = {
    "memorised": "first",
    "greedy": "target",
    "extremes": "extremes",
    "xor": "first",
    "friends": "random",
}
ADVERSARIES = tuple(_CHOICES)
# How many memberships the friends know.
N_KNOWN = (1, 4, 7, 10, 14)

N_MODELS, N_RECORDS = 32, 60
# The friends of a record know so much that fewer subsets would leave nothing to learn.
N_MODELS_OF_FRIENDS = 128
STEP, TOTAL = 2.0**-9, 0.25  # nats: 128 answers
LIMIT = 1.0
# Those who ask about lone dissenters, for whom there is little noise: no noisy release fits into less.
WIDE_LIMIT = 3.0
# A subset that is e^700 times less likely than another is ruled out.
_CERTAIN = 700.0
# With Gaussian noise, the probability that a run may pass the limit. Large, so that there is something to see.
DELTA = 0.02


@dataclass(frozen=True)
class Pool:
    """Votes (n_queries, n_models) of real models, and who is in which subset."""

    votes: Votes
    membership: BoolArray
    remembered: int  # the record that queries tell most about
    telling: int  # the query that tells it
    ordinary: int  # a record that others are like


@dataclass(frozen=True)
class Row:
    adversary: Adversary
    mechanism: Mechanism
    limit: float | None
    largest_spread: float  # of log-likelihoods
    beyond: float  # share of runs in which it passed the limit
    known_shift: float  # largest shift of the target's log-odds, given what the adversary knows of others
    success: float
    success_ceiling: float
    tpr: float  # at 10 % false positives
    tpr_ceiling: float
    released: float  # mean


def make_pool(n_models: int = N_MODELS, seed: int = 0) -> Pool:
    """Train trees on random halves of a few records, and let them vote on all of these and on as many others."""
    from sklearn.datasets import load_breast_cancer  # noqa: PLC0415  # takes time to import
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415

    rng = np.random.default_rng(seed)
    features, labels = load_breast_cancer(return_X_y=True)
    chosen = rng.permutation(len(labels))[: 2 * N_RECORDS]
    features, labels = features[chosen], labels[chosen]
    membership = balanced(n_models, N_RECORDS, rng)
    models = [
        DecisionTreeClassifier(random_state=i).fit(features[:N_RECORDS][mine], labels[:N_RECORDS][mine])
        for i, mine in enumerate(membership)
    ]
    votes = np.stack([model.predict(features) for model in models], axis=1).astype(np.int16)
    votes = np.ascontiguousarray(votes[votes.min(axis=1) < votes.max(axis=1)])  # no other tells anything
    told = np.abs((2 * votes - 1) @ (2 * membership.astype(int) - 1))  # (n_queries, n_records)
    by_record = np.argsort(told.max(axis=0), kind="stable")
    remembered, ordinary = int(by_record[-1]), int(by_record[N_RECORDS // 2])
    return Pool(votes, membership, remembered, int(np.argmax(told[:, remembered])), ordinary)


def make_pools() -> dict[Adversary, Pool]:
    """Return the pool that each adversary plays against."""
    small, large = make_pool(), make_pool(N_MODELS_OF_FRIENDS)
    return {name: large if name in ("xor", "friends") else small for name in ADVERSARIES}


def target_of(pool: Pool, adversary: Adversary) -> int:
    """Return the record whose membership is guessed in the end."""
    return pool.remembered if adversary == "memorised" else pool.ordinary


def limit_on(adversary: Adversary, mechanism: Mechanism) -> float:
    """Return the limit that a game is played with."""
    return WIDE_LIMIT if adversary == "extremes" and mechanism == "gaussian" else LIMIT


def known_to(pool: Pool, adversary: Adversary, n_known: int) -> list[int]:
    """Return the other records whose membership the adversary knows."""
    others = [u for u in range(N_RECORDS) if u != target_of(pool, adversary)]
    return others[: {"xor": 1, "friends": n_known}.get(adversary, 0)]


def play(
    pool: Pool, adversary: Adversary, mechanism: Mechanism, limit: float | None, n_runs: int, seed: int = 1
) -> Game:
    """Play a game many times, each with a secret of its own."""
    member = pool.membership[:, target_of(pool, adversary)]
    votes = pool.votes
    if adversary == "memorised":
        votes = votes[[pool.telling]]
    elif adversary == "xor":
        (friend,) = known_to(pool, adversary, 1)
        votes = (member ^ pool.membership[:, friend])[None].astype(np.int16)
    rules = Rules(mechanism, STEP, math.floor(TOTAL / STEP), limit, DELTA)
    return play_games(votes, member, _CHOICES[adversary], rules, n_runs, seed=seed)


def known_shifts(pool: Pool, adversary: Adversary, game: Game, n_known: int) -> FloatArray:
    """Return how far the target's log-odds moved in each run, for an adversary who knows the others' membership.

    Runs in which what is known already tells the target's membership are left out: nothing moves there.
    """
    member, known = (
        pool.membership[:, u] for u in (target_of(pool, adversary), known_to(pool, adversary, n_known))
    )
    beliefs = np.exp(game.log_belief)
    shifts = np.zeros(len(beliefs))
    for pattern in np.unique(known, axis=0):
        possible = (known == pattern).all(axis=1)
        runs = possible[game.secrets]
        inside, outside = possible & member, possible & ~member
        if inside.any() and outside.any():
            with np.errstate(divide="ignore"):  # without a limit a run may end in certainty
                now = np.log(beliefs[np.ix_(runs, inside)].sum(axis=1))
                now -= np.log(beliefs[np.ix_(runs, outside)].sum(axis=1))
            shifts[runs] = now - math.log(inside.sum() / outside.sum())
    return shifts


def rates(game: Game, threshold: float) -> tuple[float, float]:
    """Return the false and the true positive rate of the test that says yes beyond a threshold."""
    yes = game.shifts > threshold
    return float(np.mean(yes[~game.members])), float(np.mean(yes[game.members]))


def score(game: Game, fpr: float) -> tuple[float, float]:
    """Return the success of the optimal guess, and true positives of the test with at most this false positive rate."""
    success = float(np.mean((game.shifts > 0) == game.members))
    outside = np.sort(game.shifts[~game.members])[::-1]
    return success, rates(game, outside[math.floor(fpr * outside.size)])[1]


def measure(n_runs: int) -> list[Row]:
    pools, rows = make_pools(), []
    for mechanism in DECODERS_OF:
        for adversary, pool in pools.items():
            for limit in (None, limit_on(adversary, mechanism)):
                game = play(pool, adversary, mechanism, limit, n_runs)
                shift = max(np.abs(known_shifts(pool, adversary, game, n)).max() for n in N_KNOWN)
                rows.append(_row(game, adversary, mechanism, limit, float(shift)))
    return rows


def _row(game: Game, adversary: Adversary, mechanism: Mechanism, limit: float | None, shift: float) -> Row:
    success, tpr = score(game, 0.1)
    beyond, farthest = (
        float(np.mean(game.largest > limit_on(adversary, mechanism))),
        float(game.largest.max()),
    )
    delta = 0.0 if mechanism == "channel" else DELTA
    ceilings = success_bound(TOTAL), tpr_bound(TOTAL, 0.1)
    if limit is not None:
        ceilings = (
            min(ceilings[0], success_for_epsilon(limit, delta)),
            min(ceilings[1], tpr_for_epsilon(limit, 0.1, delta)),
        )
    return Row(
        *(
            adversary,
            mechanism,
            limit,
            farthest if farthest < _CERTAIN else math.inf,
            beyond,
            shift,
        ),
        *(success, ceilings[0], tpr, ceilings[1], float(game.released.mean())),
    )


def _plain(row: Row) -> dict[str, object]:
    """Return a row for JSON, which has no infinity: certainty is null."""
    return {
        **asdict(row),
        "largest_spread": row.largest_spread if math.isfinite(row.largest_spread) else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10_000, help="of each game (default: 10000)")
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    options = parser.parse_args()
    rows = measure(options.runs)
    if options.json:
        print(json.dumps({"runs": options.runs, "games": [_plain(row) for row in rows]}, indent=2))
        return
    print(f"{options.runs:,} runs each; {TOTAL} nats in steps of {STEP:.2e}; at most after the bar\n")
    print(
        "mechanism  adversary   limit      spread   beyond  known others   success         found at 10%    released"
    )
    for row in rows:
        print(
            f"{row.mechanism:<10} {row.adversary:<10} {row.limit or 'none':>6} {row.largest_spread:>11.6f} "
            f"{row.beyond:>8.2%} {row.known_shift:>13.6f}   {row.success:.3f} | {row.success_ceiling:.3f}   "
            f"{row.tpr:.3f} | {row.tpr_ceiling:.3f} {row.released:>10.1f}"
        )


if __name__ == "__main__":
    main()
