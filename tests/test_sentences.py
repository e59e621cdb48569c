"""Sentences that were shown to be false are gone, and the documentation quotes the promise as the library words it."""

import re
from pathlib import Path

import pytest

from pacpredict import defaults
from pacpredict.core.plan import plan
from pacpredict.promise import NEVER_TELL, on_erasure, plain, promise_of, why_never

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SOURCES = [
    *sorted((ROOT / "src").rglob("*.py")),
    *sorted((ROOT / "examples").glob("*.py")),
    *sorted((ROOT / "docs" / "images").glob("*.svg")),
]

FALSE = {
    "the limit was on the odds of single people, which is not differential privacy": (
        r"is\W* (the|a) guarantee of (\(|differential|the kind)",
        r"limit on odds \W*is\W*,? about membership",
        r"(nobody|anybody)'s (log-)?odds",
        r"whatever the total, at most",
    ),
    "the proof is about which half was drawn, not about the data": (
        r"proof of how little they reveal",
        r"what leaks is counted in nats",
        r"or even what their record says",
        r"counts, and stops in time",
        r"coin was tossed",
    ),
    "memberships of other people must stay hidden too": (r"nothing else is assumed to be hidden",),
    "what is computed from the whole pool can show": (r"compute nothing of that kind",),
    "argmax follows the vote shares for three or more labels": (
        r"coin toss",
        r"toss(es)? (its|a) coin|coin with as",
        r"toss-up",
        r"nearly at random(?!\. They)",
        r"\| least: ",
    ),
    "one clause about delta, from one module": (
        r"odds moved, in any history",
        r"but for a probability of",
        r"but for one in a billion",
    ),
    "an erasure is a further deployment for everyone else": (
        r"remove their records[^.]{0,30} and fit again",
        r"records too, and fit again",
    ),
    "an epsilon does not match a success rate": (r"matching epsilon", r"matches for average success"),
    "figures of the limit on single people": (r"factor of 2\.72", r"(?<!\d)0\.272? ?%", r"(?<!\d)0\.28 ?%"),
}
# What was called exposure is the odds limit, or the membership posterior.
GONE = re.compile(r"exposure|most exposed", re.IGNORECASE)


def text_of(path):
    return " ".join(path.read_text().split())


@pytest.mark.parametrize("path", [*PAGES, *SOURCES], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_false_sentence_is_left(path):
    """None of the sentences that an attack on the product refuted stands anywhere."""
    text = text_of(path)
    for reason, patterns in FALSE.items():
        for pattern in patterns:
            found = re.search(pattern, text, re.IGNORECASE)
            assert not found, f"{reason}: ...{text[max(0, found.start() - 60) : found.end() + 60]}..."
    assert not GONE.search(text) or path.suffix == ".svg"


def default_promise():
    made = plan(queries=defaults.QUERIES, step_budget=defaults.STEP_BUDGET)
    return promise_of(
        unit="person",
        prior=made.prior,
        success=made.success,
        fpr=made.fpr,
        tpr=made.limited_tpr,
        odds_limit=made.odds_limit,
        odds_delta=None,
    )


@pytest.mark.parametrize("page", ["README.md", "docs/threat-model.md"])
def test_pages_quote_the_promise(page):
    """README and threat model have the four sentences, with titles and figures, as the library words them."""
    text = text_of(ROOT / page)
    for title, sentence in default_promise().titled():
        assert f"**{title}.** {sentence}" in text


def test_the_default_limit_is_the_proposed_one():
    """The figures that pages quote are those of a fit with no options."""
    assert plan(queries=defaults.QUERIES, step_budget=defaults.STEP_BUDGET).odds_limit == defaults.ODDS_LIMIT


@pytest.mark.parametrize("page", ["docs/threat-model.md", "docs/faq.md"])
def test_pages_say_why_nobody_is_told(page):
    """The threat model and the answers for data subjects quote what honest replies publish."""
    text = text_of(ROOT / page)
    assert NEVER_TELL in text
    assert why_never(defaults.MODELS, defaults.RATE, "person") in text


@pytest.mark.parametrize("page", ["README.md", "docs/operate.md", "docs/how-it-works.md"])
def test_other_pages_lead_there(page):
    """README, how it works and the operator's list of what never to do link to it."""
    assert "threat-model.md#never-tell-anyone-whether-they-were-trained-on" in text_of(ROOT / page)


def test_the_erasure_answer_is_the_librarys():
    """What an erasure does to everyone else stands in the FAQ as in the report."""
    assert plain(on_erasure(defaults.RATE, "person")) in text_of(ROOT / "docs" / "faq.md")


def test_the_readme_says_what_the_secret_is():
    """The second paragraph says that the proof is about the half, and that answers come from the whole pool."""
    second = text_of(ROOT / "README.md").split("Train 128 models")[1].split("- **On average.**")[0]
    assert "is the secret, and the proof is about nothing else" in plain(second)
    assert "At small steps answers come from models of the whole pool" in second
