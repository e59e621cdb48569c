"""Accuracy of private answers on census income and bank marketing (the paper's table of accuracies, tabular rows).

    python -m pacpredict.experiments.tabular census --artifact census.pac
    python -m pacpredict.experiments.tabular bank --artifact bank.pac --json

Fits 128 XGBoost models on four fifths of the records, each with its own search for settings, and simulates 1,000
deployments that answer the other fifth. About 20 minutes on two cores; interrupted, it goes on where it was.
"""

import argparse
import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pacpredict.cli.progress import progress_bar
from pacpredict.core.simulate import simulate
from pacpredict.curator import fit_deployment
from pacpredict.ensemble.artifact.artifact import Artifact
from pacpredict.ensemble.learners.registry import learner_named
from pacpredict.ensemble.learners.search import TUNES, Tune
from pacpredict.ensemble.pool import Pool
from pacpredict.ensemble.recipe import DEFAULT_STEP, Recipe, default_total
from pacpredict.experiments.datasets import DATASETS
from pacpredict.mechanism.budget import Budget

SEED = 1  # of the split, the subsets and the simulation
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


def split(name: str) -> tuple[Any, Any]:
    """Return the records to fit on and those to ask about, as the paper splits them: 80 and 20 percent at random."""
    table = DATASETS[name].load()
    order = np.random.default_rng(SEED).permutation(len(table))
    n_test = math.ceil(TEST_SHARE * len(table))
    return table.iloc[order[n_test:]], table.iloc[order[:n_test]]


def fit(name: str, path: Path, tune: Tune, n_models: int, n_jobs: int) -> Artifact:
    """Fit the artifact unless it is there."""
    if path.exists():
        return Artifact.open(path)
    pool = Pool.of_frame(split(name)[0], DATASETS[name].target)
    recipe = Recipe(SEED, Budget(DEFAULT_STEP, default_total()), n_models)
    with progress_bar("models") as progress:
        return fit_deployment(
            path, pool, learner_named("xgboost", tune=tune), recipe, n_jobs=n_jobs, progress=progress
        )


def measure(name: str, artifact: Artifact, n_trials: int, budgets: Sequence[str] = SHOWN) -> list[Accuracy]:
    """Simulate deployments that answer every held-out record once."""
    published = dict(zip(STEPS, PUBLISHED[name], strict=True))
    held_out, target = split(name)[1], DATASETS[name].target
    ensemble = artifact.ensemble()
    truth = ensemble.classes.codes(held_out[target])
    votes = ensemble.votes(ensemble.schema.rows(held_out.drop(columns=target)), n_threads=2)
    rows = []
    for noise in budgets:
        result = simulate(
            votes, truth, STEPS[noise], n_trials=n_trials, seed=SEED, n_classes=len(ensemble.classes)
        )
        percent = {decoder: 100 * result.accuracy(decoder)[:, -1] for decoder in ("argmax", "map")}
        summary = [float(f(percent[d])) for d in ("argmax", "map") for f in (np.mean, np.std)]
        rows.append(Accuracy(noise, published[noise], *(round(figure, 3) for figure in summary)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", choices=DATASETS)
    parser.add_argument("--artifact", type=Path, required=True, help="where to fit it, or where it is")
    parser.add_argument("--tune", choices=TUNES, default="halving")
    parser.add_argument("--models", type=int, default=128)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument(
        "--jobs", type=int, default=-1, help="models trained at a time (default: one per core)"
    )
    parser.add_argument("--all", action="store_true", help="measure all sixteen budgets that were published")
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    options = parser.parse_args()
    started = time.perf_counter()
    artifact = fit(options.dataset, options.artifact, options.tune, options.models, options.jobs)
    seconds = time.perf_counter() - started
    training = sum(record["cpu_seconds"] for record in artifact.records())
    rows = measure(options.dataset, artifact, options.trials, tuple(STEPS) if options.all else SHOWN)
    if options.json:
        figures = {"dataset": options.dataset, "trials": options.trials, "fit_seconds": round(seconds)}
        figures |= {"training_cpu_seconds": round(training)}
        print(json.dumps({**figures, "accuracy_percent": [row._asdict() for row in rows]}, indent=2))
        return
    about = f"{options.models} models, {training / 60:.0f} minutes of one core, {options.trials} trials"
    print(f"{options.dataset}: {about}\n")
    print("step budget   published    argmax    (sd)       map    (sd)")
    for row in rows:
        print("{:<11} {:>9.2f} % {:>7.2f} % {:>7.2f} {:>7.2f} % {:>7.2f}".format(*row))


if __name__ == "__main__":
    main()
