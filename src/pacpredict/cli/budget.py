"""The budget on the command line, as the planner takes it."""

from argparse import ArgumentParser, Namespace
from typing import Any

from pacpredict import defaults
from pacpredict.cli.numbers import count, odds_limit, real
from pacpredict.core.roc import DEFAULT_FPR


def add_budget_arguments(parser: ArgumentParser) -> None:
    about = parser.add_argument_group(
        "budget",
        "At most two of --queries, --step-budget and a target (--success, --tpr or --total-budget), as for\n"
        "`pacpredict plan`, which words what they promise. By default a million queries at 2^-32 nats each.",
    )
    about.add_argument(
        "--queries", type=count, metavar="T", help="answers on which models disagree (default: 1e6)"
    )
    target = about.add_mutually_exclusive_group()
    target.add_argument(
        "--success",
        type=real,
        metavar="P",
        help="highest success rate to allow attacks on membership, such as 0.55",
    )
    target.add_argument(
        "--tpr", type=real, metavar="R", help="highest rate of true positives to allow them, such as 0.01"
    )
    target.add_argument("--total-budget", type=real, metavar="NATS", help="in all (default: 1e6 x 2^-32)")
    about.add_argument(
        "--fpr",
        type=real,
        default=DEFAULT_FPR,
        metavar="R",
        help="rate of false positives at which --tpr counts (default: 0.001)",
    )
    about.add_argument("--step-budget", type=real, metavar="NATS", help="for one answer (default: 2^-32)")
    about.add_argument(
        "--charging", choices=("adaptive", "flat"), default=defaults.CHARGING, help="(default: adaptive)"
    )
    about.add_argument(
        "--when-exhausted",
        choices=("halt", "unanimous", "belief"),
        default=defaults.WHEN_EXHAUSTED,
        help="what becomes of answers when the total is spent: none, or where models agree, or also from the belief, "
        "without the secret (default: halt)",
    )
    about.add_argument(
        "--odds-limit",
        type=odds_limit,
        default="auto",
        metavar="EPS",
        help="how far answers may move the log-odds of any statement about the training set, in every history; or "
        f"none (default: auto, what `plan` proposes for the total; {defaults.ODDS_LIMIT:g} for the default one)",
    )


def planned_recipe(arguments: Namespace, seed: int) -> Any:
    from pacpredict.mechanism.planned_budget import plan_budget  # noqa: PLC0415
    from pacpredict.training.recipe import Recipe, membership_prior  # noqa: PLC0415

    budget = plan_budget(
        queries=arguments.queries,
        success=arguments.success,
        tpr=arguments.tpr,
        fpr=arguments.fpr,
        total=arguments.total_budget,
        step=arguments.step_budget,
        prior=membership_prior(arguments.rate, arguments.models),
        charging=arguments.charging,
        when_exhausted=arguments.when_exhausted,
        odds_limit=arguments.odds_limit,
        noise=arguments.noise,
    )
    how = arguments.construction, arguments.rate, arguments.decode, arguments.votes
    return Recipe(seed, budget, arguments.models, *how)
