"""Students of private answers (the paper's Table 6), on census income and on images.

    python -m pacpredict.experiments.distill census --artifact census.pac
    python -m pacpredict.experiments.distill cifar10 --features lite2 --artifact images.pac

A quarter of the census records to train on, or 10,000 images of CIFAR-10 and public images of other sources, are held
back as unlabelled public data; 128 models are trained on halves of the rest. Each run draws a secret, lets a deployment
answer the public rows at 2^-32 nats each, keeps labels by a filter, and trains a student on those of the first T rows.
True labels are looked at to score; one student is trained on them, to compare with. Interrupted, it goes on with what
was fitted and computed.
"""

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from pacpredict import defaults
from pacpredict.experiments.fitted import fit_once
from pacpredict.experiments.students import METHODS, Study, budgets, measure
from pacpredict.experiments.unlabelled import census, cifar10


def run(options: argparse.Namespace) -> dict[str, Any]:
    started = time.perf_counter()
    n_threads = options.jobs if options.jobs > 0 else os.cpu_count() or 1
    setting = (
        census() if options.dataset == "census" else cifar10(options.features, options.others, n_threads)
    )
    artifact = fit_once(options.artifact, setting.pool, setting.learner, options.models, options.jobs)
    study = Study(setting, artifact)
    ends = [end for end in options.rows if end < len(setting.public)] + [len(setting.public)]
    prepared = time.perf_counter()
    return {
        "dataset": options.dataset,
        "pool": len(setting.pool),
        "public": len(setting.public),
        "test": len(setting.test),
        "runs": options.runs,
        "models": options.models,
        "budgets": budgets(study, ends),
        "teachers": study.teachers(options.trials),
        "students": measure(study, ends, options.runs, METHODS),
        "seconds": {"prepared": round(prepared - started), "all": round(time.perf_counter() - started)},
    }


def print_tables(found: dict[str, Any]) -> None:
    about = f"{found['pool']:,} records in the pool, {found['public']:,} public rows, {found['runs']} runs"
    print(f"{found['dataset']}: {found['models']} models, {about}\n")
    print("| T | nats, if each is charged | membership, at most |\n|---:|---:|---:|")
    for one in found["budgets"]:
        print(f"| {one['rows']:,} | {one['nats']:.3g} | {100 * one['success']:.2f} % |")
    print(f"\nmodels differ on {100 * found['budgets'][0]['contested']:.1f} % of the public rows\n")
    teachers = dict(found["teachers"])
    for name in ("all records", "one model"):
        print(f"without protection, {name}: {teachers.pop(name):.2f} %")
    print(f"a student of the public rows' true labels: {teachers.pop('true labels'):.2f} %")
    for name, percent in teachers.items():
        print(f"private teacher, {name}: {percent['mean']:.2f} % (sd {percent['sd']:.2f})")
    print("\n| labels | T | kept | right among the kept | kept and not the secret's | student (sd) |")
    print("|---|---:|---:|---:|---:|---:|")
    for row in found["students"]:
        kept, right, wrong, accuracy = np.array([list(one.values()) for one in row["runs"]]).T
        print(
            f"| {row['method']} | {row['rows']:,} | {kept.mean():,.0f} | {right.mean():.2f} % | {wrong.mean():.3f} % | "
            f"{accuracy.mean():.2f} % ({accuracy.std():.2f}) |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", choices=("census", "cifar10"))
    parser.add_argument("--artifact", type=Path, required=True, help="where to fit it, or where it is")
    parser.add_argument("--features", default="lite2", help="of images (default: lite2)")
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[1000, 2000, 5000, 10_000, 20_000], metavar="T"
    )
    parser.add_argument("--others", type=int, help="public images of other sources (default: all 28,603)")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--trials", type=int, default=1000, help="simulated teachers")
    parser.add_argument("--models", type=int, default=defaults.MODELS)
    parser.add_argument(
        "--jobs", type=int, default=-1, help="models trained at a time (default: one per core)"
    )
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    options = parser.parse_args()
    found = run(options)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        print_tables(found)


if __name__ == "__main__":
    main()
