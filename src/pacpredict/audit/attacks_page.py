"""The part of an audit's page that is about adversaries who choose, all other attacks, and the mechanism itself."""

from collections.abc import Sequence
from typing import NamedTuple

from pacpredict.audit.appendix import Attack
from pacpredict.audit.cells import faint, measured, moved
from pacpredict.audit.estimates import Estimate
from pacpredict.audit.run import Audit
from pacpredict.audit.words import ADVERSARIES, name_of, show
from pacpredict.pages.document import bullets, figure, figures, legend, section
from pacpredict.pages.dots import Dot, Line, dots
from pacpredict.pages.markup import Child, Markup, join, tag
from pacpredict.pages.svg import Point, Scale, Series, plot, ticks

# Of groups, whose sizes are all in the picture above the table.
_SIZES_SHOWN = ("-2", "-5", "-10")
# The colour of each kind of target, and its words in a legend.
KINDS = {"remembered": ("", "after those remembered best"), "ordinary": ("second", "after ordinary ones")}
# What stands beside a claim, by whether it holds.
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


def claims_section(audit: Audit) -> Markup:
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
