"""Accuracy of private answers by linear heads on public features (the paper's table of accuracies, images and texts).

    python -m pacpredict.experiments.heads cifar10 --features lite2+resnet50 --artifact cifar10.pac
    python -m pacpredict.experiments.heads imdb --features tfidf --artifact imdb.pac --json

Computes features of all records, trains 128 heads on random halves of the training set, and simulates 1,000 deployments
that answer the test set. Features are kept in the user's cache; interrupted, it goes on where it was.
"""

import argparse
import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from pacpredict import defaults
from pacpredict.artifact.artifact import Artifact
from pacpredict.cli.progress import progress_bar
from pacpredict.core.decode import DECODERS
from pacpredict.experiments.accuracy import accuracy_by_decoder
from pacpredict.experiments.fitted import accuracy_of_whole, fit_once
from pacpredict.experiments.image_data import CIFAR10, CIFAR100, Split, load_cifar
from pacpredict.experiments.text_data import load_ag_news, load_imdb
from pacpredict.learners.heads.learner import HEADS, Heads
from pacpredict.training.pool import Pool
from pacpredict.types import IntArray

SEED = 1  # of the simulation
BUDGETS = {"none": math.inf, "2^-8": 2.0**-8, "2^-16": 2.0**-16, "2^-32": 2.0**-32}


class Dataset(NamedTuple):
    """A data set, and what the paper's networks reach on it in percent: on all data, and at the budgets above."""

    load: Callable[[], Split]
    whole: float
    published: tuple[float, ...]


DATASETS = {
    "cifar10": Dataset(lambda: load_cifar(CIFAR10), 97.37, (95.80, 93.52, 87.90, 87.79)),
    "cifar100": Dataset(lambda: load_cifar(CIFAR100), 84.02, (77.79, 75.56, 56.34, 56.11)),
    "imdb": Dataset(load_imdb, 87.10, (85.13, 84.46, 69.32, 69.10)),
    "ag-news": Dataset(load_ag_news, 91.61, (90.44, 87.95, 79.42, 79.25)),
}


class Asked(NamedTuple):
    """The test set, ready to be voted on."""

    features: Any
    truth: IntArray


def measure(artifact: Artifact, asked: Asked, n_trials: int) -> list[dict[str, Any]]:
    """Simulate deployments that answer the test set once, by every decoder; returns means and deviations in percent."""
    votes = artifact.ensemble().voter.votes(asked.features)
    rows: list[dict[str, Any]] = []
    for noise, step in BUDGETS.items():
        found = accuracy_by_decoder(
            votes, asked.truth, step, n_trials=n_trials, seed=SEED, n_classes=len(artifact.classes)
        )
        rows.append({"noise": noise, **{decoder: percent._asdict() for decoder, percent in found.items()}})
    return rows


def lay_out(dataset: Dataset, options: argparse.Namespace) -> tuple[Pool, Heads, Asked]:
    """Return records, learner and questions; the features of both are computed, or read."""
    split = dataset.load()
    n_threads = options.jobs if options.jobs > 0 else os.cpu_count() or 1
    learner = Heads(options.features, head=options.head, penalty=options.penalty, n_threads=n_threads)
    # Each record by itself, as the paper draws.
    pool = Pool.of(split.records, split.labels, person_per_row=True, kinds=learner.takes)
    rows = pool.schema.rows(split.asked)
    with progress_bar("features to ask about") as progress:
        asked = Asked(learner.prepare(pool.schema, rows, progress), pool.classes.codes(split.truth))
    with progress_bar("features to train on") as progress:
        learner.prepare(pool.schema, pool.rows, progress)
    return pool, learner, asked


def run(options: argparse.Namespace) -> dict[str, Any]:
    dataset, started = DATASETS[options.dataset], time.perf_counter()
    pool, learner, asked = lay_out(dataset, options)
    computed = time.perf_counter()
    whole = accuracy_of_whole(pool, learner, asked.features, asked.truth)
    artifact = fit_once(options.artifact, pool, learner, options.models, options.jobs)
    fitted = time.perf_counter()
    return {
        "dataset": options.dataset,
        "features": options.features,
        "head": options.head,
        "models": options.models,
        "records": len(pool),
        "asked": len(asked.truth),
        "trials": options.trials,
        "whole": {"published": dataset.whole, "accuracy": whole},
        "rows": [
            {"published": published, **row}
            for published, row in zip(
                dataset.published, measure(artifact, asked, options.trials), strict=True
            )
        ],
        "seconds": {
            "features": round(computed - started),
            "fit": round(fitted - computed),
            "simulation": round(time.perf_counter() - fitted),
        },
        "training_core_seconds": round(sum(record["cpu_seconds"] for record in artifact.records())),
    }


def print_table(found: dict[str, Any]) -> None:
    about = f"{found['models']} {found['head']} heads on {found['features']}, {found['records']:,} records"
    print(f"{found['dataset']}: {about}, {found['asked']:,} queries, {found['trials']:,} trials\n")
    print(f"{'':<22}published" + "".join(f"{decoder:>10}    (sd)" for decoder in DECODERS))
    whole = found["whole"]
    print(f"{'one model, all records':<22}{whole['published']:>7.2f} %{whole['accuracy']:>8.2f} %")
    for row in found["rows"]:
        label = "one, half, no noise" if row["noise"] == "none" else row["noise"]
        cells = "".join(f"{row[decoder]['mean']:>8.2f} %{row[decoder]['sd']:>8.2f}" for decoder in DECODERS)
        print(f"{label:<22}{row['published']:>7.2f} %{cells}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", choices=DATASETS)
    parser.add_argument("--features", required=True, help="by name, or a model in ONNX")
    parser.add_argument("--artifact", type=Path, required=True, help="where to fit it, or where it is")
    parser.add_argument("--head", choices=HEADS, default="logistic")
    parser.add_argument("--penalty", type=float, help="(default: by the features)")
    parser.add_argument("--models", type=int, default=defaults.MODELS)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=-1, help="processes (default: one per core)")
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    options = parser.parse_args()
    found = run(options)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        print_table(found)


if __name__ == "__main__":
    main()
