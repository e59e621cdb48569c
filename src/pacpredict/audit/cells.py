"""What several tables of an audit's page have in their cells."""

import math
from collections.abc import Sequence

from pacpredict.audit.estimates import Estimate
from pacpredict.audit.words import show
from pacpredict.pages.markup import Markup, join, tag

# A lower bound below this is nearer to nothing than any table here can show; upper ones are written out.
_LEAST = 1e-5
# Log-odds from which a probability is 1 in doubles: -log of half of their last place.
_SUREST = 36


def measured(estimate: Estimate) -> Markup:
    """Return a rate with its interval below it: without that, a rate says little."""
    low = 0.0 if estimate.low < _LEAST else estimate.low
    low_and_high = (show(rate).removesuffix(" %") for rate in (low, min(estimate.high, 1.0)))
    return join(show(estimate.value), tag("small", " to ".join(low_and_high)))


def moved(shift: float) -> str:
    """Write a shift of log-odds: whoever is surer than doubles can say is not infinitely sure."""
    return f"{shift:.3g}" if math.isfinite(shift) else f"over {_SUREST}"


def together(text: str) -> str:
    """Keep numbers and what they are percent of on one line."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def said(sentences: Sequence[str]) -> list[Markup]:
    return [tag("p", together(sentence)) for sentence in sentences]


def faint(text: str) -> Markup:
    return tag("p", text, class_="faint")
