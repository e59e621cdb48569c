"""The promise of a deployment in sentences: the only place where they are worded.

README, documentation, terminal, server, report, privacy card and `Guarantee` take sentences and caveats from here, so no
two of them can disagree. Sentences are Markdown in which only figures are emphasised; `plain` removes the marks.
"""

from collections.abc import Mapping
from decimal import ROUND_CEILING, Context
from math import ceil, log2
from typing import Any, NamedTuple

from pacpredict import defaults
from pacpredict.core.decode import DECODERS_OF, Decoder
from pacpredict.core.disclosure import success_with_known
from pacpredict.show import factor_up, percent_up

_PLURALS = {"person": "people"}

NOT_PROMISED = (
    "The proof does not cover being in the pool from which the training set was drawn, what a single record of the pool "
    "says, such as its label, or what the pool says as a whole."
)
_NO_LIMIT = (
    "There is no limit on how far the odds of a statement about the training set move in a single history: the two "
    "sentences above hold on average only."
)
NEVER_TELL = "Never tell anyone, not even the people concerned, whether they were in the training set."

# What answers tell about the pool, which no theorem limits.
ABOUT_THE_POOL: Mapping[Decoder, str] = {
    "argmax": "With `argmax`, an answer is the common label where all models agree. Where they disagree it is noisy; with "
    "three or more labels it follows the vote shares of all models at every step.",
    "map": "With `map`, an answer at a small step is the vote of all models.",
    "sample": "With `sample`, an answer at a small step is a label drawn in proportion to the votes of all models.",
}
FROM_THE_WHOLE_POOL = (
    "At small steps answers come from models of the whole pool, half of which were trained on any given record."
)


class Promise(NamedTuple):
    """Four sentences: three bounds, and what none of them is about."""

    average: str
    low_false_positives: str
    every_history: str
    not_promised: str

    def titled(self) -> list[tuple[str, str]]:
        """Return each sentence with a title, in the order in which they are read."""
        return list(zip(TITLES, self, strict=True))

    def to_json(self) -> dict[str, str]:
        return {name: plain(sentence) for name, sentence in self._asdict().items()}

    def __str__(self) -> str:
        return "\n".join(f"{title}. {plain(sentence)}" for title, sentence in self.titled())


TITLES = ("On average", "At a low false-positive rate", "In every history", "Not promised")


def promise_of(
    *,
    unit: str,
    prior: float,
    success: float,
    fpr: float,
    tpr: float,
    odds_limit: float | None,
    odds_delta: float | None,
) -> Promise:
    """Word the promise of a deployment.

    Parameters
    ----------
    unit
        What is protected as one: "person" or "record".
    prior, success
        How often membership is guessed right before any answer, and at most after all of them.
    fpr, tpr
        A false-positive rate, and the highest true-positive rate of any test at that rate.
    odds_limit
        How far the log-odds of any statement about the training set move at most; None for no limit.
    odds_delta
        The probability that they move further: 0 for a finite channel, and None where the decoder is not decided yet.

    """
    units, who = plural(unit), "who" if unit == "person" else "that"
    return Promise(
        f"Over the whole life of the deployment, no attacker can determine whether a given {unit} was in the training set "
        f"more than **{percent_up(success)}** of the time; a guess without any answer is right {percent_up(prior)} of the "
        "time.",
        f"At a {percent_up(fpr)} false-positive rate, no test identifies more than **{percent_up(tpr)}** of the {units} "
        f"{who} were in the training set.",
        _NO_LIMIT if odds_limit is None else _limit(units, odds_limit, odds_delta),
        NOT_PROMISED,
    )


def promise_from(privacy: Mapping[str, Any], unit: str) -> Promise:
    """Word the promise from the plain values that a deployment reports about its privacy."""
    bound = privacy["bounds"]["membership"]
    figures = {name: privacy[name] for name in ("fpr", "tpr", "odds_limit", "odds_delta")}
    return promise_of(unit=unit, prior=bound["prior"], success=bound["success"], **figures)


