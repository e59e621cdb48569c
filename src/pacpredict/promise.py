"""The promise of a deployment in sentences: the only place where they are worded.

README, documentation, terminal, server, report, privacy card and `Guarantee` take sentences and caveats from here, so
that no two of them can disagree. Sentences are Markdown in which figures are emphasised; `plain` removes the marks.
"""

from collections.abc import Mapping
from decimal import ROUND_CEILING, Context
from math import ceil, log2, sqrt
from typing import Any, NamedTuple

from pacpredict import defaults
from pacpredict.core.decode import DECODERS_OF, Decoder, NoiseRule
from pacpredict.core.disclosure import success_with_known
from pacpredict.core.vote_rule import VoteRule
from pacpredict.show import factor_up, percent_up

TITLES = ("On average", "At a low false-positive rate", "In every history", "Not promised")

NOT_PROMISED = (
    "The proof does not cover being in the pool from which the training set was drawn, what a single record of the "
    "pool says, such as its label, or what the pool says as a whole."
)
NEVER_TELL = "Never tell anyone, not even the people concerned, whether they were in the training set."

# What answers tell about the pool, which no theorem limits.
FROM_THE_WHOLE_POOL = (
    "At small steps answers come from models of the whole pool, half of which were trained on any "
    "given record."
)
_ABOUT_THE_POOL: Mapping[Decoder, str] = {
    "argmax": "With `argmax`, an answer is the common label where all models agree. Where they disagree it is noisy, "
    "and with three or more labels it follows the vote shares of all models at every step.",
    "map": "With `map`, an answer at a small step is the vote of all models.",
    "sample": "With `sample`, an answer at a small step is drawn in proportion to the votes of all models.",
}
_FAIR_ARGMAX = (
    "With `argmax` and fair noise, an answer is the common label where all models agree, and where they disagree, at a "
    "small step, any of the labels that some model votes for, with equal probability."
)

# What a rule of votes does about that: none of it is a theorem about the pool.
_REDUCES = (
    "This reduces what answers tell about a single record of the pool; it does not remove it, and it proves nothing "
    "about the pool."
)
ABOUT_VOTES: Mapping[VoteRule, str] = {
    "plain": "Votes are plain: an answer may follow what models memorised of a single record.",
    "leave-one-out": "Votes are `leave-one-out`: where one record explains the votes on a query better than chance "
    f"allows, the answer comes from the models that were not trained on it. {_REDUCES}",
    "leave-two-out": "Votes are `leave-two-out`: where one record, or two one after the other, explain the votes on a "
    f"query better than chance allows, the answer comes from the models that were trained on neither. {_REDUCES}",
}

# How far honest use spread the likelihoods of 128 subsets, in units of sqrt(2 B): contested queries of census income,
# and lone dissenters only; the largest of eight runs each (docs/theory.md, 10).
_MEASURED_SPREADS = 7.0, 8.1

_NO_LIMIT = (
    "There is no limit on how far the odds of a statement about the training set move in a single history: the two "
    "sentences above hold on average only."
)
_PLURALS = {"person": "people"}
# The share of all others that honest replies tell, from which on they tell the training set.
_NEARLY_ALL = 0.99


class Promise(NamedTuple):
    """Four sentences: three bounds, and what none of them is about."""

    average: str
    low_false_positives: str
    every_history: str
    not_promised: str

    def titled(self) -> list[tuple[str, str]]:
        """Return each sentence with its title, in the order in which they are read."""
        return list(zip(TITLES, self, strict=True))

    def to_json(self) -> dict[str, str]:
        return {name: plain(sentence) for name, sentence in self._asdict().items()}

    def __str__(self) -> str:
        return "\n".join(f"{title}. {plain(sentence)}" for title, sentence in self.titled())


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
        f"Over the whole life of the deployment, no attacker can determine whether a given {unit} was in the training "
        f"set more than **{percent_up(success)}** of the time; a guess without any answer is right {percent_up(prior)} "
        "of the time.",
        f"At a {percent_up(fpr)} false-positive rate, no test identifies more than **{percent_up(tpr)}** of the "
        f"{units} {who} were in the training set.",
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
        f"{_delta_clause(odds_delta)}."
    )


def _delta_clause(odds_delta: float | None) -> str:
    """Say with which probability the limit on odds fails: nothing where it cannot, both cases where that is open."""
    if odds_delta is None:
        noisy = " and ".join(f"`{name}`" for name in DECODERS_OF["gaussian"])
        return f" (with {noisy}{_delta_clause(defaults.ODDS_DELTA)})"
    if odds_delta == 0:
        return ""
    rounded_up = Context(prec=2, rounding=ROUND_CEILING).create_decimal(repr(odds_delta))
    return f", except with probability {rounded_up:.2g}"


