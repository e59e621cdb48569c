"""`plan`: how many queries, how private, at which budget. `bounds`: what a budget allows an attack."""

from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from pacpredict import defaults
from pacpredict.cli.as_json import print_json
from pacpredict.cli.attacks import (
    add_attack_options,
    chosen_prior,
    priors_of,
    reported_membership_prior,
)
from pacpredict.cli.command import Command
from pacpredict.cli.numbers import count, real
from pacpredict.cli.table import at_most, nats, percent, percent_at_most, print_attacks, print_table
from pacpredict.core.attacks import QUESTIONS, as_membership_prior, matching_epsilon, success_after
from pacpredict.core.bounds import DEFAULT_DELTA, advantage_bound, success_bound
from pacpredict.core.plan import Plan, plan
from pacpredict.core.roc import DEFAULT_FPR, tpr_bound, tpr_for_epsilon


def _add_plan_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--queries", type=count, metavar="T", help="answers to be given, such as 1e6")
    target = parser.add_mutually_exclusive_group()
    target.add_argument(
        "--success", type=real, metavar="P", help="highest success rate to allow, such as 0.5108"
    )
    target.add_argument(
        "--epsilon",
        type=real,
        metavar="EPS",
        help="match (EPS, delta)-DP, for the average success on membership",
    )
    target.add_argument(
        "--tpr", type=real, metavar="R", help="highest rate of true positives to allow, such as 0.01"
    )
    target.add_argument("--total-budget", type=real, metavar="NATS", help="nats for all answers")
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
        "--fpr",
        type=real,
        default=DEFAULT_FPR,
        metavar="R",
        help="rate of false positives at which to count true ones (default: 0.001)",
    )
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
        tpr=arguments.tpr,
        total_budget=arguments.total_budget,
        step_budget=arguments.step_budget,
        prior=chosen_prior(arguments),
        fpr=arguments.fpr,
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
        (f"found at {percent(made.fpr)} false alarms", percent_at_most(made.tpr)),
        ("  with the default limit on odds", percent_at_most(min(made.tpr, _tpr_of_limit(made.fpr)))),
        ("matching epsilon, average success", f"{at_most(made.epsilon)} (delta {delta:g})"),
        ("found under DP of that epsilon", percent_at_most(made.epsilon_tpr)),
    ]
    print_table("Plan", (), rows)


def _tpr_of_limit(fpr: float) -> float:
    """Return what is found at most because nobody's odds move farther than by default."""
    return tpr_for_epsilon(defaults.ODDS_LIMIT, fpr, defaults.ODDS_DELTA)


def _run_bounds(arguments: Namespace) -> None:
    budget, delta, fpr = arguments.budget_nats, arguments.delta, arguments.fpr
    member = as_membership_prior(reported_membership_prior(arguments))
    epsilon = matching_epsilon(budget, member, delta)
    if not arguments.json:
        attacks = [
            (asked, prior, success_after(budget, prior)) for asked, prior in _rows_of_bounds(arguments)
        ]
        print_attacks(f"What {nats(budget)} allow", attacks)
        _print_comparison(budget, member, epsilon, delta, fpr)
        return
    prior = chosen_prior(arguments)
    print_json(
        {
            "budget_nats": budget,
            "prior": prior,
            "success": success_after(budget, prior),
            "advantage": 0.0 if prior == 1 else advantage_bound(budget, prior),
            "epsilon": epsilon,
            "delta": delta,
            "fpr": fpr,
            "tpr": 1.0 if prior == 1 else tpr_bound(budget, fpr, prior),
            "epsilon_tpr": tpr_for_epsilon(epsilon, fpr, delta),
        }
    )


def _rows_of_bounds(arguments: Namespace) -> list[tuple[str, float]]:
    """Return the question and the prior of the attack that was asked for, or of all."""
    if arguments.prior is not None:
        return [("any attack with this prior", chosen_prior(arguments))]
    priors = priors_of(arguments)
    wanted = QUESTIONS if arguments.attack is None else [arguments.attack]
    return [(priors.question(attack), priors.by_attack[attack]) for attack in wanted]


def _print_comparison(budget: float, prior: float, epsilon: float, delta: float, fpr: float) -> None:
    """Set the budget beside DP of the same average success, where averages look and where auditors do."""
    success = success_bound(budget, prior)
    guess = max(prior, 1 - prior)
    under_dp = max(
        success, guess + (1 - guess) * delta
    )  # what delta alone allows may be more than the budget does
    dp = f"({at_most(epsilon)}, {delta:g})-DP"
    rows = [
        ("this budget", percent_at_most(success), percent_at_most(tpr_bound(budget, fpr, prior))),
        (dp, percent_at_most(under_dp), percent_at_most(tpr_for_epsilon(epsilon, fpr, delta))),
    ]
    columns = "", "average success", f"found at {percent(fpr)} false alarms"
    print()
    print_table("Membership, and the DP that matches for average success", columns, rows)


PLAN = Command(
    name="plan",
    summary="queries, target, step budget: from any two the third",
    description="From any two of --queries, --step-budget and a target (--success, --epsilon, --tpr or\n"
    "--total-budget) find the third. Queries and budgets are rounded down, so the target is kept.",
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
