"""How fast all models of an ensemble vote, beside a loop over the models' own predict.

128 classifiers on 14 features, binary: 100 trees each, or logistic regression. Both sides answer the same rows in one
run and one thread. Timings are the best of several rounds that alternate between the two, and the votes are compared
before anything is timed.

    python benchmarks/votes.py            a table
    python benchmarks/votes.py --json     an object with `cases`
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from pacpredict.ensemble.learners.learner import Voter
from pacpredict.ensemble.votes.expansion import Expansion
from pacpredict.ensemble.votes.pack_sklearn import pack_sklearn
from pacpredict.ensemble.votes.pack_xgboost import pack_xgboost
from pacpredict.ensemble.votes.stacked_linear import StackedLinear, read_linear

ROWS = (1, 32, 1000)
N_FEATURES, N_TREES = 14, 100

FloatArray = npt.NDArray[np.float64]


def xgboost_classifier() -> Any:
    from xgboost import XGBClassifier  # noqa: PLC0415

    return XGBClassifier(n_estimators=N_TREES, max_depth=6, n_jobs=1)


def pack_classifiers(models: Sequence[Any]) -> Voter:
    return pack_xgboost([model.get_booster() for model in models])


def stack_classifiers(models: Sequence[Any]) -> Voter:
    both = [np.arange(2)] * len(models)
    return StackedLinear.of([read_linear(model) for model in models], both, 2, [0] * N_FEATURES)


LEARNERS: dict[str, tuple[Callable[[], Any], Callable[[Sequence[Any]], Voter]]] = {
    "xgboost": (xgboost_classifier, pack_classifiers),
    "random-forest": (lambda: RandomForestClassifier(N_TREES, max_depth=12), pack_sklearn),
    "hist-gradient-boosting": (lambda: HistGradientBoostingClassifier(max_iter=N_TREES), pack_sklearn),
    "logistic": (lambda: LogisticRegression(max_iter=1000), stack_classifiers),
}


def train(learner: str, n_models: int, x: FloatArray, y: npt.NDArray[np.int64]) -> list[Any]:
    rng = np.random.default_rng(0)
    models = []
    for _ in range(n_models):
        half = rng.permutation(len(x))[: len(x) // 2]
        models.append(LEARNERS[learner][0]().fit(x[half], y[half]))
    return models


def microseconds(job: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        job()
        times.append(time.perf_counter() - started)
    return min(times) * 1e6


def measure(learner: str, n_models: int, rounds: int) -> list[dict[str, object]]:
    x, y = make_classification(5_000, N_FEATURES, n_informative=8, flip_y=0.1, random_state=0)
    # Linear models are trained on what they are asked about: numbers and flags of missing ones. The loop gets rows that
    # are expanded already; the stack expands them itself.
    seen = Expansion([0] * N_FEATURES)(x) if learner == "logistic" else x
    models = train(learner, n_models, seen, y)
    packed = LEARNERS[learner][1](models)
    cases: list[dict[str, object]] = []
    for n_rows in ROWS:
        rows, ready = x[:n_rows], seen[:n_rows]
        loop = np.column_stack([model.predict(ready) for model in models])
        if not np.array_equal(loop, packed.votes(rows)):
            raise SystemExit(f"{learner}: the votes differ from the loop's")
        slow, fast = [], []
        for _ in range(rounds):
            slow.append(microseconds(lambda ready=ready: [model.predict(ready) for model in models], 1))  # type: ignore[misc]
            fast.append(microseconds(lambda rows=rows: packed.votes(rows), max(1, 200 // n_rows)))  # type: ignore[misc]
        ratio = round(min(slow) / min(fast), 1)
        times = {"loop_us": round(min(slow)), "ours_us": round(min(fast)), "ratio": ratio}
        cases.append({"learner": learner, "rows": n_rows, **times})
    return cases


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    parser.add_argument("--rounds", type=int, default=5, help="alternating rounds per case (default: 5)")
    parser.add_argument("--models", type=int, default=128, help="models of each ensemble (default: 128)")
    parser.add_argument("--learner", choices=LEARNERS, action="append", help="only this one; may be repeated")
    options = parser.parse_args()
    with threadpool_limits(1):
        learners = options.learner or LEARNERS
        cases = [case for name in learners for case in measure(name, options.models, options.rounds)]
    if options.json:
        print(json.dumps({"models": options.models, "cases": cases}, indent=2))
        return
    print(f"{'learner':<24} {'rows':>5} {'loop':>13} {'pacpredict':>13} {'ratio':>8}")
    for case in cases:
        times = f"{case['loop_us']:>10} µs {case['ours_us']:>10} µs {case['ratio']:>8}"
        print(f"{case['learner']:<24} {case['rows']:>5} {times}")


if __name__ == "__main__":
    main()
