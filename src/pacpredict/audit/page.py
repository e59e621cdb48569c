"""An audit as a page: one long screen, or some sheets of paper. No script, no request to anywhere."""

import math
from collections.abc import Sequence

from pacpredict.audit.adversaries import Duel
from pacpredict.audit.appendix import Attack
from pacpredict.audit.estimates import RATES, Estimate
from pacpredict.audit.membership import Inference
from pacpredict.audit.presence import Presence
from pacpredict.audit.run import Audit
from pacpredict.audit.words import ASSUMED, NOT_TESTED, broken, show, unsure, verdict
from pacpredict.core.attacks import true_positives
from pacpredict.pages.document import bullets, document, facts, figure, figures, legend, section
from pacpredict.pages.markup import Child, Markup, join, tag
from pacpredict.pages.svg import Point, Scale, Series, plot, ticks
from pacpredict.pages.words import day, power

_LEAST_RATE = 1e-5  # where the axes of a ROC curve begin
# Of groups, whose sizes are all in the picture above the table.
_SIZES_SHOWN = ("-2", "-5", "-10")
_INTERVALS = "intervals hold with 99.9 %, of true positives and of noise approximately"
# What stands beside a claim, by whether it holds.
_HOLDS: dict[bool | None, Child] = {True: "holds", False: tag("strong", "BROKEN"), None: "not checked"}
_STRATEGIES = {
    "random": "the pool's records at random",
    "once": "each record of the pool once",
    "contested": "the most contested records",
    "public": "public records",
}


def render(audit: Audit) -> str:
    """Return the whole page."""
    about = audit.about
    head = tag(
        "header",
        tag("h1", f"Audit of {about['name']}"),
        _faint(f"{day(audit.made)}, simulated futures, attacked, by pacpredict {audit.version}"),
    )
    first = (head, _verdict(audit), _audited(audit), _futures(audit), _curve(audit))
    second = (_duels(audit), _appendix(audit), _claims(audit))
    third = (_presence(audit), _limits())
    sheets = [tag("div", *sheet, class_="sheet") for sheet in (first, second, third)]
    return document(f"Audit of {about['name']}", tag("main", sheets))


def _verdict(audit: Audit) -> Markup:
    first, *rest = verdict(audit)
    is_fine = not any(broken(audit)) and not any(unsure(audit))
    return tag(
        "div",
        tag("p", tag("strong", first, class_="verdict")),
        [tag("p", sentence) for sentence in rest],
        class_="promise" if is_fine else "promise broken",
    )


def _audited(audit: Audit) -> Markup:
    about = audit.about
    limit = "none" if about["odds_limit"] is None else f"{about['odds_limit']:g}"
    rows: list[tuple[str, Child]] = [
        ("artifact", tag("code", about["identity"])),
        ("models", f"{about['models']} x {about['learner']}, decoder {about['decoder']}"),
        ("pool", f"{about['records']:,} records; {about['units']:,} {about['unit']}s are protected"),
        ("models differ on", f"{show(about['contested_share'])} of the pool's own records"),
        ("claimed", f"{about['total_nats']:.6g} nats in all, {power(about['step_budget_nats'])} an answer"),
        ("limit on log-odds", limit),
        ("simulated", f"{audit.plan.n_trials:,} futures of each kind; {_INTERVALS}"),
    ]
    return section("What was audited", facts(rows))


def _futures(audit: Audit) -> Markup:
    rows: list[list[Child]] = []
    for found in (*audit.inferences, audit.larger):
        last = found.looks[-1]
        larger = found is audit.larger
        rows.append(
            [
                _STRATEGIES[found.strategy] + (", larger total" if larger else ""),
                f"{last.queries:,}",
                f"{last.charged_nats:.3g}",
                *_measured(last.success),
                show(last.ceiling),
                f"{found.largest_shift:.3f}",
            ]
        )
    table = figures(
        ["what is asked", "questions", "nats", "told", "interval", "at most", "largest log-odds"], rows
    )
    return section(
        "Who was trained on? By everything that was answered",
        tag(
            "p",
            "Of every unit the attacker computes exactly how probably it was trained on, and guesses what is more "
            "probable. Only questions on which models differ count: all others are free and tell nothing.",
        ),
        figure(
            _growth(audit.inferences[0]), "Success as questions grow, with its interval; dashed: the ceiling."
        ),
        figure(
            _growth(audit.larger),
            f"The same with a total of {audit.larger.looks[-1].charged_nats:.3g} nats and no limit on odds.",
        ),
        table,
    )


