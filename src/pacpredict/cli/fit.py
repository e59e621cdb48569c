"""`fit` makes an artifact from a table, `verify` trains some of its models again."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pacpredict.cli.command import Command
from pacpredict.cli.numbers import count, real
from pacpredict.cli.options import add_artifact, add_jobs, add_json, add_missing, add_trust
from pacpredict.cli.progress import progress_bar
from pacpredict.exceptions import InvalidInput

# Known without importing scikit-learn, so that help is instant; a test compares them with the registry.
LEARNERS = (
    *("xgboost", "logistic", "linear-svc", "perceptron", "ridge", "sgd"),
    *("random-forest", "hist-gradient-boosting", "extra-trees", "decision-tree"),
)


def _add_fit_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "table", type=Path, help="training data: CSV (also .gz) or Parquet, one record per row"
    )
    parser.add_argument("--target", required=True, metavar="COLUMN", help="the column to predict")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the artifact to make")
    parser.add_argument("--learner", choices=LEARNERS, default="xgboost", help="(default: xgboost)")
    parser.add_argument(
        "--tune",
        nargs="?",
        choices=("none", "halving", "full"),
        const="halving",
        default="none",
        help="search XGBoost's settings on each subset: successive halving, or the full grid of 1,458",
    )
    add_missing(parser)
    parser.add_argument(
        "--unknown",
        choices=("refuse", "missing"),
        default="refuse",
        help="queries with values that training never saw: refuse them (default), or take the values as missing",
    )
    add_jobs(parser)
    parser.add_argument("--backend", metavar="NAME", help="joblib's backend (default: processes)")
    parser.add_argument("--seed", type=count, help="makes subsets and models repeatable; never the secret")
    _add_recipe_arguments(parser)
    add_json(parser)


def _add_recipe_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--models", type=count, default=128, metavar="M", help="subsets and models (default: 128)"
    )
    parser.add_argument(
        "--construction",
        choices=("balanced", "half-partitions"),
        default="balanced",
        help="(default: balanced)",
    )
    parser.add_argument(
        "--rate", type=real, default=0.5, help="share of subsets that a record is in (default: 1/2)"
    )
    parser.add_argument(
        "--step-budget", type=real, default=2.0**-32, metavar="NATS", help="per answer (default: 2^-32)"
    )
    parser.add_argument(
        "--total-budget",
        type=real,
        metavar="NATS",
        help="in all (default: what matches the membership guarantee of (1, 1e-5)-DP)",
    )
    parser.add_argument(
        "--decode", choices=("argmax", "map"), default="argmax", help="(default: argmax, the paper's)"
    )
    parser.add_argument(
        "--charging", choices=("adaptive", "flat"), default="adaptive", help="(default: adaptive)"
    )
    parser.add_argument(
        "--when-exhausted", choices=("halt", "unanimous"), default="halt", help="(default: halt)"
    )


def _run_fit(arguments: Namespace) -> None:
    from pacpredict.cli.show import print_artifact  # noqa: PLC0415  # NumPy and scikit-learn take time to import
    from pacpredict.curator import fit_deployment  # noqa: PLC0415
    from pacpredict.ensemble.fit import settle_seed  # noqa: PLC0415
    from pacpredict.ensemble.learners.registry import learner_named  # noqa: PLC0415

    learner = learner_named(arguments.learner, tune=arguments.tune)
    recipe = _recipe(arguments, settle_seed(arguments.out, arguments.seed))
    source = {
        "path": str(arguments.table.resolve()),
        "target": arguments.target,
        "missing": arguments.missing,
        "unknown": arguments.unknown,
    }
    pool = _read_pool(source)
    with saying_how_to_go_on(), progress_bar("models") as progress:
        fit_deployment(
            arguments.out,
            pool,
            learner,
            recipe,
            source=source,
            n_jobs=arguments.jobs,
            backend=arguments.backend,
            progress=progress,
        )
    print_artifact(arguments.out, as_json=arguments.json)


@contextmanager
def saying_how_to_go_on() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        print("interrupted; run the same command again to go on from here", file=sys.stderr)
        raise


def _recipe(arguments: Namespace, seed: int) -> Any:
    from pacpredict.ensemble.recipe import Recipe, default_total  # noqa: PLC0415
    from pacpredict.mechanism.budget import Budget  # noqa: PLC0415

    total = default_total() if arguments.total_budget is None else arguments.total_budget
    budget = Budget(arguments.step_budget, total, arguments.charging, arguments.when_exhausted)
    return Recipe(seed, budget, arguments.models, arguments.construction, arguments.rate, arguments.decode)


def _read_pool(source: dict[str, Any]) -> Any:
    from pacpredict.ensemble.pool import Pool  # noqa: PLC0415
    from pacpredict.ensemble.tables.read import read_table  # noqa: PLC0415

    table = read_table(source["path"], missing=source["missing"])
    return Pool.of_frame(table, source["target"], source["unknown"])


def _add_verify_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    parser.add_argument(
        "--models", type=count, default=3, metavar="N", help="how many to train again (default: 3)"
    )
    parser.add_argument(
        "--data", type=Path, metavar="TABLE", help="the training data, if it is elsewhere now"
    )
    add_jobs(parser)
    add_trust(parser)
    add_json(parser)


def _run_verify(arguments: Namespace) -> None:
    from pacpredict.cli.as_json import print_json  # noqa: PLC0415
    from pacpredict.ensemble.artifact.artifact import Artifact  # noqa: PLC0415
    from pacpredict.ensemble.artifact.verify import verify_models  # noqa: PLC0415

    artifact = Artifact.open(arguments.artifact, trust=arguments.trust)
    source = artifact.manifest.get("source")
    if source is None:
        raise InvalidInput("this artifact was fitted in Python and does not know its data: verify it there")
    if arguments.data is not None:
        source = {**source, "path": str(arguments.data)}
    pool = _read_pool(source)
    with progress_bar("models") as progress:
        checked = verify_models(artifact, pool, arguments.models, n_jobs=arguments.jobs, progress=progress)
    if arguments.json:
        print_json({"models_checked": len(checked), "models_identical": len(checked)})
    else:
        print(
            f"all files are as they were written; {len(checked)} models trained again are identical to the byte"
        )


FIT = Command(
    name="fit",
    summary="train m models on random halves of a table and make an artifact",
    description="Train models on random halves of the records, draw the secret one, and write an artifact that\n"
    "answers queries. Interrupted, the same command trains only what is missing.",
    example="pacpredict fit adult.csv --target income --learner xgboost --tune --out census.pac",
    add_arguments=_add_fit_arguments,
    run=_run_fit,
)

VERIFY = Command(
    name="verify",
    summary="check an artifact's files and train some of its models again",
    description="Check every file, then train some models again from the same data and compare them byte by byte.",
    example="pacpredict verify census.pac --models 3",
    add_arguments=_add_verify_arguments,
    run=_run_verify,
)
