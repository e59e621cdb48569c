"""`evaluate`: what a deployment would be worth, before there is one."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pacpredict.cli.as_json import print_json
from pacpredict.cli.budget import add_budget_arguments, planned_recipe
from pacpredict.cli.command import Command
from pacpredict.cli.data import add_data_arguments, read_with_warnings, table_options
from pacpredict.cli.forecasts import print_advice, print_evaluation
from pacpredict.cli.heads import keep_features
from pacpredict.cli.learner import (
    add_learner_arguments,
    candidates_of,
    kinds_taken,
    learners_named,
    params_for,
)
from pacpredict.cli.numbers import count, real
from pacpredict.cli.options import add_backend, add_decode, add_jobs, add_json, add_subsets, add_votes
from pacpredict.cli.progress import progress_bar

if TYPE_CHECKING:
    from pacpredict.evaluation.evaluate import Evaluation


def _add_arguments(parser: ArgumentParser) -> None:
    add_data_arguments(parser)
    add_learner_arguments(parser)
    add_subsets(parser)
    add_decode(parser)
    add_votes(parser)
    add_budget_arguments(parser)
    how = parser.add_argument_group("evaluation")
    how.add_argument(
        "--budgets",
        type=real,
        nargs="+",
        default=[],
        metavar="NATS",
        help="step budgets to compare with (default: 2^-4, 2^-8, 2^-12, 2^-16, 2^-24, 2^-32)",
    )
    how.add_argument(
        "--folds", type=count, default=5, metavar="K", help="parts that are held out in turn (default: 5)"
    )
    how.add_argument(
        "--trials",
        type=count,
        default=100,
        metavar="N",
        help="deployments simulated for each fold (default: 100)",
    )
    how.add_argument("--seed", type=count, default=0, help="decides folds, subsets and models (default: 0)")
    add_jobs(how)
    add_backend(how)
    how.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw accuracy against budget, as .png, .svg or .pdf"
    )
    add_json(how)


def _run(arguments: Namespace) -> None:
    from pacpredict.evaluation.advice import advise  # noqa: PLC0415  # takes time to import
    from pacpredict.evaluation.evaluate import STEP_BUDGETS  # noqa: PLC0415
    from pacpredict.evaluation.plot import check_plot, plot  # noqa: PLC0415
    from pacpredict.kernels import compile_once  # noqa: PLC0415

    if arguments.plot is not None:
        check_plot(arguments.plot)
    names, options = learners_named(arguments), table_options(arguments)
    recipe = planned_recipe(arguments, arguments.seed)
    step, total = recipe.budget.step, recipe.budget.total
    steps = sorted({step, *(arguments.budgets or STEP_BUDGETS)}, reverse=True)
    pool = read_with_warnings(arguments.table, options, kinds_taken(arguments, names))
    compile_once()
    found = _evaluate(arguments, names, pool, recipe, steps)
    advice = advise(found, step)
    if arguments.plot is not None:
        plot(found, arguments.plot)
    if arguments.json:
        best = next(one for one in found if one.learner == advice.learner)
        print_json({**best.to_json(), **advice.to_json(), "learners": [one.to_json() for one in found]})
        return
    for one in found:
        print_evaluation(arguments.table.name, one, total)
        print()
    print_advice(found, advice)


def _evaluate(
    arguments: Namespace, names: Sequence[str], pool: Any, recipe: Any, steps: Sequence[float]
) -> "list[Evaluation]":
    from pacpredict.evaluation.choose import choose  # noqa: PLC0415
    from pacpredict.evaluation.evaluate import evaluate_pool  # noqa: PLC0415

    found, params = [], params_for(arguments, pool)
    for name in names:
        candidates = candidates_of(arguments, [name], params, recipe.seed)
        keep_features(candidates[0], pool)  # which all of them have

        def choose_on(part: Any, among: Any = candidates) -> Any:
            """Choose on the records that models train on, as a fit would."""
            if len(among) == 1:
                return among[0]
            return choose(
                part, among, recipe, arguments.tune_for, n_jobs=arguments.jobs, backend=arguments.backend
            ).learner

        with progress_bar(f"models of {name}") as progress:
            found.append(
                evaluate_pool(
                    pool,
                    choose_on,
                    recipe,
                    steps,
                    name=name,
                    folds=arguments.folds,
                    trials=arguments.trials,
                    n_jobs=arguments.jobs,
                    backend=arguments.backend,
                    progress=progress,
                )
            )
    return found


EVALUATE = Command(
    name="evaluate",
    summary="measure what a deployment would be worth, before there is one",
    description="Hold out parts of the records in turn, train a deployment's models on the rest, and simulate private\n"
    "answers by every decoder and at several budgets. No secret is drawn and nothing is spent.",
    example="pacpredict evaluate adult.csv --target income --learner xgboost --learner logistic",
    add_arguments=_add_arguments,
    run=_run,
)
