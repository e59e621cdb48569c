"""Accuracy of private answers on census income and bank marketing (the paper's table of accuracies, tabular rows).

    python -m pacpredict.experiments.tabular census --artifact census.pac
    python -m pacpredict.experiments.tabular bank --artifact bank.pac --json
    python -m pacpredict.experiments.tabular census --artifact census.pac --lives 20

Fits 128 XGBoost models on four fifths of the records, each with its own search for settings, and simulates 1,000
deployments that answer the other fifth. About 20 minutes on two cores; interrupted, it goes on where it was. With
`--lives`, so many deployments are asked until their default total is spent, to see whether the limit on odds is felt.
"""

import argparse
import json
import math
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pacpredict import defaults
from pacpredict.artifact.artifact import Artifact
from pacpredict.core.decode import DECODERS_OF, Mechanism
from pacpredict.core.simulate import simulate
from pacpredict.experiments.accuracy import accuracy_by_decoder
from pacpredict.experiments.datasets import DATASETS
from pacpredict.experiments.fitted import fit_once
from pacpredict.learners.registry import TUNES, Tune, learner_named
from pacpredict.mechanism.planned_budget import plan_budget
from pacpredict.tables.options import TableOptions
from pacpredict.training.pool import Pool
from pacpredict.types import IntArray, Votes

SEED = 1  # of the split and the simulation
TEST_SHARE = 0.2
# Step budgets, and the published accuracy of argmax in percent: without noise from the paper's table, the others as
# published with its code.
_EXPONENTS = range(2, 33, 2)
STEPS = {"none": math.inf, **{f"2^-{e}": 2.0**-e for e in _EXPONENTS}}
PUBLISHED = {
    "census": (
        *(87.17, 87.172, 87.153, 87.065, 86.679, 86.14, 85.919, 85.878, 85.862),
        *(85.861, 85.842, 85.847, 85.844, 85.837, 85.843, 85.841, 85.841),
    ),
    "bank": (
        *(91.69, 91.681, 91.669, 91.542, 91.021, 90.546, 90.362, 90.311, 90.284),
        *(90.277, 90.282, 90.276, 90.272, 90.278, 90.274, 90.275, 90.287),
    ),
}
SHOWN = ("none", "2^-8", "2^-32")  # unless all are asked for


class Accuracy(NamedTuple):
    noise: str  # the step budget
    published: float  # percent
    argmax: float
    argmax_sd: float  # over trials
    map: float
    map_sd: float
    sample: float
    sample_sd: float


# Limits on odds of the deployments that are asked until their total is spent: the default, and twice that.
LIMITS = (defaults.ODDS_LIMIT, 2 * defaults.ODDS_LIMIT)


class Life(NamedTuple):
    """Deployments with a limit on odds, asked ordinary queries until the default total was spent."""

    mechanism: Mechanism
    limit: float
    trials: int
    queries: int  # that each was asked
    contested: int  # the smallest number of these on which models differed
    believed: int  # answers from the belief, because of the limit, in all trials
    largest_spread: float  # of log-likelihoods over the subsets, at the end of any trial
    odds_sd: float  # of the log-odds of all records in all trials
    odds_largest: float


def split(name: str) -> tuple[Any, Any]:
    """Return the records to fit on and those to ask about, as the paper splits them: 80 and 20 percent at random."""
    table = DATASETS[name].load()
    order = np.random.default_rng(SEED).permutation(len(table))
    n_test = math.ceil(TEST_SHARE * len(table))
    return table.iloc[order[n_test:]], table.iloc[order[:n_test]]


def fit(name: str, path: Path, tune: Tune, n_models: int, n_jobs: int) -> Artifact:
    """Fit the artifact unless it is there."""
    options = TableOptions(DATASETS[name].target, person_per_row=True)  # as the paper draws
    pool = Pool.of_frame(split(name)[0], options)
    return fit_once(path, pool, learner_named("xgboost", tune=tune), n_models, n_jobs)


def measure(name: str, artifact: Artifact, n_trials: int, budgets: Sequence[str] = SHOWN) -> list[Accuracy]:
    """Simulate deployments that answer every held-out record once."""
    published = dict(zip(STEPS, PUBLISHED[name], strict=True))
    votes, truth, n_classes = held_out_votes(name, artifact)
    rows = []
    for noise in budgets:
        found = accuracy_by_decoder(
            votes, truth, STEPS[noise], n_trials=n_trials, seed=SEED, n_classes=n_classes
        )
        rows.append(Accuracy(noise, published[noise], *chain.from_iterable(found.values())))
    return rows


