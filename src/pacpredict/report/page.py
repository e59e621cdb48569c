"""The report as a page: two sheets of paper that answer what a privacy officer asks."""

import shlex
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pacpredict.mechanism.budget import WhenExhausted
from pacpredict.pages.document import bullets, commands, document, facts, figure, figures, section
from pacpredict.pages.markup import Child, Markup, join, tag
from pacpredict.pages.sentences import marked
from pacpredict.pages.svg import Point, histogram, over_time, reach
from pacpredict.pages.words import day, power
from pacpredict.promise import (
    ABOUT_VOTES,
    FROM_THE_WHOLE_POOL,
    NEVER_TELL,
    about_the_pool,
    on_erasure,
    plural,
    promise_from,
    why_never,
)
from pacpredict.report.facts import Facts
from pacpredict.show import percent_up

_WHEN_SPENT: dict[WhenExhausted, str] = {
    "halt": "When the budget is spent, no new query is answered.",
    "unanimous": "When the budget is spent, only queries on which all models agree are answered.",
    "belief": "When the budget is spent, answers are drawn from the public belief and reveal nothing more about the "
    "secret.",
}
_AGAINST = (
    "Anyone who queries the model, alone or with others, as often as the budget lasts and with any computing "
    "power, choosing each query in view of all earlier answers; even if they know every record, every subset, every "
    "model and all code. They lack the secret, which subset was drawn, and the random numbers."
)
_IMITATION = "A model that imitates this one, trained on its answers."
_SECOND = (
    "A second deployment over the same records: each has its own secret, and budgets and odds limits add up."
)


def render(report: Facts) -> str:
    """Return the whole page."""
    sheets = [tag("div", sheet(report), class_="sheet") for sheet in (_first_sheet, _second_sheet)]
    return document(f"Privacy report on {report.about['name']}", tag("main", sheets))


def _first_sheet(report: Facts) -> Markup:
    name, made = report.about["name"], f"{day(report.made)}, from the artifact and its ledger, by pacpredict"
    return join(
        tag("header", tag("h1", f"Privacy report on {name}"), _faint(f"{made} {report.version}")),
        tag(
            "div",
            section("Who is protected?", tag("p", _who(report.about))),
            section("Against what?", tag("p", _AGAINST)),
            class_="columns",
        ),
        section("By how much?", _how_much(report)),
        tag(
            "div",
            section("What is not protected?", bullets(_unprotected(report)), class_="unprotected"),
            section("What must we never do?", bullets(_never(report.about)), class_="unprotected"),
            class_="columns",
        ),
        section(
            "What if someone asks to be erased?",
            tag("p", on_erasure(report.about["rate"], _unit(report.about))),
        ),
        section("How does it work?", tag("p", _works(report.about, report.privacy["when_exhausted"]))),
    )


def _second_sheet(report: Facts) -> Markup:
    return join(
        section("How often can an attack succeed?", _attacks(report), *_explanations(report)),
        tag(
            "div",
            section("What was measured: spending", *_spent(report)),
            section("What was measured: what is known by now", *_revealed(report)),
            class_="columns",
        ),
        section("What is deployed?", _deployed(report)),
        section("How can we check?", *_checks(report)),
        tag("div", tag("div", "reviewed by"), tag("div", "date"), class_="signatures"),
    )


def _who(about: dict[str, Any]) -> str:
    units, unit = plural(_unit(about)), _unit(about)
    whose = "with all of their records" if unit == "person" else "each with all that are identical to it"
    return (
        f"{about['units']:,} {units}, {whose}: {about['records']:,} records in all, the pool. What is protected is "
        f"which half of them was the training set, and so whether any given {unit} was in it."
    )


def _how_much(report: Facts) -> Markup:
    *bounds, (_, not_promised) = promise_from(report.privacy, _unit(report.about)).titled()
    sentences = [tag("p", tag("b", f"{title}."), " ", marked(text)) for title, text in bounds]
    return tag("div", *sentences, tag("p", tag("b", marked(not_promised))), class_="promise")