def about_the_pool(decoder: Decoder, noise: NoiseRule | None) -> str:
    """Say what answers by a decoder, with this noise if it has any, tell about the pool."""
    return _FAIR_ARGMAX if decoder == "argmax" and noise == "fair" else _ABOUT_THE_POOL[decoder]


def why_never(n_models: int, rate: float, unit: str) -> str:
    """Say what disclosed memberships tell about all others."""
    bits = round(log2(n_models))
    known = sorted({max(bits - 3, 1), bits, bits + 3, 2 * bits})
    rates = [success_with_known(n_models, n, round(rate * n_models)) for n in known]
    shares = [f"{100 * one:.1f}%" for one in rates]
    # Right about nearly everyone is right about the set only if a guess that ignores the replies is not.
    all_but = rates[-1] > _NEARLY_ALL and rate == 0.5
    conclusion = f" So {known[-1]} honest replies all but publish the training set." if all_but else ""
    return (
        f"{n_models} subsets are only {log2(n_models):.3g} bits: someone who knows the subsets and the membership of "
        f"{_listed(known)} {plural(unit)} guesses the next {unit}'s membership correctly in {_listed(shares)} of "
        f"cases, without asking the model anything.{conclusion}"
    )


def on_erasure(rate: float, unit: str) -> str:
    """Say what fitting again without some records does to everyone who stays."""
    once, twice, sixth = (percent_up(1 - (1 - rate) ** n) for n in (1, 2, 6))
    return (
        f"Removing a {unit} takes a new fit, and for everyone who stays that is a further deployment, with a further "
        f"training set and a further budget: the chance of ever having been trained on rises from {once} to {twice}, "
        f"and after five erasures to {sixth}, with six budgets. Collect requests, fit again rarely, and count every "
        "deployment."
    )


def on_odds_limit(total_budget: float, odds_limit: float) -> list[str]:
    """Say why a limit on odds is proposed, and what a smaller one would cost."""
    low, high = (spreads * sqrt(2 * total_budget) for spreads in _MEASURED_SPREADS)
    why = (
        f"The proposed odds limit, {odds_limit:g}, is 12 sqrt(2 B) for a total of B nats. Honest use does not reach "
        f"it: 7 to 8 sqrt(2 B) was measured, which is {low:.2g} to {high:.2g} here."
    )
    if_smaller = (
        "A smaller one (fit --odds-limit) tightens the third sentence. Contested answers that would pass it then come "
        "from the belief, not from the secret model. With map and sample that costs no accuracy."
    )
    return [why, if_smaller]


def explain_priors(bounds: Mapping[str, Mapping[str, Any]], unit: str) -> list[str]:
    """Say of each attack that succeeds in more than half of all cases without any answer why it does."""
    member, units = bounds["membership"]["prior"], plural(unit)
    uneven = f"subsets do not hold half of the {units}, and a guess can go by that"
    is_shared = bounds["reconstruction"]["prior"] > member  # then several units have a record in common
    reasons = {
        "membership": uneven,
        "group-any": f"each {unit} is in half of the subsets, so few subsets have none of several {units}"
        if member == 0.5
        else uneven,
        "group-exact": "there are few subsets, and few patterns in them",
        "reconstruction": f"several {units} have the same record, and it was trained on if any of them was drawn"
        if is_shared
        else uneven,
        "full-set": "identical subsets count as one",
        "model": "models that gave the same label to everything they were compared on count as one",
    }
    return [_explained(bound, reasons[name]) for name, bound in bounds.items() if bound["prior"] > 0.5]


def _explained(bound: Mapping[str, Any], reason: str) -> str:
    question, prior, success = bound["question"], bound["prior"], bound["success"]
    if prior == 1:
        return f'"{question}" needs no answer of the deployment, or its prior could not be counted.'
    added = ceil(1e4 * (success - prior)) / 100
    return f'"{question}" starts at {percent_up(prior)} because {reason}; answers add at most {added:.2f} points.'


def plural(unit: str) -> str:
    return _PLURALS.get(unit, f"{unit}s")


def plain(sentence: str) -> str:
    """Return a sentence without the marks of Markdown."""
    return sentence.replace("**", "").replace("`", "")


def _listed(values: list[Any]) -> str:
    *first, last = map(str, values)
    return f"{', '.join(first)} or {last}" if first else last
