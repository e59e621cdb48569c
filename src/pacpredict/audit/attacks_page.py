"""The part of an audit's page that is about adversaries who choose, all other attacks, and the mechanism itself."""

from collections.abc import Sequence
from typing import NamedTuple

from pacpredict.audit.appendix import Attack
from pacpredict.audit.cells import faint, measured, moved
from pacpredict.audit.estimates import Estimate
from pacpredict.audit.power import POWER
from pacpredict.audit.run import Audit
from pacpredict.audit.self_test.results import FALSE_ALARM
from pacpredict.audit.words import ADVERSARIES, name_of, show
from pacpredict.pages.document import bullets, figure, figures, legend, section
from pacpredict.pages.dots import Dot, Line, dots
from pacpredict.pages.markup import Child, Markup, join, tag
from pacpredict.pages.svg import Point, Scale, Series, plot, ticks

# Of groups, whose sizes are all in the picture above the table.
_SIZES_SHOWN = ("-2", "-5", "-10")
# The colour of each kind of target, and its words in a legend.
KINDS = {"remembered": ("", "after those remembered best"), "ordinary": ("second", "after ordinary ones")}
# What stands beside a check, by whether it holds.
_HOLDS: dict[bool | None, Child] = {True: "holds", False: tag("strong", "BROKEN"), None: "not checked"}


class Told(NamedTuple):
    """How often an adversary was right, against targets of one kind."""

    name: str
    targets: str
    success: Estimate
    ceiling: float


def duels_section(audit: Audit) -> Markup:
    unit = audit.about["unit"]
    played = list(dict.fromkeys(one.adversary for one in audit.duels))
    head = ["adversary", "after", "about it", "told", "at most", "log-odds moved"]
    rows: list[list[Child]] = [
        [
            name_of(one),
            one.targets,
            show(one.told),
            measured(one.success),
            show(one.ceiling),
            moved(one.largest_spread),
        ]
        for one in audit.duels
    ]
    return section(
        f"Adversaries who are after one {unit}",
        tag(
            "p",
            "Every question on which models differ leaks about the same. What can be chosen is what that is about. "
            '"About it" is the share of a first question that concerns the target.',
        ),
        bullets([join(tag("strong", name), f" asks {ADVERSARIES[name]}.") for name in played]),
        figure(
            draw_duels([Told(name_of(one), one.targets, one.success, one.ceiling) for one in audit.duels]),
            join(
                legend(*KINDS.values(), ("limit", "at most")),
                f"{audit.duels[0].runs:,} games each, {audit.duels[0].total_nats:.4g} nats in all.",
            ),
        ),
        figures(head, rows, n_words=2),
        faint(
            "Whoever sees labels has those that clients get, and not their charges; all others have the whole history, "
            "noise and all. Odds are limited where it says so."
        ),
    )


def draw_duels(told: Sequence[Told]) -> Markup:
    """Draw how often each adversary is right, against targets of each kind, beside the ceiling."""
    lines = []
    for name in dict.fromkeys(one.name for one in told):
        mine = [one for one in told if one.name == name]
        marks = [Dot(KINDS[one.targets][0], *one.success) for one in mine]
        lines.append(Line(name, marks, max(one.ceiling for one in mine)))
    low = min(0.5, *(one.success.low for one in told))
    high = max(max(one.success.high, one.ceiling) for one in told)
    x = Scale(low, high, [(value, f"{100 * value:.4g} %") for value in ticks(low, high, 5)])
    return dots(lines, x, "Games in which each adversary is right, with intervals")


def appendix_section(audit: Audit) -> Markup:
    larger = {attack.name: attack for attack in audit.larger_attacks}
    rows: list[list[Child]] = [
        [
            attack.question,
            show(attack.prior),
            measured(attack.success),
            show(attack.ceiling),
            measured(larger[attack.name].success),
            show(larger[attack.name].ceiling),
        ]
        for attack in audit.attacks
        if not attack.name.startswith("group") or attack.name.endswith(_SIZES_SHOWN)
    ]
    total = f"{audit.larger.looks[-1].charged_nats:.3g}"
    head = ["what the attacker wants to know", "before", "told", "at most", f"told, {total} nats", "at most"]
    return section("Other questions that an attacker may have", _priors(audit.attacks), figures(head, rows))


def _priors(attacks: Sequence[Attack]) -> Markup:
    """Draw how the success of a guess without any answer changes with the size of a group."""

    def curve(name: str, style: str) -> Series:
        of = [one for one in attacks if one.name.startswith(f"{name}-")]
        return Series(style, [Point(int(one.name.rpartition("-")[2]), one.prior) for one in of])

    exact, some = curve("group-exact", ""), curve("group-any", "second")
    most = max(point.x for point in exact.points)
    x = Scale(1, max(most, 2), [(i, f"{i}") for i in range(1, int(most) + 1)], name="size of the group")
    y = Scale(
        0, 1, [(value, f"{100 * value:.0f} %") for value in ticks(0, 1, 4)], name="guesses that are right"
    )
    return figure(
        plot([exact, some], x, y, "Priors of groups by their size"),
        join(
            legend(("", "which of them"), ("second", "any of them")),
            "A guess about a random group without any answer.",
        ),
    )


def self_test_section(audit: Audit) -> Markup:
    rows: list[list[Child]] = [
        [one.check, _HOLDS[one.holds], one.statement, one.seen, one.noticeable] for one in audit.self_test
    ]
    return section(
        "Does the mechanism do what is claimed?",
        tag(
            "p",
            f"Sessions with secrets of their own, {audit.plan.n_sessions:,} of them at the deployment's budget, opened "
            "and asked as a server does. An auditor who knows their secrets recomputes what should have happened. An "
            f"honest mechanism fails at most one of {1 / FALSE_ALARM:,.0f} self-tests. The last column says how large "
            f"a breach would have been noticed with a chance of {100 * POWER:.0f}%.",
        ),
        figures(["check", "", "claim", "seen", "noticeable"], rows, n_words=5),
    )
