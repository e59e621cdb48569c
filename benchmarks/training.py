"""How long training takes: heads for all subsets together beside a loop, and a Ray cluster beside this machine.

Features of 50,000 records, 1,280 wide, 10 classes, 128 random halves: both sides minimise the same loss on each half,
one process for each core, one thread each. The loop is timed on a few halves and extrapolated to all. Seconds are those
of a clock and, in brackets, those that cores were at work, which other programs on the machine change less; the ratio
is of the latter. How often both sides give the same label to records that neither has seen stands beside it.

Local against Ray: 16 models, on a cluster that is started on this machine and has as many CPUs, in turns; the fastest
of three rounds counts, and the models are compared to the byte.

    python benchmarks/training.py            a table
    python benchmarks/training.py --json     an object with `cases`
"""

import argparse
import json
import os
import time
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from places import measure_places
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from pacpredict.learners.heads.learner import HEADS, Head, Heads
from pacpredict.learners.learner import TrainingSet

N_CLASSES = 10
N_ASKED = 2_000
PENALTIES = {"ridge": 0.1, "logistic": 0.03}

IntArray = npt.NDArray[np.int64]


def make_records(n: int, width: int) -> tuple[npt.NDArray[np.float32], IntArray]:
    """Return features that are correlated and not negative, as those of a network are, and labels to learn."""
    rng = np.random.default_rng(0)
    labels = rng.integers(N_CLASSES, size=n)
    centres, mixing = rng.normal(0, 0.35, (N_CLASSES, 64)), rng.normal(size=(64, width)) / 8
    features = np.empty((n, width), np.float32)
    for start in range(0, n, 4096):
        own = labels[start : start + 4096]
        hidden = centres[own] + rng.normal(size=(len(own), 64))
        features[start : start + 4096] = np.maximum(
            hidden @ mixing + 0.3 * rng.normal(size=(len(own), width)), 0
        )
    return features, labels


def train_block(learner: Heads, features: Any, labels: IntArray, members: Any) -> tuple[list[Any], float]:
    started = time.process_time()
    with threadpool_limits(1):
        records = TrainingSet(features, labels, range(N_CLASSES))
        trained = learner.fit_together(records, members, None, [0] * len(members))
    return [one.model for one in trained], time.process_time() - started


def train_alone(head: Head, features: Any, labels: IntArray, own: IntArray) -> tuple[Any, float]:
    started = time.process_time()
    penalty = PENALTIES[head] * len(own)
    solver = RidgeClassifier(penalty) if head == "ridge" else LogisticRegression(C=1 / penalty, max_iter=1000)
    with threadpool_limits(1):
        model = make_pipeline(StandardScaler(), solver).fit(features[own], labels[own])
    return model, time.process_time() - started


def measure(head: Head, features: Any, labels: IntArray, options: argparse.Namespace) -> dict[str, Any]:
    n = len(labels) - N_ASKED
    known, asked = features[:n], features[n:]
    members = np.random.default_rng(1).random((options.models, n)) < 0.5
    learner = Heads(lambda image: image, head=head, penalty=PENALTIES[head], cache=None)
    blocks = range(0, options.models, learner.together)
    train_block(
        learner, known[:100], labels[:100], members[:1, :100]
    )  # kernels are compiled once, and not timed
    started = time.perf_counter()
    found = Parallel(options.jobs)(
        delayed(train_block)(learner, known, labels[:n], members[at : at + learner.together]) for at in blocks
    )
    together = time.perf_counter() - started
    halves = [np.flatnonzero(own) for own in members[: options.loop]]
    started = time.perf_counter()
    alone = Parallel(options.jobs)(delayed(train_alone)(head, known, labels[:n], own) for own in halves)
    loop = (time.perf_counter() - started) * options.models / options.loop
    heads = [model for block, _ in found for model in block][: options.loop]
    same = [
        ((asked @ model.weights + model.biases).argmax(axis=1) == one.predict(asked)).mean()
        for model, (one, _) in zip(heads, alone, strict=True)
    ]
    work = sum(seconds for _, seconds in found)
    loop_work = sum(seconds for _, seconds in alone) * options.models / options.loop
    return {
        "head": head,
        "together_seconds": round(together, 1),
        "together_core_seconds": round(work, 1),
        "loop_seconds": round(loop, 1),
        "loop_core_seconds": round(loop_work, 1),
        "ratio": round(loop_work / work, 1),
        "same_labels_percent": round(100 * float(np.mean(same)), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--width", type=int, default=1_280, help="features of a record (default: 1,280)")
    parser.add_argument("--models", type=int, default=128)
    parser.add_argument("--loop", type=int, default=2, help="models that the loop trains (default: 2)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (default: one per core)")
    parser.add_argument("--head", choices=HEADS, action="append", help="only this one")
    parser.add_argument("--part", choices=("heads", "ray"), help="only this one (default: both)")
    options = parser.parse_args()
    cases = [] if options.part == "ray" else measure_heads(options)
    places = [] if options.part == "heads" else measure_places()
    if options.json:
        sizes = {"models": options.models, "records": options.records}
        print(json.dumps({**sizes, "cases": cases, "places": places}, indent=2))
        return
    if cases:
        print_heads(cases)
    if places:
        print_places(places)


def measure_heads(options: argparse.Namespace) -> list[dict[str, Any]]:
    features, labels = make_records(options.records + N_ASKED, options.width)
    return [measure(head, features, labels, options) for head in options.head or HEADS]


def print_places(places: list[dict[str, Any]]) -> None:
    print(f"{'learner':<24} {'local':>9} {'Ray':>9} {'ratio':>7}")
    for case in places:
        times = f"{case['local_seconds']:>7} s {case['ray_seconds']:>7} s"
        print(f"{case['learner']:<24} {times} {case['ratio']:>7}")


def print_heads(cases: list[dict[str, Any]]) -> None:
    print(f"{'head':<9} {'together':>19} {'loop':>21} {'ratio':>7} {'same labels':>12}")
    for case in cases:
        ours = f"{case['together_seconds']:>8} s ({case['together_core_seconds']:>6})"
        loop = f"{case['loop_seconds']:>9} s ({case['loop_core_seconds']:>7})"
        print(f"{case['head']:<9} {ours} {loop} {case['ratio']:>7} {case['same_labels_percent']:>10} %")


if __name__ == "__main__":
    main()
