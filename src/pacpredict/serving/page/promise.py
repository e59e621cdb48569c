"""What a deployment promises: the four sentences of docs/threat-model.md, with its own figures."""

from typing import Any

from pacpredict.pages.document import section
from pacpredict.pages.markup import Markup, join, tag
from pacpredict.pages.words import factor, percent


def render_promise(name: str, unit: str, privacy: dict[str, Any]) -> Markup:
    """Return the sentences; `privacy` is what Curator.privacy says."""
    sentences = [
        ("On average.", _average(unit, privacy)),
        ("At low false positives.", _false_positives(privacy)),
        ("In every single history.", _every_history(unit, privacy)),
        ("Not promised.", _not_promised(unit)),
    ]
    items = [tag("li", tag("b", title), " ", text) for title, text in sentences]
    return section(f"What {name} promises", tag("div", tag("ol", items), class_="promise"))


def _average(unit: str, privacy: dict[str, Any]) -> Markup:
    bound = privacy["bounds"]["membership"]
    return join(
        f"Over its whole life, nobody tells whether a given {unit} was trained on in more than ",
        tag("strong", percent(bound["success"])),
        f" of cases, where a guess without any answer is right in {percent(bound['prior'])}.",
    )


def _false_positives(privacy: dict[str, Any]) -> Markup:
    return join(
        f"A test that accuses {percent(privacy['fpr'])} of those who were not trained on finds at most ",
        tag("strong", percent(privacy["tpr"])),
        " of those who were.",
    )


def _every_history(unit: str, privacy: dict[str, Any]) -> Markup:
    limit, delta = privacy["odds_limit"], privacy["odds_delta"]
    if limit is None:
        return join(
            f"There is no limit on how far the odds of one {unit} move: the first two hold on average only."
        )
    but = f", but for a probability of one in {round(1 / delta):,}" if delta else ""
    return join(
        f"Whatever is asked and answered, the odds that a {unit} was trained on move by no more than a factor of ",
        tag("strong", factor(limit)),
        f"{but}.",
    )


def _not_promised(unit: str) -> Markup:
    return join(
        f"Whether a {unit} is in the pool, from which the training set was drawn, is not protected at all; neither is "
        "what the pool says as a whole."
    )