def _limit(units: str, odds_limit: float, odds_delta: float | None) -> str:
    return (
        f"Whatever is asked and answered, and whatever else the attacker knows about other {units}, the odds of any "
        f"statement about the training set move by at most a factor of **{factor_up(odds_limit)}**"
        f"{delta_clause(odds_delta)}."
    )


def delta_clause(odds_delta: float | None) -> str:
    """Say with which probability the limit on odds fails: nothing where it cannot, both cases where that is open."""
    if odds_delta is None:
        noisy = " and ".join(f"`{name}`" for name in DECODERS_OF["gaussian"])
        return f" (with {noisy}{delta_clause(defaults.ODDS_DELTA)})"
    if odds_delta == 0:
        return ""
    return f", except with probability {Context(prec=2, rounding=ROUND_CEILING).create_decimal(repr(odds_delta)):.2g}"


def why_never(n_models: int = defaults.MODELS, rate: float = defaults.RATE, unit: str = "person") -> str:
    """Say what disclosed memberships tell about all others."""
    bits = round(log2(n_models))
    known = sorted({max(bits - 3, 1), bits, bits + 3, 2 * bits})
    shares = [f"{100 * success_with_known(n_models, n, round(rate * n_models)):.1f}%" for n in known]
    return (
        f"{n_models} subsets are only {log2(n_models):.3g} bits: someone who knows the subsets and the membership of "
        f"{_listed(known)} {plural(unit)} guesses the next {unit}'s membership correctly in {_listed(shares)} of cases, "
        f"without asking the model anything. So {known[-1]} honest replies all but publish the training set."
    )


def on_erasure(rate: float = defaults.RATE, unit: str = "person") -> str:
    """Say what fitting again without some records does to everybody who stays."""
    once, twice, sixth = (percent_up(1 - (1 - rate) ** n) for n in (1, 2, 6))
    return (
        f"Removing a {unit} takes a new fit, and for everyone who stays that is a further deployment, with a further "
        f"training set and a further budget: the chance of ever having been trained on rises from {once} to {twice}, and "
        f"after five erasures to {sixth} with six budgets. Collect requests, fit again rarely, and count every deployment."
    )


def explain_priors(bounds: Mapping[str, Mapping[str, Any]], unit: str) -> list[str]:
    """Say of each attack that succeeds in more than half of all cases without any answer why it does."""
    member, units = bounds["membership"]["prior"], plural(unit)
    share = "half" if member == 0.5 else f"{percent_up(member)} or {percent_up(1 - member)}"
    reasons = {
        "membership": f"each {unit} is in {share} of the subsets, and a guess can go by that",
        "group-any": f"each {unit} is in {share} of the subsets, so a subset without any of several {units} is rare",
        "reconstruction": f"identical records of several {units} count as one: naming it is right if any of them was drawn",
        "model": "models that gave the same label to everything they were compared on count as one",
        "full-set": "identical subsets count as one",
        "group-exact": "there are few subsets, and few patterns in them",
    }
    if bounds["reconstruction"]["prior"] <= member:  # then no record is shared
        reasons["reconstruction"] = reasons["membership"]
    high = {name: bound for name, bound in bounds.items() if bound["prior"] > 0.5}
    return [_explained(bound, reasons[name]) for name, bound in high.items()]


def _explained(bound: Mapping[str, Any], reason: str) -> str:
    prior, gain = bound["prior"], ceil(1e4 * (bound["success"] - bound["prior"])) / 100
    if prior == 1:
        return f'"{bound["question"]}" is answered without any answer of the deployment, or could not be counted.'
    return (
        f'"{bound["question"]}" starts at {percent_up(prior)} before any answer because {reason}; answers add at most '
        f"{gain:.2f} points."
    )


def plural(unit: str) -> str:
    return _PLURALS.get(unit, f"{unit}s")


def plain(sentence: str) -> str:
    """Return a sentence without the marks of Markdown."""
    return sentence.replace("**", "").replace("`", "")


def _listed(values: list[Any]) -> str:
    *first, last = map(str, values)
    return f"{', '.join(first)} or {last}" if first else last
