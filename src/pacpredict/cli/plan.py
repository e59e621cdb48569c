"""`plan`: how many queries, how private, at which budget. `bounds`: what a budget allows an attack."""

from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from pacpredict.cli.as_json import print_json
from pacpredict.cli.attacks import (
    DEFAULT_GROUP_SIZE,
    DEFAULT_MODELS,
    add_attack_options,
    chosen_prior,
    prior_of,
)
from pacpredict.cli.command import Command
from pacpredict.cli.numbers import count, real
from pacpredict.cli.table import BAR_LEGEND, at_most, bar, nats, percent_at_most, print_table
from pacpredict.core.bounds import DEFAULT_DELTA, advantage_bound, epsilon_for_success, success_bound
from pacpredict.core.plan import Plan, plan


def _add_plan_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--queries", type=count, metavar="T", help="answers to be given, such as 1e6")
    target = parser.add_mutually_exclusive_group()
    target.add_argument(
        "--success", type=real, metavar="P", help="highest success rate to allow, such as 0.5108"
    )
    target.add_argument(
        "--epsilon", type=real, metavar="EPS", help="match the membership guarantee of (EPS, delta)-DP"
    )
    parser.add_argument(
        "--step-budget", type=real, metavar="NATS", help="nats for one answer, such as 2**-32"
    )
    _add_common_arguments(parser)


def _add_bounds_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--budget-nats", type=real, metavar="NATS", required=True, help="nats leaked in total, such as 0.25"
    )
    _add_common_arguments(parser)


def _add_common_arguments(parser: ArgumentParser) -> None:
    add_attack_options(parser)
    parser.add_argument(
        "--delta",
        type=real,
        default=DEFAULT_DELTA,
        metavar="D",
        help="delta of the matching DP (default: 1e-5)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object; null means no bound")


def _run_plan(arguments: Namespace) -> None:
    made = plan(
        queries=arguments.queries,
        success=arguments.success,
        epsilon=arguments.epsilon,
        step_budget=arguments.step_budget,
        prior=chosen_prior(arguments),
        delta=arguments.delta,
    )
    if arguments.json:
        print_json(asdict(made))
    else:
        _print_plan(made, arguments.delta)


def _print_plan(made: Plan, delta: float) -> None:
    rows = [
        ("queries", f"{made.queries:,}"),
        ("step budget", nats(made.step_budget)),
        ("total budget", nats(made.total_budget_nats)),
        ("success before any answer", percent_at_most(made.prior)),
        ("success after all answers, at most", percent_at_most(made.success)),
        (f"matching epsilon (delta {delta:g})", at_most(made.epsilon)),
    ]
    print_table("Plan", (), rows)


def _run_bounds(arguments: Namespace) -> None:
    budget, delta = arguments.budget_nats, arguments.delta
    epsilon = epsilon_for_success(success_bound(budget), delta)
    if not arguments.json:
        _print_bounds(budget, _rows_of_bounds(arguments), epsilon, delta)
        return
    prior = chosen_prior(arguments)
    print_json(
        {
            "budget_nats": budget,
            "prior": prior,
            "success": success_bound(budget, prior),
            "advantage": advantage_bound(budget, prior),
            "epsilon": epsilon,
            "delta": delta,
        }
    )


def _rows_of_bounds(arguments: Namespace) -> list[tuple[str, float]]:
    """Return the attack that was asked for, or three that show how much their priors differ."""
    if arguments.attack is not None:
        return [(arguments.attack, chosen_prior(arguments))]
    if arguments.prior is not None:
        return [("any with this prior", chosen_prior(arguments))]
    models = DEFAULT_MODELS if arguments.models is None else arguments.models
    size = DEFAULT_GROUP_SIZE if arguments.group_size is None else arguments.group_size
    return [
        ("membership", prior_of("membership", models)),
        (f"group of {size}", prior_of("group", models, size)),
        (f"model, 1 of {models}", prior_of("model", models)),
    ]


def _print_bounds(budget: float, attacks: list[tuple[str, float]], epsilon: float, delta: float) -> None:
    rows = []
    for attack, prior in attacks:
        success, advantage = success_bound(budget, prior), advantage_bound(budget, prior)
        cells = percent_at_most(prior), percent_at_most(success), at_most(advantage), bar(prior, success)
        rows.append((attack, *cells))
    print_table(
        f"What {nats(budget)} allow",
        ("attack", "before", "at most", "advantage", "0 to 100 %"),
        rows,
        f"{BAR_LEGEND}\nmatching epsilon (delta {delta:g}) for membership: {at_most(epsilon)}",
    )


PLAN = Command(
    name="plan",
    summary="queries, target, step budget: from any two the third",
    description="From any two of --queries, a target (--success or --epsilon) and --step-budget find the third.\n"
    "Queries and budgets are rounded down, so the target is kept.",
    example="pacpredict plan --queries 1e6 --success 0.5108",
    add_arguments=_add_plan_arguments,
    run=_run_plan,
)

BOUNDS = Command(
    name="bounds",
    summary="how often attacks succeed after a leakage",
    description="Show the highest success rate of attacks after so many nats were leaked.",
    example="pacpredict bounds --budget-nats 0.25",
    add_arguments=_add_bounds_arguments,
    run=_run_bounds,
)
