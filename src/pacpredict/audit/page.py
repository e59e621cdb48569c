"""An audit as a page: one long screen, or some sheets of paper. No script, no request to anywhere."""

from pacpredict.audit.attacks_page import appendix_section, duels_section, self_test_section
from pacpredict.audit.cells import faint, said
from pacpredict.audit.futures_page import found_section, futures_section
from pacpredict.audit.presence_page import presence_section
from pacpredict.audit.run import Audit
from pacpredict.audit.words import ASSUMED, NOT_TESTED, broken, show, unsure, verdict
from pacpredict.pages.document import bullets, document, facts, section
from pacpredict.pages.markup import Child, Markup, tag
from pacpredict.pages.words import day, power

_INTERVALS = "intervals hold with 99.9 %, those of true positives and nats approximately"


def render(audit: Audit) -> str:
    """Return the whole page."""
    about = audit.about
    head = tag(
        "header",
        tag("h1", f"Audit of {about['name']}"),
        faint(f"{day(audit.made)}, simulated futures, attacked, by pacpredict {audit.version}"),
    )
    parts = (
        futures_section,
        found_section,
        duels_section,
        appendix_section,
        self_test_section,
        presence_section,
    )
    sections = [part(audit) for part in parts]
    return document(
        f"Audit of {about['name']}",
        tag("main", head, _verdict(audit), _audited(audit), sections, _limits()),
    )


def _verdict(audit: Audit) -> Markup:
    first, *rest = verdict(audit)
    is_fine = not any(broken(audit)) and not any(unsure(audit))
    return tag(
        "div",
        tag("p", tag("strong", first, class_="verdict")),
        said(rest),
        class_="promise" if is_fine else "promise broken",
    )


def _audited(audit: Audit) -> Markup:
    about = audit.about
    limit = "none" if about["odds_limit"] is None else f"{about['odds_limit']:g}"
    rows: list[tuple[str, Child]] = [
        ("artifact", tag("code", about["identity"])),
        ("models", f"{about['models']} x {about['title']}, decoder {about['decoder']}"),
        ("pool", f"{about['records']:,} records; {about['units']:,} {about['unit']}s are protected"),
        ("models differ on", f"{show(about['contested_share'])} of the pool's own records"),
        ("claimed", f"{about['total_nats']:.6g} nats in all, {power(about['step_budget_nats'])} an answer"),
        ("charged", "for every answer" if about["charging"] == "flat" else "where models differ"),
        ("limit on log-odds", limit),
        ("simulated", f"{audit.plan.n_trials:,} futures of each kind; {_INTERVALS}"),
    ]
    return section("What was audited", facts(rows))


def _limits() -> Markup:
    return tag(
        "div",
        section("What was assumed", bullets(list(ASSUMED))),
        section("What was not tested", bullets(list(NOT_TESTED))),
        class_="columns",
    )
