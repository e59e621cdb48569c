"""`fit` makes an artifact from a table, `verify` trains some of its models again."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from pacpredict.cli.as_json import print_json
from pacpredict.cli.budget import add_budget_arguments, planned_recipe
from pacpredict.cli.columns import print_survey, print_warnings
from pacpredict.cli.command import Command
from pacpredict.cli.data import (
    add_data_arguments,
    read_pool_and_warnings,
    read_pool_of,
    read_training,
    read_with_warnings,
    table_options,
)
from pacpredict.cli.heads import compute_features, show_records
from pacpredict.cli.learner import add_learner_arguments, choose_learner, kinds_taken, learners_named
from pacpredict.cli.numbers import count, real
from pacpredict.cli.options import (
    add_address,
    add_artifact,
    add_backend,
    add_decode,
    add_jobs,
    add_json,
    add_subsets,
    add_trust,
    add_votes,
)
from pacpredict.cli.output import check_new_folder
from pacpredict.cli.progress import progress_bar, saying_how_to_go_on
from pacpredict.exceptions import InvalidInput, InvalidTable
from pacpredict.files import sha256_of


def _add_fit_arguments(parser: ArgumentParser) -> None:
    add_data_arguments(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=Path, metavar="DIR", help="the artifact to make")
    what.add_argument(
        "--dry-run", action="store_true", help="only show what each column is, and what to think about"
    )
    add_learner_arguments(parser)
    add_jobs(parser)
    add_backend(parser)
    add_address(parser)
    parser.add_argument(
        "--cpus-per-model", type=real, default=1.0, metavar="N", help="of a node of the cluster (default: 1)"
    )
    parser.add_argument(
        "--gpus-per-model", type=real, default=0.0, metavar="N", help="may be a fraction (default: 0)"
    )
    parser.add_argument(
        "--save-every",
        type=real,
        default=60.0,
        metavar="SECONDS",
        help="how often a network in training is written down, to go on from there (default: 60)",
    )
    parser.add_argument("--seed", type=count, help="makes subsets and models repeatable; never the secret")
    add_subsets(parser)
    add_decode(parser)
    add_votes(parser)
    add_budget_arguments(parser)
    add_json(parser)


def _run_fit(arguments: Namespace) -> None:
    from pacpredict.artifact.make import settle_seed  # noqa: PLC0415
    from pacpredict.cli.show import print_artifact  # noqa: PLC0415  # NumPy and scikit-learn take time to import
    from pacpredict.deployment import Deployment  # noqa: PLC0415
    from pacpredict.kernels import compile_once  # noqa: PLC0415
    from pacpredict.training.train import check_training  # noqa: PLC0415

    options, names = table_options(arguments), learners_named(arguments)
    kinds = kinds_taken(arguments, names)
    if arguments.dry_run:
        _show_records(arguments, options, kinds)
        return
    check_new_folder(arguments.out)
    backend = _backend(arguments)
    recipe = planned_recipe(arguments, settle_seed(arguments.out, arguments.seed))
    pool = read_with_warnings(arguments.table, options, kinds)
    source = {**_whereabouts(arguments.table), **options.to_json()}
    print_warnings(_beside(arguments.out, pool, source))
    with saying_how_to_go_on():
        learner = choose_learner(arguments, names, pool, recipe, backend)
    check_training(learner, pool, arguments.jobs, backend)  # features can take hours
    with saying_how_to_go_on():
        compute_features(learner, pool)
    with saying_how_to_go_on(), progress_bar("models") as progress:
        Deployment.fit(
            arguments.out,
            pool,
            learner,
            recipe,
            source=source,
            n_jobs=arguments.jobs,
            backend=backend,
            progress=progress,
            seconds_between_states=arguments.save_every,
        ).close()
    compile_once()  # now, so that the first query does not wait for it
    print_artifact(arguments.out, as_json=arguments.json)


def _whereabouts(table: Path) -> dict[str, str]:
    """Return where the data is and, if that is one file, a digest of it: all of it, whatever is learned from it."""
    path = table.resolve()
    return {"path": str(path), **({} if path.is_dir() else {"sha256": sha256_of(path)})}


def _beside(path: Path, pool: Any, source: dict[str, Any]) -> list[str]:
    """Say what further deployments over the same records mean, if there are some in the same folder."""
    from pacpredict.artifact.workshop import deployments_beside  # noqa: PLC0415

    names = deployments_beside(path, pool, source)
    if not names:
        return []
    n = len(names) + 1
    warning = (
        f"the same folder has {', '.join(names)} of the same records: with {n} deployments a record is in at least one "
        f"training set with probability {1 - 0.5**n:.4g}, and their budgets add up; other folders are not looked at"
    )
    return [warning]


def _backend(arguments: Namespace) -> Any:
    """Return where models are trained: a cluster, or what joblib calls a backend."""
    if arguments.backend != "ray":
        if arguments.address is not None or arguments.gpus_per_model:
            raise InvalidInput(
                "--address and --gpus-per-model are about a Ray cluster: say --backend ray, too"
            )
        return arguments.backend
    from pacpredict.training.cluster import Cluster  # noqa: PLC0415  # takes time to import

    return Cluster(arguments.address, arguments.cpus_per_model, arguments.gpus_per_model)


def _show_records(arguments: Namespace, options: Any, kinds: Any) -> None:
    """Show what a fit would make of the records; what it would refuse is an error."""
    from pacpredict.tables.survey import survey  # noqa: PLC0415
    from pacpredict.training.pool import check_table  # noqa: PLC0415

    if "table" not in kinds:
        pool, warnings = read_pool_and_warnings(arguments.table, options, kinds)
        show_records(arguments.table.name, pool, warnings, as_json=arguments.json)
        return
    records, readings = read_training(arguments.table, options, kinds)
    found = survey(check_table(records), options, readings)
    if arguments.json:
        print_json(found.to_json())
    else:
        print_survey(arguments.table.name, found)
    sys.stdout.flush()  # so that the error comes after it, also where both go to one file
    if found.problems:
        raise InvalidTable("; ".join(found.problems))


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
    from pacpredict.artifact.artifact import Artifact  # noqa: PLC0415
    from pacpredict.artifact.verify import verify_models  # noqa: PLC0415

    artifact = Artifact.open(arguments.artifact, trust=arguments.trust)
    pool = read_pool_of(artifact, arguments.data)
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
