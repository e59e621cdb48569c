"""A client who spends the whole budget on driving one subset to the limit on odds, and what that does to the others.

    python -m pacpredict.experiments.hostile census --artifact census.pac
    python -m pacpredict.experiments.hostile bank --artifact bank.pac --json

The hostile client is assumed to have what is hardest to find: queries on which one chosen subset always dissents alone.
Half of all charged answers are theirs, the others are held-out records that models disagree on. Printed is the share of
the total that was spent when the limit was first met, in the run that met it first, and the accuracy of the answers to
everybody else, with the limit and without. A second table lets the client choose among real queries, by search, in
larger steps: after every answer the one that could move the two subsets farthest apart that are so already.
"""

import argparse
import json
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pacpredict import defaults
from pacpredict.artifact.artifact import Artifact
from pacpredict.audit.games import Rules, play
from pacpredict.core.decode import DECODERS_OF, Decoder, Mechanism
from pacpredict.core.plan import propose_odds_limit
from pacpredict.core.simulate import Simulation, simulate
from pacpredict.experiments.datasets import DATASETS
from pacpredict.experiments.tabular import SEED, fit, held_out_votes
from pacpredict.types import BoolArray, FloatArray, IntArray, Votes

# Looks at a run while it spends the total.
N_LOOKS = 200
# The limit counts as met when this share of it is used: a channel that is coupled less and less never quite gets there.
MET = 0.99
# Steps of the games with a search, and the queries it searches among: those on which the fewest models dissent.
N_STEPS, N_CANDIDATES = 2000, 400


class Row(NamedTuple):
    mechanism: Mechanism
    decoder: Decoder
    runs: int
    met: int  # runs that met the limit
    earliest: float | None  # share of the total spent, in the first of them
    believed: float  # share of contested answers that came from the belief
    accuracy: float  # of the others' contested queries, in percent, with the limit
    accuracy_free: float  # and without


class Search(NamedTuple):
    runs: int
    met: int
    earliest: float | None


def attack(votes: Votes, truth: IntArray, n_classes: int, mechanism: Mechanism, n_runs: int) -> list[Row]:
    """Let the hostile client ask every second query."""
    contested = votes.min(axis=1) < votes.max(axis=1)
    votes, truth = votes[contested], truth[contested]
    lone = np.repeat((np.arange(votes.shape[1]) == 0)[None].astype(votes.dtype), len(votes), axis=0)
    # No label of the client's own queries counts as right.
    rows, labels = np.concatenate([votes, lone]), np.concatenate([truth, np.full(len(lone), n_classes)])
    found = {
        limit: _spend(rows, labels, n_classes + 1, mechanism, limit, n_runs)
        for limit in (defaults.ODDS_LIMIT, None)
    }
    limited, free = found[defaults.ODDS_LIMIT], found[None]
    spread = np.ptp(limited.log_belief, axis=2)
    when = _first_met(spread >= MET * defaults.ODDS_LIMIT, limited.spent_nats() / defaults.TOTAL_BUDGET)
    return [
        Row(
            *(mechanism, decoder, n_runs, len(when), min(when, default=None)),
            round(float(limited.believed[:, -1].sum() / limited.contested[:, -1].sum()), 4),
            *(round(200 * float(one.accuracy(decoder)[:, -1].mean()), 3) for one in (limited, free)),
        )
        for decoder in DECODERS_OF[mechanism]
    ]


def _spend(
    rows: Votes, labels: IntArray, n_classes: int, mechanism: Mechanism, limit: float | None, n_runs: int
) -> Simulation:
    """Ask as many contested queries as the default total pays for."""
    n_queries = defaults.QUERIES
    stops = np.unique(np.linspace(1, n_queries, N_LOOKS).astype(int)).tolist()
    return simulate(
        *(rows, labels, defaults.STEP_BUDGET),
        n_trials=n_runs,
        seed=SEED,
        mechanism=mechanism,
        odds_limit=limit,
        n_classes=n_classes,
        n_queries=n_queries,
        checkpoints=stops,
    )


def _first_met(met: BoolArray, spent: FloatArray) -> list[float]:
    """Return the share of the total that each run that met the limit had spent then."""
    return [round(float(spent[run, np.argmax(met[run])]), 4) for run in range(len(met)) if met[run].any()]


def search(votes: Votes, n_runs: int) -> Search:
    """Let the client choose among real queries on which few models dissent, through the channel."""
    counts = np.stack([(votes == c).sum(axis=1) for c in range(int(votes.max()) + 1)])
    minority = votes.shape[1] - counts.max(axis=0)
    order = np.argsort(np.where(minority > 0, minority, votes.shape[1]), kind="stable")[:N_CANDIDATES]
    asked, limit = np.ascontiguousarray(votes[order]), propose_odds_limit(defaults.TOTAL_BUDGET)
    target = np.arange(votes.shape[1]) % 2 == 0
    met: FloatArray = np.full(n_runs, math.inf)
    for tenth in range(1, 11):
        n_steps = N_STEPS * tenth // 10
        rules = Rules("channel", defaults.TOTAL_BUDGET / N_STEPS, n_steps, limit)
        largest = play(asked, target, "extremes", rules, n_runs, seed=SEED).largest
        met = np.where(largest >= MET * limit, np.minimum(met, tenth / 10), met)
    within = met[met <= 1].tolist()
    return Search(n_runs, len(within), min(within, default=None))


def measure(name: str, artifact: Artifact, n_runs: int) -> tuple[list[Row], Search]:
    votes, truth, n_classes = held_out_votes(name, artifact)
    rows = [row for mechanism in DECODERS_OF for row in attack(votes, truth, n_classes, mechanism, n_runs)]
    return rows, search(votes, n_runs)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", choices=DATASETS)
    parser.add_argument("--artifact", type=Path, required=True, help="where to fit it, or where it is")
    parser.add_argument("--models", type=int, default=defaults.MODELS)
    parser.add_argument("--runs", type=int, default=8, help="of each kind (default: 8)")
    parser.add_argument(
        "--jobs", type=int, default=-1, help="models trained at a time (default: one per core)"
    )
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    options = parser.parse_args()
    artifact = fit(options.dataset, options.artifact, "none", options.models, options.jobs)
    rows, found = measure(options.dataset, artifact, options.runs)
    if options.json:
        print(json.dumps({"lone": [row._asdict() for row in rows], "search": found._asdict()}, indent=2))
        return
    print("mechanism  decoder  runs  met the limit  earliest  from the belief  accuracy  without the limit")
    for row in rows:
        earliest = "-" if row.earliest is None else f"{row.earliest:.1%}"
        print(
            f"{row.mechanism:<10} {row.decoder:<8} {row.runs:>4} {row.met:>14} {earliest:>9} {row.believed:>16.2%} "
            f"{row.accuracy:>8.3f}% {row.accuracy_free:>17.3f}%"
        )
    when = "never" if found.earliest is None else f"after {found.earliest:.0%} of the total at the earliest"
    print(f"\nBy search among real queries: met in {found.met} of {found.runs} runs, {when}")


if __name__ == "__main__":
    main()
