"""The part of an audit's page that is about being in the pool at all, which nobody promises anything of."""

from collections.abc import Mapping, Sequence
from typing import Any

from pacpredict.audit.cells import said, together
from pacpredict.audit.estimates import RATES
from pacpredict.audit.presence import SEES, Answerer, Presence
from pacpredict.audit.run import Audit
from pacpredict.audit.words import pool_in_words, show
from pacpredict.mechanism.budget import Charging
from pacpredict.pages.document import figure, figures, legend, section
from pacpredict.pages.markup import Child, Markup, join, tag
from pacpredict.pages.svg import Point, Scale, Series, plot
from pacpredict.pages.words import power

# The colour of each, and its words in a legend.
CURVES: dict[Answerer, tuple[str, str]] = {
    "one model": ("plain", "one unprotected model"),
    "argmax": ("second", "argmax"),
    "sample": ("third", "sample"),
    "map": ("", "map"),
}


def presence_section(audit: Audit) -> Markup:
    step = audit.about["step_budget_nats"]
    tables = [
        tag(
            "div",
            tag("p", tag("strong", f"Records: {name}"), f"; {power(step)} an answer"),
            _table(_at_step(found, step)),
            class_="figure",
        )
        for name, found in audit.presences.items()
    ]
    remembered = _at_step(next(iter(audit.presences.values())), step)
    return section(
        "Not promised: is a record in the pool at all?",
        tag("p", _explained(audit.about["charging"])),
        said(pool_in_words(audit)),
        [
            figure(
                presence_curves(
                    [one._asdict() for one in as_clients_see(remembered) if one.questions == n], words
                ),
                join(legend(*CURVES.values(), ("limit", "by chance")), words),
            )
            for n, words in _questions(remembered)
        ],
        tables,
        class_="unprotected",
    )


def _explained(charging: Charging) -> str:
    on_hand = (
        " Likewise charges tell more by the votes on hand than they do: the half of the models that lack a record "
        "agrees more easily than all of them would."
    )
    return (
        "No theorem covers this. Measured is how often an answer about a record is its own label, and how often it is "
        "charged, with the record in the pool and without, and how many of those in the pool the best test finds by "
        "that at a rate of false alarms: by labels and charges, which every client sees, and below that, smaller, by "
        "labels alone. Records that were chosen because they are remembered best look worse by the votes that chose "
        f"them than they are.{'' if charging == 'flat' else on_hand}"
    )


def _questions(found: Sequence[Presence]) -> list[tuple[int, str]]:
    """Return in how many questions each record is asked about, and the words for that."""
    numbers = sorted({one.questions for one in found})
    words = (
        "Found by labels and charges, of those remembered best, by the votes on hand, against false alarms:"
    )
    return [(n, f"{words} {'one question each' if n == 1 else f'{n:,} variants of each'}.") for n in numbers]


def _at_step(found: Sequence[Presence], step_budget: float) -> list[Presence]:
    """Return what was found at the deployment's own step; JSON has a larger one, too."""
    return [one for one in found if one.step_budget == step_budget or one.answerer == "one model"]


def as_clients_see(found: Sequence[Presence]) -> list[Presence]:
    """Leave out what labels tell alone, but of one model, which charges nothing."""
    return [one for one in found if one.sees == SEES[-1] or one.answerer == "one model"]


def presence_curves(found: Sequence[Mapping[str, Any]], says: str) -> Markup:
    """Draw what the best test finds by the answers of each, against false alarms."""
    low = RATES[-1]
    marks = [(10.0**-i, f"{10.0 ** (2 - i):g} %") for i in range(5)]
    curves = [
        Series("limit", [Point(low, low), Point(1, 1)]),
        *(Series(CURVES[one["answerer"]][0], [Point(*point) for point in one["curve"]]) for one in found),
    ]
    x = Scale(low, 1.0, marks, log=True, name="accused, of records that are not in the pool")
    y = Scale(low, 1.0, marks, log=True, name="found, of those that are")
    return plot(curves, x, y, says, height=230)


def _table(found: Sequence[Presence]) -> Markup:
    """Set what labels and charges tell above what labels tell alone."""
    head = [
        "who answers",
        "questions",
        "own label, in / out",
        "charged, in / out",
        "advantage",
        *(together(f"found at {100 * rate:g} %") for rate in RATES),
    ]
    by_labels = {(one.answerer, one.questions): one for one in found if one.sees == "labels"}
    rows: list[list[Child]] = []
    for one in as_clients_see(found):
        alone = by_labels[one.answerer, one.questions]
        rows.append(
            [
                one.answerer,
                f"{one.questions:,}",
                f"{one.own_label_in:.3f} / {one.own_label_out:.3f}",
                "" if one.charged_in is None else f"{one.charged_in:.3f} / {one.charged_out:.3f}",
                _above(f"{one.advantage:.3f}", f"{alone.advantage:.3f}"),
                *(
                    _above(show(rate), show(by_label))
                    for rate, by_label in zip(one.tpr, alone.tpr, strict=True)
                ),
            ]
        )
    return figures(head, rows)


def _above(value: str, by_labels: str) -> Markup:
    return join(value, tag("small", by_labels))
