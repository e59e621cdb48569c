"""Three adversaries against the limit on odds, played many times over a small pool with real votes.

    python -m pacpredict.experiments.odds
    python -m pacpredict.experiments.odds --runs 1000 --json

Decision trees are trained on random halves of 60 records of breast cancer data: they memorise, so that the votes on a
record's own features can follow its membership. An adversary who knows everything but the secret asks

    memorised   the query that tells most about the record that is remembered best, again and again
    greedy      after every answer the query that moves the odds of an ordinary record most, by what is believed by now
    extremes    after every answer the query that could move the two subsets farthest apart that are so already

until the total is spent. Each game is played with a limit on odds and without, through the finite channel and with
Gaussian noise. Printed are the largest spread of log-likelihoods over the subsets, the share of runs in which it passed
the limit, and the success of the best test on the record at the end, with both ceilings.
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
from pacpredict.types import BoolArray, Votes

Adversary = Literal["memorised", "greedy", "extremes"]
_CHOICES: dict[Adversary, Choice] = {"memorised": "first", "greedy": "target", "extremes": "extremes"}
ADVERSARIES = tuple(_CHOICES)

N_MODELS, N_RECORDS = 32, 60
STEP, TOTAL = 2.0**-9, 0.25  # nats: 128 answers
LIMIT = 1.0
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
    success: float
    success_ceiling: float
    tpr: float  # at 10 % false positives
    tpr_ceiling: float
    released: float  # mean


def make_pool(seed: int = 0) -> Pool:
    """Train trees on random halves of a few records, and let them vote on all of these and on as many others."""
    from sklearn.datasets import load_breast_cancer  # noqa: PLC0415  # takes time to import
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415

    rng = np.random.default_rng(seed)
    features, labels = load_breast_cancer(return_X_y=True)
    chosen = rng.permutation(len(labels))[: 2 * N_RECORDS]
    features, labels = features[chosen], labels[chosen]
    membership = balanced(N_MODELS, N_RECORDS, rng)
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


def target_of(pool: Pool, adversary: Adversary) -> int:
    """Return the record whose membership is guessed in the end."""
    return pool.remembered if adversary == "memorised" else pool.ordinary


def play(
    pool: Pool, adversary: Adversary, mechanism: Mechanism, limit: float | None, n_runs: int, seed: int = 1
) -> Game:
    """Play a game many times, each with a secret of its own."""
    votes = pool.votes[[pool.telling]] if adversary == "memorised" else pool.votes
    member = pool.membership[:, target_of(pool, adversary)]
    rules = Rules(mechanism, STEP, math.floor(TOTAL / STEP), limit, DELTA)
    return play_games(votes, member, _CHOICES[adversary], rules, n_runs, seed=seed)


def rates(game: Game, threshold: float) -> tuple[float, float]:
    """Return the false and the true positive rate of the test that says yes beyond a threshold."""
    yes = game.shifts > threshold
    return float(np.mean(yes[~game.members])), float(np.mean(yes[game.members]))


def score(game: Game, fpr: float) -> tuple[float, float]:
    """Return the success of the optimal guess, and true positives of the test with at most this false positive rate."""
    success = float(np.mean((game.shifts > 0) == game.members))
    outside = np.sort(game.shifts[~game.members])[::-1]
    return success, rates(game, outside[math.floor(fpr * outside.size)])[1]


def measure(pool: Pool, n_runs: int) -> list[Row]:
    rows = []
    for mechanism in DECODERS_OF:
        for adversary in ADVERSARIES:
            for limit in (None, LIMIT):
                game = play(pool, adversary, mechanism, limit, n_runs)
                rows.append(_row(game, adversary, mechanism, limit))
    return rows


def _row(game: Game, adversary: Adversary, mechanism: Mechanism, limit: float | None) -> Row:
    success, tpr = score(game, 0.1)
    delta = 0.0 if mechanism == "channel" else DELTA
    ceilings = success_bound(TOTAL), tpr_bound(TOTAL, 0.1)
    if limit is not None:
        ceilings = (
            min(ceilings[0], success_for_epsilon(limit, delta)),
            min(ceilings[1], tpr_for_epsilon(limit, 0.1, delta)),
        )
    return Row(
        *(adversary, mechanism, limit, float(game.largest.max()), float(np.mean(game.largest > LIMIT))),
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
    rows = measure(make_pool(), options.runs)
    if options.json:
        print(json.dumps({"runs": options.runs, "games": [_plain(row) for row in rows]}, indent=2))
        return
    print(f"{options.runs:,} runs each; {TOTAL} nats in steps of {STEP:.2e}; at most after the bar\n")
    print(
        "mechanism  adversary   limit         spread    beyond   success         found at 10 %     released"
    )
    for row in rows:
        print(
            f"{row.mechanism:<10} {row.adversary:<10} {row.limit or 'none':>6}   {row.largest_spread:>12.6f} "
            f"{row.beyond:>8.2%}   {row.success:.3f} | {row.success_ceiling:.3f}   {row.tpr:.3f} | "
            f"{row.tpr_ceiling:.3f}   {row.released:>10.1f}"
        )


if __name__ == "__main__":
    main()
