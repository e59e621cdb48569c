"""The report as a page: two sheets of paper, or one long screen."""

import shlex
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pacpredict.mechanism.budget import WhenExhausted
from pacpredict.pages.document import bullets, commands, document, facts, figure, figures, section
from pacpredict.pages.markup import Child, Markup, join, tag
from pacpredict.pages.svg import Point, histogram, over_time, reach
from pacpredict.pages.words import day, factor, percent, power
from pacpredict.report.facts import Facts

# What the answers of a decoder say about the pool as a whole, in which everybody is.
_ABOUT_THE_POOL = {
    "argmax": "By argmax an answer is what all models say where they agree, and mostly noise where they do not.",
    "sample": "By sample an answer is a label that models give, as often as they give it.",
    "map": "By map answers tend to the vote of all models, in which everybody among the records has a share.",
}
_WHEN_SPENT: dict[WhenExhausted, str] = {
    "halt": "When that is spent, nothing new is answered.",
    "unanimous": "When that is spent, only questions on which all models agree are answered.",
    "belief": "When that is spent, answers are drawn from what everybody may believe by then, and reveal nothing more.",
}
_LEARNT_BY_IMITATION = "A model that imitates this one, trained on its answers."
_SECOND = (
    "A second deployment over the same records: each has a secret of its own, and what they spend adds up."
)


def render(report: Facts) -> str:
    """Return the whole page."""
    sheets = [tag("div", sheet(report), class_="sheet") for sheet in (_first_sheet, _second_sheet)]
    return document(f"Privacy summary of {report.about['name']}", tag("main", sheets))


def _first_sheet(report: Facts) -> Markup:
    name, made = report.about["name"], f"{day(report.made)}, from the artifact and its ledger, by pacpredict"
    return join(
        tag("header", tag("h1", f"Privacy summary of {name}"), _faint(f"{made} {report.version}")),
        _promise(report),
        section("How often an attack can succeed", _attacks(report)),
        tag("div", _protected(report), _unprotected(report), class_="columns"),
        tag(
            "div",
            section("How it works", tag("p", _works(report.about, report.privacy["when_exhausted"]))),
            section("What it rests on", bullets(_premises(name))),
            class_="columns",
        ),
        section("What is deployed", _deployed(report)),
    )


def _second_sheet(report: Facts) -> Markup:
    return join(
        section("What was spent", *_spent(report)),
        section("What this history has revealed", *_revealed(report)),
        section("How to check", *_checks(report)),
        tag("div", tag("div", "reviewed by"), tag("div", "date"), class_="signatures"),
    )


def _promise(report: Facts) -> Markup:
    bound = report.privacy["bounds"]["membership"]
    unit = _unit(report.about)
    return tag(
        "div",
        tag(
            "p",
            f"Whoever asks, however much and however cleverly, can tell whether one {unit} was trained on in at most ",
            tag("strong", percent(bound["success"])),
            f" of cases. Without any answer a guess is right in {percent(bound['prior'])}.",
        ),
        tag(
            "p",
            f"A test that accuses {percent(report.false_positives)} of those who were not trained on finds at most "
            f"{percent(report.true_positives)} of those who were.",
        ),
        *_limit(report.privacy, unit),
        _faint(
            "All this holds for the whole life of the deployment, the first two on average, against somebody who knows "
            "all records, all models and all code, and lacks only which subset was drawn and the random numbers."
        ),
        class_="promise",
    )


def _limit(privacy: dict[str, Any], unit: str) -> list[Markup]:
    """Say what holds for every single history, if something does."""
    limit = privacy["odds_limit"]
    if limit is None:
        return []
    return [
        tag(
            "p",
            f"In no history do the odds that a {unit} was trained on move by more than a factor of ",
            tag("strong", factor(limit)),
            f" (epsilon {limit:g}), but for a probability of {privacy['odds_delta']:g}.",
        )
    ]


def _attacks(report: Facts) -> Markup:
    rows: list[list[Child]] = [
        [
            bound["question"],
            percent(bound["prior"]),
            percent(bound["success"]),
            reach(bound["prior"], bound["success"]),
        ]
        for bound in report.privacy["bounds"].values()
    ]
    return figures(["what the attacker wants to know", "before", "at most", "0 to 100 %"], rows, plot=3)


def _protected(report: Facts) -> Markup:
    about = report.about
    return section(
        "Protected",
        bullets(
            [
                f"Which of {about['models']} subsets was trained on, and so of every {_unit(about)} whether it was.",
                "Against anybody who asks, alone or with others, each question in view of all earlier answers.",
                "Only labels and their charges leave: no probability, no score, no noisy number.",
            ]
        ),
        class_="protected",
    )


