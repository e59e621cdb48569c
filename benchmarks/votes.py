"""How fast all models of an ensemble vote, beside a loop over the models' own predict.

128 classifiers on 14 features, binary: 200 trees each on census income, with its categories and missing values (fitted
once and kept, see census.py; PACPREDICT_DATA says where the data is), the same with settings that each model searched
for itself (if somebody has fitted them), 100 trees each on numbers, by XGBoost and by scikit-learn's two learners, or
logistic regression; and 128 heads on 1,280 features, with ten classes. Networks have random parameters; as large as
the paper's there are four of them, and 128 that are small. The loop over networks computes all rows in one batch. Both
sides answer the same rows in one run and one thread. Timings are the best of several rounds that alternate between the
two, and the votes are compared before anything is timed. "Stacked" is how many times as fast up to eight networks are
as one, by torch.func, than one by one: where that is less than 1, networks are asked one by one.

    python benchmarks/votes.py            a table
    python benchmarks/votes.py --json     an object with `cases`
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import census
import numpy as np
import numpy.typing as npt
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from pacpredict.artifact.artifact import Artifact
from pacpredict.experiments.tabular import split
from pacpredict.features.exact import round_rows
from pacpredict.learners.learner import Voter
from pacpredict.votes.expansion import Expansion
from pacpredict.votes.pack_sklearn import pack_sklearn
from pacpredict.votes.pack_xgboost import pack_xgboost
from pacpredict.votes.stacked_heads import HeadModel, StackedHeads
from pacpredict.votes.stacked_linear import StackedLinear, read_linear

ROWS = (1, 32, 1000)
N_FEATURES, N_TREES = 14, 100
HEADS, N_WIDE, N_CLASSES = "heads", 1_280, 10
NETWORKS = ("wide-resnet", "wide-resnet, 10-1", "bert-small", "bert-small, 2 x 64")
NETWORK_ROWS = (1, 8)

FloatArray = npt.NDArray[np.float64]


def xgboost_classifier() -> Any:
    from xgboost import XGBClassifier  # noqa: PLC0415

    return XGBClassifier(n_estimators=N_TREES, max_depth=6, n_jobs=1)


def pack_classifiers(models: Sequence[Any]) -> Voter:
    return pack_xgboost([model.get_booster() for model in models])


def stack_classifiers(models: Sequence[Any]) -> Voter:
    both = [np.arange(2)] * len(models)
    return StackedLinear.of([read_linear(model) for model in models], both, 2, [0] * N_FEATURES)


class OneBooster:
    """A stored model of XGBoost as scikit-learn would hold it."""

    def __init__(self, stored: bytes) -> None:
        from xgboost import Booster  # noqa: PLC0415

        self._booster = Booster({"nthread": 1}, model_file=bytearray(stored))

    def predict(self, rows: FloatArray) -> npt.NDArray[np.bool_]:
        return np.asarray(self._booster.inplace_predict(rows)) > 0.5


def census_models(artifact: Artifact) -> tuple[list[Any], Voter, FloatArray]:
    """Return the stored models, the ensemble of them, and records that nobody was trained on."""
    ensemble = artifact.ensemble()
    table = split(census.NAME)[1][[column.name for column in artifact.schema.columns]]
    rows = ensemble.learner.prepare(ensemble.schema, ensemble.schema.rows(table[: max(ROWS)]))
    stored = [artifact.model_bytes(i) for i in range(artifact.recipe.n_models)]
    return [OneBooster(model) for model in stored if model is not None], ensemble.voter, rows


def random_heads(n_models: int) -> tuple[list[Any], Voter, npt.NDArray[np.float32]]:
    """Return classifiers of scikit-learn with random weights, the same as heads, and rows to ask about."""
    rng = np.random.default_rng(0)
    models, heads = [], []
    for _ in range(n_models):
        head = HeadModel.of(rng.normal(size=(N_WIDE, N_CLASSES)), rng.normal(size=N_CLASSES))
        model = LogisticRegression()
        model.classes_, model.coef_ = np.arange(N_CLASSES), head.weights.T.astype(np.float64)
        model.intercept_ = head.biases
        models.append(model)
        heads.append(head)
    every = [np.arange(N_CLASSES)] * n_models
    return models, StackedHeads.of(heads, every, N_CLASSES), round_rows(rng.normal(size=(max(ROWS), N_WIDE)))


LEARNERS: dict[str, tuple[Callable[[], Any], Callable[[Sequence[Any]], Voter]]] = {
    "xgboost": (xgboost_classifier, pack_classifiers),
    "random-forest": (lambda: RandomForestClassifier(N_TREES, max_depth=12), pack_sklearn),
    "hist-gradient-boosting": (lambda: HistGradientBoostingClassifier(max_iter=N_TREES), pack_sklearn),
    "logistic": (lambda: LogisticRegression(max_iter=1000), stack_classifiers),
}


EVERY = (census.NAME, census.TUNED, *LEARNERS, HEADS, *NETWORKS)


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


def prepare(learner: str, n_models: int, artifact: Artifact | None) -> tuple[list[Any], Voter, Any, Any]:
    """Return the models, all of them ready to vote, and rows as these and as those take them."""
    if artifact is not None:
        models, voter, x = census_models(artifact)
        return models, voter, x, x
    if learner == HEADS:
        models, voter, x = random_heads(n_models)
        return models, voter, x, x.astype(np.float64)
    x, y = make_classification(5_000, N_FEATURES, n_informative=8, flip_y=0.1, random_state=0)
    # Linear models are trained on what they are asked about: numbers and flags of missing ones. The loop gets rows that
    # are expanded already; the stack expands them itself.
    seen = Expansion([0] * N_FEATURES)(x) if learner == "logistic" else x
    models = train(learner, n_models, seen, y)
    return models, LEARNERS[learner][1](models), x, seen


def measure(learner: str, n_models: int, rounds: int, artifact: Artifact | None) -> list[dict[str, object]]:
    if learner in NETWORKS:
        return measure_networks(learner, rounds)
    if learner == census.TUNED and artifact is None:
        print(f"{learner}: left out, nobody has fitted it (see --tuned)", file=sys.stderr)
        return []
    models, packed, x, seen = prepare(learner, n_models, artifact)
    cases: list[dict[str, object]] = []
    for n_rows in ROWS:
        rows, ready = x[:n_rows], seen[:n_rows]
        loop = np.column_stack([model.predict(ready) for model in models])
        check_votes(learner, loop, packed.votes(rows))
        slow, fast = [], []
        for _ in range(rounds):
            slow.append(microseconds(lambda ready=ready: [model.predict(ready) for model in models], 1))  # type: ignore[misc]
            fast.append(microseconds(lambda rows=rows: packed.votes(rows), max(1, 200 // n_rows)))  # type: ignore[misc]
        cases.append(case_of(learner, len(models), n_rows, min(slow), min(fast)))
    return cases


def measure_networks(learner: str, rounds: int) -> list[dict[str, object]]:
    """Time a loop, the voter, and both ways that the voter has to choose from."""
    from networks import random_networks  # noqa: PLC0415  # takes seconds

    from pacpredict.learners.torch.ways import Way  # noqa: PLC0415

    models, voter, x = random_networks(learner, max(NETWORK_ROWS))
    cases = []
    for n_rows in NETWORK_ROWS:
        rows, ours = x[:n_rows], voter(None)
        check_votes(learner, np.column_stack([model.predict(rows) for model in models]), ours.votes(rows))
        jobs: dict[str, Callable[[], object]] = {
            "loop": lambda rows=rows: [model.predict(rows) for model in models],  # type: ignore[misc]
            "ours": lambda rows=rows, ours=ours: ours.votes(rows),  # type: ignore[misc]
        }
        for is_stacked in (False, True):
            way = voter(Way(n_rows, is_stacked))
            way.votes(rows)  # reads the networks
            jobs["stacked" if is_stacked else "one by one"] = lambda rows=rows, way=way: way.votes(rows)  # type: ignore[misc]
        times = [{name: microseconds(job, 1) for name, job in jobs.items()} for _ in range(rounds)]
        best = {name: min(each[name] for each in times) for name in jobs}
        case = case_of(learner, len(models), n_rows, best["loop"], best["ours"])
        cases.append({**case, "stacked_ratio": round(best["one by one"] / best["stacked"], 2)})
    return cases


def check_votes(learner: str, loop: npt.NDArray[Any], ours: npt.NDArray[Any]) -> None:
    if not np.array_equal(loop, ours):
        raise SystemExit(f"{learner}: the votes differ from the loop's")


def case_of(learner: str, n_models: int, n_rows: int, loop: float, ours: float) -> dict[str, object]:
    times = {"loop_us": round(loop), "ours_us": round(ours), "ratio": round(loop / ours, 1)}
    return {"learner": learner, "models": n_models, "rows": n_rows, **times}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    parser.add_argument("--rounds", type=int, default=5, help="alternating rounds per case (default: 5)")
    parser.add_argument(
        "--models",
        type=int,
        default=128,
        help="models of an ensemble that is made here: all but census and networks (default: 128)",
    )
    parser.add_argument(
        "--learner",
        choices=EVERY,
        action="append",
        metavar="NAME",
        help="only this one; may be repeated; one of " + ", ".join(f"'{name}'" for name in EVERY),
    )
    parser.add_argument(
        "--artifact", type=Path, help="where the census ensemble is kept (default: the user's cache)"
    )
    parser.add_argument(
        "--tuned",
        type=Path,
        help="where the tuned one is, which `python -m pacpredict.experiments.tabular census` fits (default: "
        "census-tuned.pac in the user's cache; left out if it is not there)",
    )
    options = parser.parse_args()
    artifacts: dict[str, Callable[[], Artifact | None]] = {
        census.NAME: lambda: census.fitted(options.artifact),
        census.TUNED: lambda: census.tuned(options.tuned),
    }
    with threadpool_limits(1):
        cases = [
            case
            for name in options.learner or EVERY
            for case in measure(name, options.models, options.rounds, artifacts.get(name, lambda: None)())
        ]
    if options.json:
        print(json.dumps({"cases": cases}, indent=2))
        return
    print(
        f"{'learner':<24} {'models':>6} {'rows':>5} {'loop':>13} {'pacpredict':>13} {'ratio':>8} {'stacked':>8}"
    )
    for case in cases:
        times = f"{case['loop_us']:>10} µs {case['ours_us']:>10} µs {case['ratio']:>8}"
        stacked = case.get("stacked_ratio", "")
        print(f"{case['learner']:<24} {case['models']:>6} {case['rows']:>5} {times} {stacked:>8}".rstrip())


if __name__ == "__main__":
    main()
