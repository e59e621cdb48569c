"""Forecasts as tables and sentences."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from pacpredict.cli.columns import print_points
from pacpredict.cli.table import print_table
from pacpredict.show import percent

if TYPE_CHECKING:
    from pacpredict.evaluation.advice import Advice
    from pacpredict.evaluation.evaluate import Evaluation
    from pacpredict.evaluation.score import Score

_BAR_WIDTH = 10
# More classes than these make a table that nobody reads; --json has them all.
_MOST_CLASSES_SHOWN = 8


def print_evaluation(title: str, evaluation: "Evaluation", total: float) -> None:
    """Print what answers are compared with, and private answers by every decoder over the budgets."""
    found = evaluation.forecast
    whose = f" of {evaluation.units:,} persons" if evaluation.unit == "person" else ""
    models = f"{evaluation.models} x {evaluation.learner}"
    print_table(
        f"{title}: {evaluation.records:,} records{whose}, {models}, {evaluation.folds} folds",
        ("", "accuracy", "balanced"),
        [
            ("one unprotected model", *_both(found.unprotected)),
            ("a model on half of the records", *_both(found.half)),
            ("always the most frequent class", percent(found.majority), ""),
            ("models disagree on", percent(found.contested), ""),
        ],
    )
    print()
    values = [found.majority, found.unprotected.accuracy, *(one.accuracy for one in found.cases)]
    low, high = min(values), max(values)
    rows = [
        (
            case.decode,
            power_of_two(case.step_budget),
            paid_answers(total, case.step_budget),
            *_both(case.score),
            f"{100 * case.sd:.1f}",
            _bar(case.accuracy, low, high),
        )
        for case in sorted(found.cases, key=lambda one: one.decode)
    ]
    columns = (
        "private",
        "step budget",
        "pays for",
        "accuracy",
        "balanced",
        "sd",
        f"{100 * low:.0f} to {100 * high:.0f}%",
    )
    fair = "; the noise of argmax and map is fair" if evaluation.noise == "fair" else ""
    print_table("", columns, rows, f"paid for by {total:.6g} nats: answers on which models disagree{fair}")


def print_advice(evaluations: Sequence["Evaluation"], advice: "Advice") -> None:
    """Print what is recommended, what is lost and to what, how answers err, and what to think about."""
    best = next(one for one in evaluations if one.learner == advice.learner)
    found, case = best.forecast, best.forecast.case(advice.decode, advice.step_budget)
    among = " and ".join(one.learner for one in evaluations)
    recommended = (
        f"recommended at {power_of_two(advice.step_budget)}, among {among}: {advice.learner} with {advice.decode}, "
        f"{percent(advice.accuracy)} right (sd {100 * advice.sd:.1f})"
    )
    lost = (
        f"compared with an unprotected model, {_points(advice.half_data)} because each model has half of the records, "
        f"and {_points(advice.noise)} where models disagree"
    )
    if found.contested:
        private, alone = percent(case.where_contested), percent(found.half_where_contested)
        lost += f": {private} of private answers are right there, {alone} of a model's"
    if len(best.labels) <= _MOST_CLASSES_SHOWN:
        _print_confusion(best.labels, case.score)
        print()
    print_points([recommended, lost, *advice.warnings])


def power_of_two(step: float) -> str:
    exponent = math.log2(step)
    return f"2^{exponent:.0f}" if exponent.is_integer() else f"{step:.3g}"


def paid_answers(total: float, step: float) -> str:
    answers = math.floor(Fraction(total) / Fraction(step))
    return f"{answers:,}" if answers else "none"


def _both(score: "Score") -> tuple[str, str]:
    return percent(score.accuracy), percent(score.balanced_accuracy)


def _points(loss: float) -> str:
    return f"{100 * abs(loss):.1f} points are {'lost' if loss >= 0 else 'gained'}"


def _bar(value: float, low: float, high: float) -> str:
    reached = round(_BAR_WIDTH * (value - low) / (high - low)) if high > low else _BAR_WIDTH
    return "#" * reached + "." * (_BAR_WIDTH - reached)


def _print_confusion(labels: Sequence[str], score: "Score") -> None:
    shares = score.confusion / score.confusion.sum(axis=1, keepdims=True).clip(min=1)
    rows = [(label, *map(percent, row)) for label, row in zip(labels, shares.tolist(), strict=True)]
    print_table("Answers (columns) by true class", ("", *labels), rows)
