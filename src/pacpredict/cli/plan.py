"""`plan`: how many queries, how private, at which budget. `bounds`: what a budget allows an attack."""

import math
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pacpredict.cli.as_json import print_json
from pacpredict.cli.attacks import (
    add_attack_options,
    chosen_prior,
    priors_of,
    reported_membership_prior,
)
from pacpredict.cli.columns import print_points
from pacpredict.cli.command import Command
from pacpredict.cli.numbers import count, real
from pacpredict.cli.promise import print_promise
from pacpredict.cli.table import at_most, nats, percent, percent_at_most, print_attacks, print_table
from pacpredict.core.attacks import QUESTIONS, as_membership_prior, success_after
from pacpredict.core.bounds import DEFAULT_DELTA, advantage_bound, success_bound
from pacpredict.core.matching import Match, match_gaussian, match_generic
from pacpredict.core.plan import Plan, plan
from pacpredict.core.roc import DEFAULT_FPR, tpr_bound
from pacpredict.promise import Promise, explain_priors, on_odds_limit, promise_of
from pacpredict.show import factor_up


def _add_plan_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--queries", type=count, metavar="T", help="answers to be given, such as 1e6")
    target = parser.add_mutually_exclusive_group()
    target.add_argument(
        "--success", type=real, metavar="P", help="highest success rate to allow, such as 0.5108"
    )
    target.add_argument(
        "--tpr",
        type=real,
        metavar="R",
        help="highest true-positive rate to allow, by nats alone, such as 0.01",
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
    parser.add_argument(
        "--delta",
        type=real,
        default=DEFAULT_DELTA,
        metavar="D",
        help="delta of the differential privacy to compare with (default: 1e-5)",
    )


def _add_common_arguments(parser: ArgumentParser) -> None:
    add_attack_options(parser)
    parser.add_argument(
        "--fpr",
        type=real,
        default=DEFAULT_FPR,
        metavar="R",
        help="false-positive rate at which to count true positives (default: 0.001)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object; null means no bound")


def _run_plan(arguments: Namespace) -> None:
    made = plan(
        queries=arguments.queries,
        success=arguments.success,
        tpr=arguments.tpr,
        total_budget=arguments.total_budget,
        step_budget=arguments.step_budget,
        prior=chosen_prior(arguments),
        fpr=arguments.fpr,
    )
    if arguments.json:
        print_json(asdict(made))
    else:
        _print_plan(made, about_membership=arguments.attack in (None, "membership"))


def _print_plan(made: Plan, *, about_membership: bool) -> None:
    rows = [
        ("queries", f"{made.queries:,}"),
        ("step budget", nats(made.step_budget)),
        ("total budget", nats(made.total_budget_nats)),
        ("success before any answer", percent_at_most(made.prior)),
        ("success after all answers, at most", percent_at_most(made.success)),
        ("proposed odds limit", _odds_limit(made)),
        (f"true positives at {percent(made.fpr)}, at most", percent_at_most(made.limited_tpr)),
        ("  without an odds limit", percent_at_most(made.tpr)),
    ]
    print_table("Plan", (), rows)
    if made.odds_limit == math.inf:
        return
    if about_membership and made.prior >= 0.5:
        print()
        print_promise(_promise(made))
    print()
    print_points(on_odds_limit(made.total_budget_nats, made.odds_limit))


def _odds_limit(made: Plan) -> str:
    limit = made.odds_limit
    return "none" if limit == math.inf else f"{limit:g} (a factor of {factor_up(limit)})"


def _promise(made: Plan) -> Promise:
    """Word what a deployment with this plan and the proposed limit would promise, whatever its decoder."""
    return promise_of(
        unit="person",
        prior=made.prior,
        success=made.success,
        fpr=made.fpr,
        tpr=made.limited_tpr,
        odds_limit=made.odds_limit,
        odds_delta=None,
    )


def _run_bounds(arguments: Namespace) -> None:
    budget, fpr = arguments.budget_nats, arguments.fpr
    member = as_membership_prior(reported_membership_prior(arguments))
    matches = {
        name: match(budget, member, delta=arguments.delta, fpr=fpr)
        for name, match in (("generic", match_generic), ("gaussian", match_gaussian))
    }
    if not arguments.json:
        _print_attacks(arguments)
        _print_comparison(budget, member, fpr, matches)
        return
    prior = chosen_prior(arguments)
    print_json(
        {
            "budget_nats": budget,
            "prior": prior,
            "success": success_after(budget, prior),
            "advantage": 0.0 if prior == 1 else advantage_bound(budget, prior),
            "fpr": fpr,
            "tpr": 1.0 if prior == 1 else tpr_bound(budget, fpr, prior),
            "matching": {name: match._asdict() for name, match in matches.items()},
        }
    )


def _print_attacks(arguments: Namespace) -> None:
    """Print the bound of the attack that was asked for, or of all, with the reasons of high priors."""
    budget, title = arguments.budget_nats, f"What {nats(arguments.budget_nats)} allow"
    if arguments.prior is not None:
        prior = chosen_prior(arguments)
        print_attacks(title, [("any attack with this prior", prior, success_after(budget, prior))])
        return
    priors = priors_of(arguments)
    bounds: dict[str, dict[str, Any]] = {
        attack: {
            "question": priors.question(attack),
            "prior": priors.by_attack[attack],
            "success": success_after(budget, priors.by_attack[attack]),
        }
        for attack in QUESTIONS
    }
    wanted = bounds.values() if arguments.attack is None else [bounds[arguments.attack]]
    print_attacks(title, [(one["question"], one["prior"], one["success"]) for one in wanted])
    if arguments.attack is None:
        print_points(explain_priors(bounds, priors.unit))


def _print_comparison(budget: float, prior: float, fpr: float, matches: Mapping[str, Match]) -> None:
    """Print the budget next to differential privacy of the same average success, translated in both ways."""
    names = {"generic": "generic formula", "gaussian": "Gaussian mechanism"}
    success, found = success_bound(budget, prior), tpr_bound(budget, fpr, prior)
    rows = [
        ("this budget", percent_at_most(success), percent_at_most(found)),
        *(
            (
                f"{names[name]}: ({at_most(match.epsilon)}, {match.delta:g})-DP",
                percent_at_most(match.success),
                percent_at_most(match.tpr),
            )
            for name, match in matches.items()
        ),
    ]
    print()
    print_table(
        "Membership, compared with differential privacy of the same average success",
        ("", "average success", f"TPR at {percent(fpr)} FPR"),
        rows,
        "Neither epsilon is a guarantee of a deployment, whose odds limit bounds the TPR.",
    )


PLAN = Command(
    name="plan",
    summary="queries, target, step budget: from any two the third",
    description="From any two of --queries, --step-budget and a target (--success, --tpr or --total-budget)\n"
    "find the third, propose the odds limit that goes with it, and word the promise. Queries and budgets are rounded\n"
    "down, so the target is kept.",
    example="pacpredict plan --queries 1e6 --success 0.5108",
    add_arguments=_add_plan_arguments,
    run=_run_plan,
)

BOUNDS = Command(
    name="bounds",
    summary="bound attack success for a given leakage",
    description="Show the highest success rate of attacks after so many nats were leaked, and which differential\n"
    "privacy has the same average success, by two translations.",
    example="pacpredict bounds --budget-nats 0.25",
    add_arguments=_add_bounds_arguments,
    run=_run_bounds,
)
