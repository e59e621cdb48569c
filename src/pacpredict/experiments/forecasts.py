"""Compare what `evaluate` forecasts with what deployments then do.

    python -m pacpredict.experiments.forecasts cancer --splits 10
    python -m pacpredict.experiments.forecasts census

Forecasts from four fifths of the records, then fits 128 models on them, draws 20 secrets, and asks each deployment
about the other fifth. A split of census income takes ten minutes on two cores.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pacpredict import defaults
from pacpredict.cli.progress import progress_bar
from pacpredict.core.decode import DECODERS
from pacpredict.curator import Curator
from pacpredict.evaluation.evaluate import Evaluation, evaluate_pool
from pacpredict.evaluation.forecast import Case
from pacpredict.experiments.datasets import DATASETS
from pacpredict.experiments.tabular import SEED, TEST_SHARE
from pacpredict.learners.registry import learner_named, learner_names
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.tables.options import TableOptions
from pacpredict.training.ensemble import Ensemble
from pacpredict.training.fit import fit
from pacpredict.training.pool import Pool
from pacpredict.training.recipe import Recipe

STEPS = (2.0**-8, 2.0**-32)
N_SECRETS = 20


class Data(NamedTuple):
    load: Callable[[], pd.DataFrame]
    target: str
    learner: str


def _of_scikit_learn(name: str) -> pd.DataFrame:
    from sklearn import datasets  # noqa: PLC0415

    return getattr(datasets, f"load_{name}")(as_frame=True).frame


def noisy() -> pd.DataFrame:
    """Three classes that ten columns say little about: models disagree on most queries."""
    rng = np.random.default_rng(SEED)
    table = pd.DataFrame(rng.normal(size=(3000, 10)), columns=[f"x{j}" for j in range(10)])
    score = table["x0"] + 0.5 * table["x1"] + rng.normal(0, 2, 3000)
    return table.assign(y=np.array(["low", "middle", "high"])[np.digitize(score, [-0.8, 1.2])])


DATA = {
    **{name: Data(one.load, one.target, "xgboost") for name, one in DATASETS.items()},
    "digits": Data(lambda: _of_scikit_learn("digits"), "target", "logistic"),
    "cancer": Data(lambda: _of_scikit_learn("breast_cancer"), "target", "logistic"),
    "noisy": Data(noisy, "y", "xgboost"),
}


class Outcome(NamedTuple):
    """Of one split, in percent: what was forecast for each case, and what deployments then did."""

    found: Evaluation
    contested: float  # of the queries to the deployments
    deployed: list[float]  # the mean over secrets, for each case of the forecast


def compare(name: str, learner_name: str, split: int, n_jobs: int) -> Outcome:
    """Forecast from four fifths of the records, and ask deployments about the others."""
    table, target = DATA[name].load(), DATA[name].target
    order = np.random.default_rng([SEED, split]).permutation(len(table))
    n_asked = round(TEST_SHARE * len(table))
    asked, options = table.iloc[order[:n_asked]], TableOptions(target, person_per_row=True)
    pool = Pool.of_frame(table.iloc[order[n_asked:]], options)
    learner, recipe = learner_named(learner_name), Recipe(split, Budget(min(STEPS), 1.0))
    with progress_bar(f"models of split {split + 1}") as progress:
        found = evaluate_pool(
            pool, lambda _: learner, recipe, STEPS, name=learner_name, n_jobs=n_jobs, progress=progress
        )
    ensemble = fit(pool, learner, recipe, n_jobs=n_jobs).ensemble
    truth, queries = asked[target].to_numpy(), asked.drop(columns=target)
    votes = ensemble.votes(ensemble.schema.rows(queries))
    deployed = [_deploy(ensemble, case, queries, truth) for case in found.forecast.cases]
    return Outcome(found, float((votes.min(axis=1) < votes.max(axis=1)).mean()), deployed)


def _deploy(ensemble: Ensemble, case: Case, queries: pd.DataFrame, truth: Any) -> float:
    """Draw secrets from the operating system, ask each deployment all queries, and return how often they are right."""
    budget = Budget(case.step_budget, case.step_budget * len(queries))
    recipe = Recipe(SEED, budget, decode=case.decode)
    curators = (Curator(ensemble, recipe, MemoryLedger()) for _ in range(N_SECRETS))
    return float(np.mean([(one.ask(queries).labels == truth).mean() for one in curators]))


def summarise(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return for each case the means over the splits, in percent, and how the two differ."""
    rows = []
    for i, case in enumerate(outcomes[0].found.forecast.cases):
        forecast = np.array([one.found.forecast.cases[i].accuracy for one in outcomes])
        sd = np.array([one.found.forecast.cases[i].sd for one in outcomes])
        deployed = np.array([one.deployed[i] for one in outcomes])
        difference = float((deployed - forecast).mean() / sd.mean())
        rows.append(
            {
                "decode": case.decode,
                "step_budget": case.step_budget,
                "forecast": round(100 * float(forecast.mean()), 2),
                "sd": round(100 * float(sd.mean()), 2),
                "deployed": round(100 * float(deployed.mean()), 2),
                "difference_in_sd": round(difference, 2),
            }
        )
    return sorted(rows, key=lambda row: DECODERS.index(row["decode"]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", choices=DATA)
    parser.add_argument("--learner", choices=learner_names(), help="(default: one that suits the data)")
    parser.add_argument("--splits", type=int, default=1, help="random splits to average over (default: 1)")
    parser.add_argument(
        "--jobs", type=int, default=-1, help="models trained at a time (default: one per core)"
    )
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    options = parser.parse_args()
    learner = options.learner or DATA[options.dataset].learner
    outcomes = [compare(options.dataset, learner, i, options.jobs) for i in range(options.splits)]
    forecasts = [one.found.forecast for one in outcomes]
    about = {
        "records": outcomes[0].found.records,
        "unprotected": float(np.mean([one.unprotected.accuracy for one in forecasts])),
        "half": float(np.mean([one.half.accuracy for one in forecasts])),
        "majority": float(np.mean([one.majority for one in forecasts])),
        "contested": float(np.mean([one.contested for one in forecasts])),
        "contested_deployed": float(np.mean([one.contested for one in outcomes])),
    }
    rows = summarise(outcomes)
    if options.json:
        print(json.dumps({"dataset": options.dataset, "learner": learner, **about, "cases": rows}, indent=2))
        return
    print(
        f"{options.dataset}: {about['records']:,} records, {defaults.MODELS} x {learner}, splits: {options.splits}"
    )
    print(
        "unprotected {unprotected:.1%}, on half {half:.1%}, most frequent class {majority:.1%}".format(
            **about
        )
    )
    print(
        "models differ on {contested:.1%} of held-out records, on {contested_deployed:.1%} of queries\n".format(
            **about
        )
    )
    print("decoder  step budget   forecast     sd   deployed   difference in sd")
    for row in rows:
        step = f"2^{np.log2(row['step_budget']):.0f}"
        print(
            f"{row['decode']:<8} {step:>11} {row['forecast']:>8.2f} % {row['sd']:>6.2f} {row['deployed']:>8.2f} % "
            f"{row['difference_in_sd']:>18.2f}"
        )


if __name__ == "__main__":
    main()