def _unprotected(report: Facts) -> list[Child]:
    about, noise = report.about, report.privacy["noise"]
    pool = " ".join(
        [about_the_pool(decoder, noise) for decoder in report.decoders]
        + [ABOUT_VOTES[rule] for rule in report.vote_rules]
    )
    several = f"Several records of one person: the figures are for one {_unit(about)}. For people, fit with --person."
    return [
        tag("strong", "Being in the pool at all."),
        join(
            tag("strong", "What a single record says, such as its label, and what the pool says as a whole."),
            f" {FROM_THE_WHOLE_POOL} ",
            marked(pool),
        ),
        *([] if about["unit"] == "person" else [several]),
        _IMITATION,
        _SECOND,
    ]


def _never(about: dict[str, Any]) -> list[Child]:
    """Say what an owner must not do; docs/threat-model.md has the reasons."""
    return [
        join(tag("strong", NEVER_TELL), f" {why_never(about['models'], about['rate'], _unit(about))}"),
        f"Never let anyone who sees answers read {about['name']}/secret.json.",
        "Never publish anything computed with the secret model, such as its accuracy.",
        "Never copy the artifact, and never restore an older ledger: move it, and keep its history complete.",
        "Never draw the secret again because answers were not good enough.",
        "Never let a query be chosen with knowledge of the secret.",
    ]


def _attacks(report: Facts) -> Markup:
    rows: list[list[Child]] = [
        [
            bound["question"],
            percent_up(bound["prior"]),
            percent_up(bound["success"]),
            reach(bound["prior"], bound["success"]),
        ]
        for bound in report.privacy["bounds"].values()
    ]
    return figures(["what the attacker wants to know", "before", "at most", "0 to 100%"], rows, plot=3)


def _explanations(report: Facts) -> list[Markup]:
    reasons = report.privacy["explanations"]
    return [_faint(" ".join(reasons))] if reasons else []


def _works(about: dict[str, Any], when_exhausted: WhenExhausted) -> str:
    share = "half" if about["rate"] == 0.5 else f"a share of {about['rate']:.3g}"
    return (
        f"Each {_unit(about)} was put, at random, into {share} of {about['models']} subsets, and a model was trained "
        "on each subset. One subset was drawn in secret: it is the training set. Where all models agree, their label "
        "is the answer. Where they disagree, the secret model's label is hidden, calibrated to the current posterior "
        "of an attacker who knows everything else, so that an answer reveals at most its part of the budget about the "
        f"secret. {_WHEN_SPENT[when_exhausted]}"
    )


def _deployed(report: Facts) -> Markup:
    about, privacy = report.about, report.privacy
    charged = "only where models disagree" if privacy["charging"] == "adaptive" else "for every answer"
    rows: list[tuple[str, Child]] = [
        ("records", _records(about)),
        (
            "models",
            f"{about['models']} x {about['learner']}, made {day(datetime.fromisoformat(about['created']))}",
        ),
        ("classes", _listed(about["classes"])),
        ("columns", _listed([f"{n} {kind}" for kind, n in about["columns"].items()])),
        ("answers", f"{_in_use(report)}; charged {charged}{_contested(about)}"),
        ("budget", _budget(privacy)),
    ]
    return facts(rows)


def _budget(privacy: dict[str, Any]) -> str:
    step, limit = power(privacy["step_budget_nats"]), privacy["odds_limit"] or "none"
    return f"{privacy['total_nats']:.6g} nats in all, at most {step} for an answer; odds limit {limit}"


