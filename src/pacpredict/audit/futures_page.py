"""The part of an audit's page that is about membership: how often it is told, and who is found."""

from pacpredict.audit.cells import measured, moved, together
from pacpredict.audit.estimates import RATES
from pacpredict.audit.membership import Inference
from pacpredict.audit.run import Audit
from pacpredict.audit.words import show
from pacpredict.core.attacks import true_positives
from pacpredict.pages.document import figure, figures, legend, section
from pacpredict.pages.markup import Child, Markup, join, tag
from pacpredict.pages.svg import Point, Scale, Series, plot, ticks

_LEAST_RATE = 1e-5  # where the axes of a ROC curve begin
_STRATEGIES = {
    "random": "the pool's records at random",
    "once": "each record of the pool once",
    "contested": "the most contested records",
    "public": "public records",
}


def futures_section(audit: Audit) -> Markup:
    rows: list[list[Child]] = []
    for found in (*audit.inferences, audit.larger):
        last = found.looks[-1]
        rows.append(
            [
                _asked(audit, found),
                f"{last.queries:,}",
                f"{last.charged_nats:.3g}",
                measured(last.success),
                show(last.ceiling),
                moved(found.largest_spread),
            ]
        )
    table = figures(["what is asked", "questions", "nats charged", "told", "at most", "log-odds moved"], rows)
    return section(
        "Who was trained on? By everything that was answered",
        tag(
            "p",
            "Of every unit the attacker computes exactly how probably it was trained on, and guesses what is more "
            "probable. Only questions on which models differ count: all others tell nothing about that.",
        ),
        _keyed(_growth(audit.inferences[0]), "Within what is claimed, the pool's records at random."),
        _keyed(
            _growth(audit.larger),
            f"The same with a total of {audit.larger.looks[-1].charged_nats:.3g} nats and no limit on odds.",
        ),
        table,
    )


def _keyed(drawn: Markup, words: str) -> Markup:
    return figure(drawn, join(legend(("", "told, with its interval"), ("limit", "at most")), words))


def _asked(audit: Audit, found: Inference) -> str:
    return _STRATEGIES[found.strategy] + (", larger total" if found is audit.larger else "")


def _growth(found: Inference) -> Markup:
    looks = found.looks
    low = min(0.5, *(look.success.low for look in looks))
    high = max(max(look.ceiling, look.success.high) for look in looks)
    # More are wanted than are needed: between odd ends there may be room for half as many.
    marks = [(value, f"{100 * value:.4g} %") for value in ticks(low, high, 6)]
    x = Scale(
        0,
        looks[-1].queries,
        [(value, f"{value:,.0f}") for value in ticks(0, looks[-1].queries, 5)],
        name="questions on which models differ",
    )
    told = Series(
        "",
        [Point(look.queries, look.success.value) for look in looks],
        [(look.success.low, look.success.high) for look in looks],
    )
    ceiling = Series("limit", [Point(look.queries, look.ceiling) for look in looks])
    last = looks[-1]
    says = (
        f"Told in {show(last.success.value)} after {last.queries:,} questions, at most {show(last.ceiling)}"
    )
    return plot([told, ceiling], x, Scale(low, high, marks, name="guesses that are right"), says)


def found_section(audit: Audit) -> Markup:
    """Return who is found while few are accused: a curve with logarithmic axes, and the rates that auditors ask for."""
    found, unit = audit.larger, audit.about["unit"]
    total = found.looks[-1].charged_nats
    rates = [10 ** (-5 + i / 8) for i in range(41)]
    marks = [(10.0**-i, f"{10.0 ** (2 - i):g} %") for i in range(6)]
    x = Scale(_LEAST_RATE, 1.0, marks, log=True, name="accused, of those who were not trained on")
    y = Scale(_LEAST_RATE, 1.0, marks, log=True, name="found, of those who were")
    curves = [
        Series("limit", [Point(rate, true_positives(total, fpr=rate)) for rate in rates]),
        Series("second", [Point(rate, rate) for rate in rates]),
        Series("", [Point(fpr, tpr) for fpr, tpr in found.curve]),
    ]
    rows: list[list[Child]] = [
        [
            _asked(audit, one),
            *(cell for point in one.true_positives for cell in (measured(point.tpr), show(point.ceiling))),
        ]
        for one in (*audit.inferences, found)
    ]
    head = [
        "what is asked",
        *(text for rate in RATES for text in (together(f"found at {100 * rate:g} %"), "at most")),
    ]
    says = "True against false positives, both logarithmic, below the ceiling"
    return section(
        f"Who is found while few {unit}s are accused",
        figure(
            plot(curves, x, y, says, height=290),
            join(
                legend(("", "found"), ("limit", "at most"), ("second", "by chance")),
                f"With a total of {total:.3g} nats; both axes are logarithmic.",
            ),
        ),
        tag(
            "p",
            f"Of the {unit}s that were trained on, so many are found while 1, 0.1 or 0.01 % of others are accused.",
        ),
        figures(head, rows),
    )
