"""A planner that answers as one types. Every number is the library's."""

import math
from collections.abc import Mapping

from pacpredict.core.plan import plan
from pacpredict.core.roc import DEFAULT_FPR
from pacpredict.exceptions import InvalidPlan
from pacpredict.mechanism.budget import Budget
from pacpredict.pages.document import facts, section
from pacpredict.pages.markup import Child, Markup, tag
from pacpredict.pages.words import power
from pacpredict.show import factor_up, percent_up
from pacpredict.written import count, real

# More answers than anybody gives, and digits than anybody reads.
_MOST_QUERIES = 10**18

# Names of fields are those of `plan`.
_FIELDS = {
    "queries": ("queries", "charged answers, as 1e6"),
    "success": ("average success", "at most, as 51.08%"),
    "tpr": (f"true positives at {percent_up(DEFAULT_FPR)}", "at most, as 0.3%"),
    "step_budget": ("one answer", "nats, as 2^-32"),
}


def render_planner(budget: Budget, prior: float) -> Markup:
    """Return the form, filled in with what this deployment was planned with."""
    given = {"queries": str(budget.total_steps), "step_budget": _written(budget.step)}
    fields = [
        tag(
            "div",
            tag("label", name, " ", tag("span", hint, class_="faint"), for_=f"plan-{field}"),
            tag("input", id=f"plan-{field}", name=field, value=given.get(field, ""), autocomplete="off"),
        )
        for field, (name, hint) in _FIELDS.items()
    ]
    return section(
        "Plan",
        tag(
            "p",
            "Fill in two: how many answers, one of the two promises, what one answer costs. The rest is found.",
        ),
        tag(
            "form",
            tag("div", fields, class_="fields"),
            tag("output", render_plan(given, prior), id="plan", aria_live="polite"),
            id="plan-form",
            class_="card",
        ),
    )


def _written(step: float) -> str:
    """Write a step as it is typed: exactly, and as a power of two if it is one."""
    exponent = math.log2(step)
    return f"2^{exponent:g}" if exponent.is_integer() else repr(step)


def render_plan(given: Mapping[str, str], prior: float) -> Markup:
    """Return what follows from the fields that are not empty; InvalidInput says what is wrong with them."""
    texts = {field: given[field] for field in _FIELDS if given.get(field, "").strip()}
    numbers = {field: count(text) if field == "queries" else real(text) for field, text in texts.items()}
    if numbers.get("queries", 0) > _MOST_QUERIES:
        raise InvalidPlan(f"queries must be at most {_MOST_QUERIES:,}")
    made = plan(**numbers, prior=prior)
    rows: list[tuple[str, Child]] = [
        (
            "charged answers",
            f"{made.queries:,}" if made.queries <= _MOST_QUERIES else f"{float(made.queries):.3g}",
        ),
        ("one answer", power(made.step_budget)),
        ("all answers", f"{made.total_budget_nats:.6g} nats"),
        (
            "average success, at most",
            f"{percent_up(made.success)} (a guess without any answer: {percent_up(made.prior)})",
        ),
        ("proposed odds limit", f"{made.odds_limit:g}, a factor of {factor_up(made.odds_limit)}"),
        (f"true positives at {percent_up(made.fpr)}, at most", percent_up(made.limited_tpr)),
        ("without an odds limit", percent_up(made.tpr)),
    ]
    return facts(rows)