def _spent(report: Facts) -> list[Child]:
    privacy = report.privacy
    spent, total = privacy["spent_nats"], privacy["total_nats"]
    share = f"{100 * spent / total:.3g}%"
    left = (
        f"{privacy['queries']:,} queries were answered; the models disagreed on {privacy['contested']:,}. That took "
        f"{share} of the budget. {report.rows_left:,} queries on which models disagree can still be answered."
    )
    if report.lasts_until is not None:
        left += f" At the pace of the last 30 days that lasts until {day(report.lasts_until)}."
    if not report.moments:
        return [tag("p", left)]
    first = day(report.moments[0].time)
    points = [Point(moment.time.timestamp(), 100 * moment.spent_nats / total) for moment in report.moments]
    says = f"Spent over time: {share} of the budget by {day(report.moments[-1].time)}"
    picture = over_time([Point(points[0].x, 0.0), *points], 100.0, says)
    return [
        tag("p", left),
        figure(picture, f"Share of the budget that was spent, by time (UTC), since {first}."),
    ]


def _revealed(report: Facts) -> list[Child]:
    posterior, unit = report.membership_posterior, _unit(report.about)
    edges, counts = posterior["histogram"]["edges"], posterior["histogram"]["units"]
    smallest, largest = (f"{100 * posterior[name]:.4f}%" for name in ("smallest", "largest"))
    text = (
        f"Given all answers so far, an attacker who knows everything but the secret assigns each {unit} a probability "
        f"between {smallest} and {largest} of having been in the training set. This is for the owner: publishing it "
        "would reveal who is in the pool."
    )
    says = f"Posterior of {sum(counts):,} {plural(unit)}: from {smallest} to {largest}"
    before = "a half" if report.about["rate"] == 0.5 else percent_up(report.about["rate"])
    caption = (
        f"Number of {plural(unit)} by posterior probability of membership. Before any answer it was {before}."
    )
    return [tag("p", text), figure(histogram(edges, counts, says), caption)]


def _checks(report: Facts) -> list[Child]:
    name, verified = report.about["name"], report.verified
    was = (
        "The history was not replayed for this report."
        if verified is None
        else f"For this report all {verified.releases:,} records of the ledger were checked: none is missing or "
        "changed, the charges add up, and replaying the releases gives the belief on record, bit for bit."
    )
    rows: list[tuple[str, Child]] = [
        ("identity of the artifact", tag("code", report.about["identity"])),
        ("ledger", tag("code", report.ledger)),
        (f"chain after {report.releases:,} releases", tag("code", report.chain)),
    ]
    return [
        tag("p", was),
        facts(rows),
        tag(
            "p",
            "Keep these. Later, the identity must be the same, and the ledger must still contain this chain.",
        ),
        commands(
            f"sha256sum {shlex.quote(f'{name}/manifest.json')}   # the identity",
            f"pacpredict verify {shlex.quote(name)}   # trains some models again, compares bytes",
            "# Replays all records, which must go through this chain:",
            f"pacpredict ledger verify {shlex.quote(name)} \\",
            f"  --contains {report.chain}",
        ),
    ]


def _records(about: dict[str, Any]) -> str:
    records = f"{about['records']:,} records"
    if about["unit"] == "person":
        return f"{records} of {about['units']:,} people, up to {about['largest_unit']:,} each; people are protected"
    return f"{records}, of which {about['units']:,} are different; each is protected by itself"


def _listed(names: Sequence[str], most: int = 8) -> str:
    """List names, and say how many more there are: a report has two pages."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(name if len(name) <= 40 else f"{name[:39]}…" for name in names[:most]) + more


def _in_use(report: Facts) -> str:
    """Name the decoder and the votes in use, and what else answers on record were given by."""
    decoder = _with_others("decoder", report.privacy["decoder"], report.decoders)
    votes = _with_others("votes", report.privacy["votes"], report.vote_rules)
    return f"{decoder}; {votes}{'' if report.verified else ' now; the history was not read'}"


def _with_others(what: str, now: str, every: Sequence[str]) -> str:
    others = [each for each in every if each != now]
    return f"{what} {now}" + (f", on record also {' and '.join(others)}" if others else "")


def _contested(about: dict[str, Any]) -> str:
    share = about["contested_share"]
    return "" if share is None else f"; models will disagree on about {100 * share:.3g}% of new queries"


def _unit(about: dict[str, Any]) -> str:
    return str(about["unit"])


def _faint(text: str) -> Markup:
    return tag("p", text, class_="faint")