def _growth(found: Inference) -> Markup:
    looks = found.looks
    low = min(0.5, *(look.success.low for look in looks))
    high = max(max(look.ceiling, look.success.high) for look in looks)
    marks = [(value, f"{100 * value:.4g} %") for value in ticks(low, high, 4)]
    x = Scale(0, looks[-1].queries, [(value, f"{value:,.0f}") for value in ticks(0, looks[-1].queries, 5)])
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
    return plot([told, ceiling], x, Scale(low, high, marks), says)


def _curve(audit: Audit) -> Markup:
    found, about = audit.larger, audit.about
    total = found.looks[-1].charged_nats
    rates = [10 ** (-5 + i / 8) for i in range(41)]
    marks = [(10.0**-i, f"{10.0 ** (2 - i):g} %") for i in range(6)]
    scale = Scale(_LEAST_RATE, 1.0, marks, log=True)
    points = [Point(fpr, tpr) for fpr, tpr in found.curve]
    curves = [
        Series("limit", [Point(rate, true_positives(total, fpr=rate)) for rate in rates]),
        Series("second", [Point(rate, rate) for rate in rates]),
        Series("", points),
    ]
    rows: list[list[Child]] = [
        [
            _STRATEGIES[one.strategy] + (", larger total" if one is found else ""),
            *(cell for point in one.true_positives for cell in (show(point.tpr.value), show(point.ceiling))),
        ]
        for one in (*audit.inferences, found)
    ]
    head = ["what is asked", *(text for rate in RATES for text in (f"at {100 * rate:g} %", "at most"))]
    says = "True against false positives, both logarithmic, below the ceiling"
    return section(
        f"Who is found while few {about['unit']}s are accused",
        figure(
            plot(curves, scale, scale, says),
            join(
                legend(("", "found"), ("limit", "ceiling"), ("second", "by chance")),
                f"True against false positives with a total of {total:.3g} nats, both logarithmic.",
            ),
        ),
        figures(head, rows),
    )


def _duels(audit: Audit) -> Markup:
    rows: list[list[Child]] = [_duel(one) for one in audit.duels]
    head = ["adversary", "after", "sees", "about it", "told", "interval", "at most", "largest log-odds"]
    return section(
        f"Adversaries who are after one {audit.about['unit']}",
        tag(
            "p",
            "Every question on which models differ leaks about the same. What can be chosen is what that is about. "
            '"About it" is the share of a first question that concerns the target.',
        ),
        figures(head, rows, n_words=3),
        _faint(
            f"{audit.duels[0].runs:,} games each, {audit.duels[0].total_nats:.4g} nats in all; "
            "the last rows keep the claimed limit on odds."
        ),
    )


def _duel(one: Duel) -> list[Child]:
    limited = "" if one.limit is None else f", odds within {one.limit:g}"
    sees = "everything" if one.sees == "history" else f"labels ({one.sees})"
    return [
        f"{one.adversary}{limited}",
        one.targets,
        sees,
        show(one.told),
        *_measured(one.success),
        show(one.ceiling),
        f"{one.largest_odds:.3g}",
    ]


