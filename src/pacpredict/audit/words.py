"""What an audit comes to, in words, and as plain values for programs."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

from pacpredict.audit.adversaries import Adversary, Duel
from pacpredict.audit.estimates import RATES, TruePositives, least_to_tell
from pacpredict.audit.membership import Inference
from pacpredict.audit.power import POWER, noticeable_games, noticeable_means
from pacpredict.audit.presence import N_VARIANTS, SEES, Answerer, Presence
from pacpredict.audit.run import Audit
from pacpredict.core.decode import DECODERS
from pacpredict.mechanism.budget import Charging

ASSUMED = (
    "The attacker knows all records, subsets, models and code, and the whole history. Hidden are secret and chance.",
    "Secrets of the simulated futures are drawn evenly from all subsets, as the deployment's was.",
    "A variant of a record that nobody perceives as another gets the same votes, and is answered anew.",
    "Adversaries who are after one target choose from the questions that tell most about it at first.",
    "They have a larger total than the deployment: at its own, chance would hide what they achieve.",
)
NOT_TESTED = (
    "Side channels: times, memory, backups, and whoever can read the secret's file.",
    "This deployment's own secret, ledger and server: the self-test opens sessions of its own.",
    "A mechanism that notices that it is being tested, and breaches smaller than the self-test says it would notice.",
    "Other deployments over the same records.",
    "Questions that no search of this audit found. The ceilings hold for these, too.",
    "Whether a record is in the pool, of which nothing is promised: by times, or by which of the other labels comes.",
)
# The rate of false alarms at which words speak of the pool.
POOL_RATE = 0.001
# Games from which a share of the way to a ceiling is told: with fewer an interval reaches over more than half of it.
_LEAST_FOR_SHARE = 200
# What each adversary who is after one unit asks.
ADVERSARIES: dict[Adversary, str] = {
    "random": "the pool's records at random, as the paper's attacker does",
    "divided": "what divides the belief most evenly",
    "memorised": "again and again what tells most about the target at first, changed imperceptibly",
    "targeted": "what tells most about the target by now, chosen anew after every answer",
    "search": "likewise, after a search for inputs that tell more about it than any record does",
}
_KINDS = {"remembered": "those remembered best", "ordinary": "ordinary ones"}


def broken(audit: Audit) -> Iterator[str]:
    """Say what contradicts what is promised; nothing, if all is well."""
    for found in (*audit.inferences, audit.larger):
        yield from _broken_future(found)
    for attack in (*audit.attacks, *audit.larger_attacks):
        if attack.success.passes(attack.ceiling):
            yield f"{attack.question!r} succeeded in {show(attack.success.value)}, at most {show(attack.ceiling)}"
    for duel in audit.duels:
        yield from _broken_duel(duel)
    yield from (
        f"self-test {one.check!r} failed ({one.statement}): {one.seen}"
        for one in audit.self_test
        if one.holds is False
    )


def _broken_future(found: Inference) -> Iterator[str]:
    for look in found.looks:
        if look.success.passes(look.ceiling):
            yield (
                f"membership was told in {show(look.success.value)} of cases after {look.queries:,} questions "
                f"({found.strategy}), and at most {show(look.ceiling)} is promised"
            )
    yield from _too_many_found(found.true_positives, found.strategy)
    charged = found.looks[-1].charged_nats
    if found.information.passes(charged):
        yield f"{found.information.value:.3g} nats were learnt on average, and {charged:.3g} charged ({found.strategy})"
    if found.limit is not None and found.beyond.passes(found.delta):
        yield f"log-odds moved by {found.largest_spread:.3g} in a future that claims a limit of {found.limit:g}"


def _broken_duel(duel: Duel) -> Iterator[str]:
    if duel.success.passes(duel.ceiling):
        yield (
            f"the adversary {duel.adversary} succeeded in {show(duel.success.value)} of games, and at most "
            f"{show(duel.ceiling)} is promised"
        )
    yield from _too_many_found(duel.true_positives, f"the adversary {duel.adversary}")
    if duel.limit is not None and duel.beyond.passes(duel.delta):
        yield f"log-odds moved by {duel.largest_spread:.3g} in a game that claims a limit of {duel.limit:g}"


def _too_many_found(points: Iterable[TruePositives], who: str) -> Iterator[str]:
    for point in points:
        if point.passes():
            yield (
                f"{show(point.tpr.value)} of members were found at {show(point.fpr)} false alarms ({who}), and at "
                f"most {show(point.ceiling)} is promised"
            )


def unsure(audit: Audit) -> Iterator[str]:
    """Say what could not have contradicted a promise, whatever this deployment does: it says nothing in its favour."""
    for found in (*audit.inferences, audit.larger):
        wanted = least_to_tell(found.looks[-1].ceiling, of_means=True)
        if wanted is not None and found.trials < wanted:
            yield (
                f"{found.trials:,} futures ({found.strategy}) are too few to tell: {wanted:,} could show a success "
                f"above {show(found.looks[-1].ceiling)}."
            )
    for duel in audit.duels:
        wanted = least_to_tell(duel.ceiling, of_means=False)
        if wanted is not None and duel.runs < wanted:
            yield (
                f"{duel.runs:,} games of an adversary are too few to tell: {wanted:,} could show a success above "
                f"{show(duel.ceiling)}."
            )
    skipped: dict[str, list[str]] = {}
    for one in audit.self_test:
        if one.holds is None:
            skipped.setdefault(one.seen.removeprefix("not checked: "), []).append(one.check)
    yield from (f"Not checked by the self-test: {', '.join(skipped[why])}; {why}." for why in skipped)


def verdict(audit: Audit) -> list[str]:
    """Say in a few sentences what was found."""
    wrong, open_ones = (list(dict.fromkeys(said(audit))) for said in (broken, unsure))
    if wrong:
        n_wrong = "1 finding" if len(wrong) == 1 else f"{len(wrong)} findings"
        head = f"This deployment does not keep what is promised of it: {n_wrong}."
        return [head, *wrong, *open_ones]
    head = (
        "This audit cannot tell whether the deployment keeps what is promised of it."
        if open_ones
        else "Nothing was found that contradicts what is promised."
    )
    last = audit.inferences[0].looks[-1]
    strongest = max(audit.duels, key=lambda one: one.success.value)
    on_average = (
        f"After {last.queries:,} questions on which models differ, the optimal attacker tells membership in "
        f"{show(last.success.value)} of cases ({show(last.success.low)} to {show(last.success.high)}); the ceiling is "
        f"{show(last.ceiling)}."
        + (
            " The interval reaches beyond it: more trials would say more."
            if last.success.high > last.ceiling
            else ""
        )
    )
    at_worst = (
        f"With a total of {strongest.total_nats:.3g} nats, the strongest adversary who is after one "
        f"{audit.about['unit']} ({strongest.adversary}, after {_KINDS[strongest.targets]}) succeeds in "
        f"{show(strongest.success.value)} of {strongest.runs:,} games ({show(strongest.success.low)} to "
        f"{show(strongest.success.high)}); the ceiling is {show(strongest.ceiling)}{_share_of_the_way(strongest)}."
    )
    return [head, *open_ones, *noticeable(audit), on_average, at_worst]


def noticeable(audit: Audit) -> Iterator[str]:
    """Say how large a breach would have been noticed: that nothing was found says no more than this."""
    seen: list[str] = []
    for found in (audit.inferences[0], audit.larger):
        ceiling, nats = found.looks[-1].ceiling, f"{found.looks[-1].charged_nats:.3g} nats"
        if ceiling >= 1:
            yield f"After {nats} nothing is promised about membership, so that no success could contradict it."
        if (least := noticeable_means(found.trials, ceiling)) is not None:
            seen.append(
                f"by {found.trials:,} futures of {nats} from {show(least.alike)} on if it is the same in all of them, "
                f"and from {show(least.all_or_nothing)} on if everybody is told in some and nobody in the others "
                f"(promised: {show(ceiling)})"
            )
    duel = max(audit.duels, key=lambda one: one.ceiling)  # all have as many games
    if (rate := noticeable_games(duel.runs, duel.ceiling)) is not None:
        whom = f"an adversary who is after one {audit.about['unit']}"
        seen.append(f"by {duel.runs:,} games of {whom} from {show(rate)} on (promised: {show(duel.ceiling)})")
    if seen:
        yield (
            "A success above what is promised would have been noticed, with a chance of "
            f"{100 * POWER:.0f} %: {'; '.join(seen)}. A smaller breach may pass."
        )
    if by_self_test := [one.noticeable for one in audit.self_test if one.noticeable]:
        yield f"The self-test would have noticed, with the same chance: {'; '.join(by_self_test)}."


def _share_of_the_way(duel: Duel) -> str:
    if duel.runs < _LEAST_FOR_SHARE:
        return ""
    share = (duel.success.value - 0.5) / max(duel.ceiling - 0.5, 1e-9)
    return f", and that is {100 * share:.0f} % of the way there from a coin"


def name_of(one: Duel) -> str:
    """Return an adversary's name, and what is particular about the game."""
    seen = "" if one.sees == "history" else ", sees labels"
    limited = "" if one.limit is None else ", odds limited"
    return f"{one.adversary}{seen}{limited}"


