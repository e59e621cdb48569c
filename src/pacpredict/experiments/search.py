"""Compare the settings that successive halving finds with those of the full grid.

    python -m pacpredict.experiments.search census --models 4 --records 4000

Draws subsets of some records, searches each in both ways, and measures the chosen models on the records that were held
out. About two minutes of one core for each model with 4,000 records.
"""

import argparse
import json
import time
from typing import Any, cast

import numpy as np
from joblib import Parallel, delayed

from pacpredict.experiments.datasets import DATASETS
from pacpredict.experiments.tabular import SEED, split
from pacpredict.learners.learner import TrainingSet
from pacpredict.learners.registry import TUNES, Tune
from pacpredict.learners.search import GRID, N_FOLDS, RUNGS
from pacpredict.learners.xgboost import XGBoostLearner
from pacpredict.tables.schema import Rows, Schema
from pacpredict.training.pool import Pool


def search_both(name: str, i: int, n_records: int) -> list[dict[str, Any]]:
    """Search on the i-th random subset in each way."""
    (records, held_out), target = split(name), DATASETS[name].target
    pool = Pool.of_frame(records, target)
    truth = pool.classes.codes(held_out[target])
    schema = cast("Schema", pool.schema)  # of tables
    asked = schema.features(schema.rows(held_out.drop(columns=target)))
    subset = np.random.default_rng([SEED, i]).permutation(len(pool))[:n_records]
    features, labels = schema.features(cast("Rows", pool.rows))[subset], pool.labels[subset]
    return [_measure(tune, i, features, labels, pool, asked, truth) for tune in TUNES]


def _measure(
    tune: Tune, i: int, features: Any, labels: Any, pool: Pool, asked: Any, truth: Any
) -> dict[str, Any]:
    learner, started = XGBoostLearner(tune=tune), time.process_time()
    schema = cast("Schema", pool.schema)
    trained = learner.fit(TrainingSet(features, labels, pool.classes.values), schema, seed=i)
    seconds = time.process_time() - started
    classes = [np.arange(len(pool.classes))]
    answers = learner.voter([trained.model], classes, len(pool.classes), schema).votes(asked)[:, 0]
    accuracy = 100 * float((answers == truth).mean())
    return {
        "subset": i,
        "tune": tune,
        "fits": fits(tune),
        "cpu_seconds": round(seconds, 1),
        "accuracy_percent": round(accuracy, 2),
        "chosen": dict(trained.notes),
    }


def fits(tune: Tune) -> int:
    """Count the models that a search trains."""
    if tune == "none":
        return 0
    if tune == "full":
        return int(np.prod([len(values) for values in GRID.values()])) * N_FOLDS
    folds_before = [0, *(n_folds for _, n_folds in RUNGS[:-1])]
    return sum(n * (n_folds - before) for (n, n_folds), before in zip(RUNGS, folds_before, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", choices=DATASETS)
    parser.add_argument("--models", type=int, default=4, help="subsets to search on (default: 4)")
    parser.add_argument("--records", type=int, default=4000, help="records of each (default: 4,000)")
    parser.add_argument("--jobs", type=int, default=-1, help="subsets at a time (default: one per core)")
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    options = parser.parse_args()
    jobs = (delayed(search_both)(options.dataset, i, options.records) for i in range(options.models))
    rows = [row for rows in Parallel(options.jobs)(jobs) for row in rows]
    if options.json:
        print(
            json.dumps({"dataset": options.dataset, "records": options.records, "searches": rows}, indent=2)
        )
        return
    print("search      fits   seconds   mean accuracy   on each subset")
    for tune in TUNES:
        own = [row for row in rows if row["tune"] == tune]
        accuracies = [row["accuracy_percent"] for row in own]
        seconds = np.mean([row["cpu_seconds"] for row in own])
        each = " ".join(f"{accuracy:.2f}" for accuracy in accuracies)
        print(f"{tune:<9} {fits(tune):>6,} {seconds:>9.1f} {np.mean(accuracies):>13.2f} %   {each}")


if __name__ == "__main__":
    main()