def _appendix(audit: Audit) -> Markup:
    larger = {attack.name: attack for attack in audit.larger_attacks}
    rows: list[list[Child]] = [
        [
            attack.question,
            show(attack.prior),
            show(attack.success.value),
            show(attack.ceiling),
            show(larger[attack.name].success.value),
            show(larger[attack.name].ceiling),
        ]
        for attack in audit.attacks
        if not attack.name.startswith("group") or attack.name.endswith(_SIZES_SHOWN)
    ]
    total = f"{audit.larger.looks[-1].charged_nats:.3g}"
    head = ["what the attacker wants to know", "before", "told", "at most", f"at {total} nats", "at most"]
    return section(
        "Other questions that an attacker may have",
        _priors(audit.attacks),
        figures(head, rows),
    )


def _priors(attacks: Sequence[Attack]) -> Markup:
    """Draw how the success of a guess without any answer changes with the size of a group."""

    def curve(name: str, style: str) -> Series:
        of = [one for one in attacks if one.name.startswith(f"{name}-")]
        return Series(style, [Point(int(one.name.rpartition("-")[2]), one.prior) for one in of])

    exact, some = curve("group-exact", ""), curve("group-any", "second")
    most = max(point.x for point in exact.points)
    x = Scale(1, max(most, 2), [(i, f"{i}") for i in range(1, int(most) + 1)])
    y = Scale(0, 1, [(value, f"{100 * value:.0f} %") for value in ticks(0, 1, 4)])
    return figure(
        plot([exact, some], x, y, "Priors of groups by their size"),
        join(
            legend(("", "which of them"), ("second", "any of them")),
            "Success of a guess about a random group without any answer, by its size.",
        ),
    )


def _claims(audit: Audit) -> Markup:
    rows: list[list[Child]] = [[claim.claim, _HOLDS[claim.holds], claim.seen] for claim in audit.claims]
    return section(
        "Does the mechanism do what is claimed?",
        tag(
            "p",
            "Lives of the real mechanism over these votes, at a budget at which what is wrong can be seen. They draw "
            "from a seeded generator; what is served draws from the operating system, which the last rows are about.",
        ),
        figures(["claim", "", "seen"], rows, n_words=3),
    )


def _presence(audit: Audit) -> Markup:
    tables = [
        join(
            tag("p", tag("strong", f"Records: {name}")),
            _presence_table(found, audit.about["step_budget_nats"]),
        )
        for name, found in audit.presences.items()
    ]
    return section(
        "Not promised: is a record in the pool at all?",
        tag(
            "p",
            "No theorem covers this. Measured is how often an answer about a record is its own label, with the record "
            "in the pool and without, and how many of those in the pool the best test finds at a rate of false alarms. "
            "Records that were chosen because they are remembered best look worse by the votes that chose them than "
            "they are.",
        ),
        tables,
        class_="unprotected",
    )


def _presence_table(found: Sequence[Presence], step_budget: float) -> Markup:
    """Return what was found at the deployment's own step; JSON has a larger one, too."""
    head = [
        "who answers",
        "questions",
        "own label, in",
        "out",
        "advantage",
        *(f"at {100 * rate:g} %" for rate in RATES),
    ]
    rows: list[list[Child]] = [
        [
            one.answerer
            if one.answerer == "one model"
            else f"{one.answerer}, 2^{math.log2(one.step_budget):.3g}",
            f"{one.questions:,}",
            f"{one.own_label_in:.3f}",
            f"{one.own_label_out:.3f}",
            f"{one.advantage:.3f}",
            *(show(rate) for rate in one.tpr),
        ]
        for one in found
        if one.step_budget == step_budget or one.answerer == "one model"
    ]
    return figures(head, rows)


def _limits() -> Markup:
    return tag(
        "div",
        section("What was assumed", bullets(list(ASSUMED))),
        section("What was not tested", bullets(list(NOT_TESTED))),
        class_="columns",
    )


def _measured(estimate: Estimate) -> tuple[str, str]:
    return show(estimate.value), f"{100 * max(estimate.low, 0):.2f} to {100 * min(estimate.high, 1):.2f}"


def _faint(text: str) -> Markup:
    return tag("p", text, class_="faint")