def _unprotected(report: Facts) -> Markup:
    about, pool = report.about, " ".join(_ABOUT_THE_POOL[decoder] for decoder in report.decoders)
    persons = f"Several records of one person: the figures are for one {_unit(about)}. For persons, fit with --person."
    return section(
        "Not protected",
        bullets(
            [
                tag("strong", "Being among the records at all."),
                join(tag("strong", "What the records say as a whole."), f" {pool}"),
                *([] if about["unit"] == "person" else [persons]),
                _LEARNT_BY_IMITATION,
                _SECOND,
            ]
        ),
        class_="unprotected",
    )


def _works(about: dict[str, Any], when_exhausted: WhenExhausted) -> str:
    share = "half" if about["rate"] == 0.5 else f"a share of {about['rate']:.3g}"
    return (
        f"Each {_unit(about)} was put, at random, into {share} of {about['models']} subsets, and a model was trained "
        "on each subset. One subset was drawn in secret: it is the training set. An answer is the label of its model, "
        "made noisy as far as models disagree. How noisy is computed from what an attacker can believe by then, so "
        f"that an answer reveals at most its part of the budget. {_WHEN_SPENT[when_exhausted]}"
    )


def _premises(name: str) -> list[Child]:
    """Say what an owner must see to; docs/threat-model.md has the reasons."""
    return [
        f"Whoever sees answers cannot read {name}/secret.json. Nothing computed with the secret model is published.",
        "The ledger is complete and is never turned back. The artifact is moved, never copied.",
        "The secret was drawn once, and not again because answers were not good enough.",
        "No question is chosen with knowledge of the secret.",
    ]


def _deployed(report: Facts) -> Markup:
    about, privacy = report.about, report.privacy
    charged = "only where models disagree" if privacy["charging"] == "adaptive" else "for every answer"
    rows: list[tuple[str, Child]] = [
        ("records", _records(about)),
        (
            "models",
            f"{about['models']} x {about['learner']}, made {day(datetime.fromisoformat(about['created']))}",
        ),
        ("told apart", _listed(about["classes"])),
        ("learned from", _listed([f"{n} {kind}" for kind, n in about["columns"].items()])),
        ("answers", f"{_decoders(report)}; charged {charged}{_contested(about)}"),
        (
            "budget",
            f"{privacy['total_nats']:.6g} nats in all, at most {power(privacy['step_budget_nats'])} for an answer",
        ),
    ]
    return facts(rows)


def _spent(report: Facts) -> list[Child]:
    privacy = report.privacy
    spent, total = privacy["spent_nats"], privacy["total_nats"]
    share = f"{100 * spent / total:.3g} %"
    left = (
        f"{privacy['queries']:,} queries were answered; models disagreed on {privacy['contested']:,}. That took "
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
    smallest, largest = (f"{100 * posterior[name]:.4f} %" for name in ("smallest", "largest"))
    text = (
        f"By all answers so far, an attacker who knows everything but the secret believes of each {unit}, with a "
        f"probability between {smallest} and {largest}, that it was trained on."
    )
    says = f"Posterior of {sum(counts):,} {unit}s: from {smallest} to {largest}"
    before = "a half" if report.about["rate"] == 0.5 else percent(report.about["rate"])
    caption = f"How many {unit}s have which posterior probability. Before any answer it was {before}."
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
            "Keep these. Later, the identity must be the same, and the chain must be continued: a ledger that lacks "
            "what is written here was turned back.",
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
        return f"{records} of {about['units']:,} persons, up to {about['largest_unit']:,} each; protected are persons"
    return f"{records}; protected are {about['units']:,} {about['unit']}s"


def _listed(names: Sequence[str], most: int = 8) -> str:
    """List names, and say how many more there are: a report has two pages."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(name if len(name) <= 40 else f"{name[:39]}…" for name in names[:most]) + more


def _decoders(report: Facts) -> str:
    """Name the decoder in use, and what else answers on record were given by."""
    now, others = (
        report.privacy["decoder"],
        [each for each in report.decoders if each != report.privacy["decoder"]],
    )
    before = f", on record also {' and '.join(others)}" if others else ""
    return f"decoder {now}{before}{'' if report.verified else ' now; the history was not read'}"


def _contested(about: dict[str, Any]) -> str:
    share = about["contested_share"]
    return "" if share is None else f"; models will disagree on about {100 * share:.3g} % of new queries"


def _unit(about: dict[str, Any]) -> str:
    return str(about["unit"])


def _faint(text: str) -> Markup:
    return tag("p", text, class_="faint")