def pool_in_words(audit: Audit) -> list[str]:
    """Say what the deployment's own answers tell about being in the pool, and which decoder would tell least."""
    decoder, step = audit.about["decoder"], audit.about["step_budget_nats"]
    name, found = _to_speak_of(audit)
    model = next(one for one in found if one.answerer == "one model")
    rates = {
        (one.sees, one.questions, one.answerer): _found(one)
        for one in found
        if one.step_budget == step and one is not model
    }
    numbers = sorted({n for _, n, _ in rates})
    by_charges, by_labels = (
        " and ".join(show(rates[seen, n, decoder]) for n in numbers) for seen in reversed(SEES)
    )
    return [
        (
            f"Of {name}: whoever asks about a record once{_often(numbers)} finds {by_charges} to be in the pool by "
            f"labels and charges of `{decoder}`, at {show(POOL_RATE)} false alarms, and by labels alone {by_labels}. "
            f"One unprotected model tells {show(_found(model))}.{_beyond(numbers)}"
        ),
        _charges_in_words(audit.about["charging"], next(one for one in found if one is not model)),
        _least_in_words({n: {one: rates[SEES[-1], n, one] for one in DECODERS} for n in numbers}),
    ]


def _often(numbers: list[int]) -> str:
    return (
        f", or about {numbers[-1]:,} variants of it that nobody would tell apart," if len(numbers) > 1 else ""
    )