def live(name: str, artifact: Artifact, mechanism: Mechanism, limit: float, n_trials: int) -> Life:
    """Ask the held-out records again and again, each time with fresh noise, until the default total is spent."""
    votes, truth, n_classes = held_out_votes(name, artifact)
    subsets = artifact.ensemble().space.subsets.matrix()
    share = float((votes.min(axis=1) < votes.max(axis=1)).mean())
    budget = plan_budget()
    result = simulate(
        votes,
        truth,
        budget.step,
        n_trials=n_trials,
        seed=SEED,
        mechanism=mechanism,
        odds_limit=limit,
        n_classes=n_classes,
        n_queries=len(votes) * math.ceil(budget.total_steps / share / len(votes)),
        membership=subsets,
    )
    inside = np.exp(result.log_belief[:, -1]) @ subsets
    shifts = np.log(inside / (1 - inside))  # half of the subsets have each record, so its odds were 1
    return Life(
        mechanism,
        limit,
        n_trials,
        int(result.checkpoints[-1]),
        int(result.contested.min()),
        int(result.believed.sum()),
        round(float(np.ptp(result.log_belief[:, -1], axis=1).max()), 5),
        round(float(shifts.std()), 5),
        round(float(np.abs(shifts).max()), 5),
    )


def held_out_votes(name: str, artifact: Artifact) -> tuple[Votes, IntArray, int]:
    """Return the votes on the records to ask about, their true labels, and the number of classes."""
    held_out, target = split(name)[1], DATASETS[name].target
    ensemble = artifact.ensemble()
    truth = ensemble.classes.codes(held_out[target])
    votes = ensemble.votes(ensemble.schema.rows(held_out.drop(columns=target)), n_threads=2)
    return votes, truth, len(ensemble.classes)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", choices=DATASETS)
    parser.add_argument("--artifact", type=Path, required=True, help="where to fit it, or where it is")
    parser.add_argument("--tune", choices=TUNES, default="halving")
    parser.add_argument("--models", type=int, default=defaults.MODELS)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument(
        "--jobs", type=int, default=-1, help="models trained at a time (default: one per core)"
    )
    parser.add_argument("--all", action="store_true", help="measure all sixteen budgets that were published")
    parser.add_argument("--lives", type=int, help="deployments to ask until their total is spent")
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    options = parser.parse_args()
    started = time.perf_counter()
    artifact = fit(options.dataset, options.artifact, options.tune, options.models, options.jobs)
    seconds = time.perf_counter() - started
    if options.lives:
        lives = [
            live(options.dataset, artifact, mechanism, limit, options.lives)
            for mechanism in DECODERS_OF
            for limit in LIMITS
        ]
        _print_lives(lives, options.json)
        return
    training = sum(record["cpu_seconds"] for record in artifact.records())
    rows = measure(options.dataset, artifact, options.trials, tuple(STEPS) if options.all else SHOWN)
    if options.json:
        figures = {"dataset": options.dataset, "trials": options.trials, "fit_seconds": round(seconds)}
        figures |= {"training_cpu_seconds": round(training)}
        print(json.dumps({**figures, "accuracy_percent": [row._asdict() for row in rows]}, indent=2))
        return
    about = f"{options.models} models, {training / 60:.0f} minutes of one core, {options.trials} trials"
    print(f"{options.dataset}: {about}\n")
    print("step budget   published    argmax    (sd)       map    (sd)    sample    (sd)")
    for row in rows:
        print(
            "{:<11} {:>9.2f} %{}".format(
                *row[:2], "".join(map(" {:>7.2f} % {:>7.2f}".format, row[2::2], row[3::2]))
            )
        )


def _print_lives(lives: Sequence[Life], as_json: bool) -> None:
    if as_json:
        print(json.dumps([life._asdict() for life in lives], indent=2))
        return
    print("mechanism  limit  trials    queries  contested  from the belief   spread  sd of log-odds  largest")
    for life in lives:
        print("{:<9} {:>6} {:>7} {:>10,} {:>10,} {:>16,} {:>8.5f} {:>15.5f} {:>8.5f}".format(*life))


if __name__ == "__main__":
    main()