def _beyond(numbers: list[int]) -> str:
    measured = numbers[-1] == N_VARIANTS
    return (
        "" if measured else " More variants were not measured: at this step their answers follow one another."
    )


def _to_speak_of(audit: Audit) -> tuple[str, list[Presence]]:
    """Return what was found of those remembered best: by training again, if that was done, else by votes on hand."""
    named = list(audit.presences.items())
    return named[-1 if audit.plan.n_retrained else 0]


def _charges_in_words(charging: Charging, one: Presence) -> str:
    if charging == "flat" or one.charged_in is None or one.charged_out is None:
        return (
            "Every answer is charged alike here, so that charges tell nothing, while the budget lasts and no limit on "
            "odds is near."
        )
    return (
        "A charge tells whether all models agree, whichever decoder answers: of these records "
        f"{show(one.charged_in)} are charged for with the record in the pool, and {show(one.charged_out)} without. "
        "With `--charging flat` charges would tell nothing while the budget lasts."
    )


def _least_in_words(by_number: dict[int, dict[Answerer, float]]) -> str:
    least = {n: min(rates, key=lambda one: rates[one]) for n, rates in by_number.items()}
    once, often = least[1], least[max(least)]
    which = (
        f"`{once}` tells least of the three decoders"
        if once == often
        else f"`{once}` tells least of the three decoders by one question, and `{often}` by many"
    )
    rates = " and ".join(show(by_number[n][one]) for n, one in least.items())
    return (
        f"Here {which}: {rates}. Where being in the pool is the secret, take what tells least, with a small step, and "
        "limit how much each client may ask. This is measured, not proved."
    )


def _found(one: Presence) -> float:
    return one.tpr[RATES.index(POOL_RATE)]


def show(rate: float) -> str:
    return f"{100 * rate:.2f} %" if rate >= 0.01 or rate == 0 else f"{100 * rate:.2g} %"


def to_json(audit: Audit) -> dict[str, Any]:
    """Return all of it for programs, with the verdict; whether all holds is null where that cannot be told."""
    return {
        "holds": False if any(broken(audit)) else None if any(unsure(audit)) else True,
        "verdict": verdict(audit),
        "about_the_pool": pool_in_words(audit),
        **plain(audit),
        "assumed": ASSUMED,
        "not_tested": NOT_TESTED,
    }


def plain(value: Any) -> Any:
    """Turn records into objects by name; JSON has no infinity."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "_asdict"):
        return {name: plain(part) for name, part in value._asdict().items()}
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
