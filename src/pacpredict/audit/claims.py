"""A lint for claims: lives of a deployment are played, and what they did is held against what is claimed of them.

Checked is, in lives that draw from a seeded generator, that

    noise        is at least what the budget and the belief ask for, and new in every release
    belief       is the posterior that follows from what was released, and from nothing else
    labels       follow from what was released, and are those of all models where these agree
    draws        of labels that the belief answers with are as likely as it says, whatever the secret is
    charges      are made for every release that could tell something, and nothing is released beyond the total
    information  about the secret is on average no more than what was charged
    odds         of no two subsets move against each other beyond the limit
    success      of the attack on the target is no more than promised

and of what is served, which no seed repeats, that

    served       lives that draw from the operating system's entropy, at the deployment's own step, have no less noise,
                 nor other labels
    entropy      gives independent standard normals and evenly distributed numbers
"""

import itertools
import math

import numpy as np

from pacpredict.audit.estimates import (
    LEVEL,
    Estimate,
    Finding,
    clopper_pearson,
    mean_of,
    students_mean,
    success_ceiling,
    variance_of,
)
from pacpredict.audit.lives import Begin, Life, Scene, Seen, set_scene
from pacpredict.audit.power import POWER, noticeable_variance
from pacpredict.audit.randomness import FALSE_ALARM, check_entropy
from pacpredict.mechanism.budget import Budget
from pacpredict.types import BoolArray, Votes

N_LIVES = 60
# Lives that are played at most to tell whether labels through a channel follow the secret twice as closely as they are
# said to. At 0.125 nats each some sixty tell it on average, of an honest mechanism and of one that is not.
_MOST_LIVES = 480
_ENOUGH_EVIDENCE = math.log(2 / (1 - LEVEL))
# Lives as they are served. Their hundred releases or more show whether there is noise; how much, the others do.
_N_SERVED = 8
# Of a source that is new in every release this many have the size of another at most (see `Seen.repeats`).
_MOST_REPEATS = 1
# What lives are held against.
_PLAYED = ("noise", "belief", "labels", "draws", "charges", "information", "odds", "success", "served")


def examine(
    begin: Begin,
    claimed: Budget,
    votes: Votes,
    membership: BoolArray,
    *,
    finite: bool,
    seed: int,
    n_lives: int = N_LIVES,
    served: Budget | None = None,
) -> list[Finding]:
    """Play lives and say of each claim whether it holds, or that it was not checked.

    `served` is what is claimed of lives that draw from the operating system, if that is another budget.
    """
    two = _two_sided(votes)
    if not two.any():
        why = "not checked: there is no question on which models give exactly two labels"
        return [*(Finding(claim, None, why) for claim in _PLAYED), check_entropy()]
    scene = set_scene(votes[two], membership, claimed, finite)
    seen, as_served, rng = Seen(), Seen(), np.random.default_rng(seed)
    targets = itertools.cycle(scene.targets.tolist())
    for life in range(n_lives):
        Life(begin, scene, rng, seen, None if life % 2 else next(targets)).play()
    further = Seen(
        evidence=seen.evidence
    )  # how many more there are depends on what was seen: other claims stay apart
    for life in range(n_lives, _MOST_LIVES if finite else n_lives):
        if abs(further.evidence) >= _ENOUGH_EVIDENCE:
            break
        Life(begin, scene, rng, further, None if life % 2 else next(targets)).play()
    seen.evidence = further.evidence
    outside = scene._replace(claimed=served or claimed)
    for _ in range(_N_SERVED):
        Life(begin, outside, rng, as_served, next(targets), is_served=True).play()
    return [*_judge(scene, seen), _judge_served(outside, as_served), check_entropy()]


def _two_sided(votes: Votes) -> BoolArray:
    """Tell which queries have exactly two voted labels."""
    low, high = votes.min(axis=1), votes.max(axis=1)
    is_either = (votes == low[:, None]) | (votes == high[:, None])
    return np.asarray((low < high) & is_either.all(axis=1))


def _judge(scene: Scene, seen: Seen) -> list[Finding]:
    claimed = scene.claimed
    gained = students_mean(np.subtract(seen.learnt, seen.charged))
    findings = [
        _judge_noise(scene, seen),
        Finding(
            "belief",
            not seen.astray,
            f"after {seen.astray:,} answers it was not what follows from what was released and the claimed noise",
        ),
        Finding(
            "labels", not seen.mislabelled, f"{seen.mislabelled:,} that do not follow from what was released"
        ),
        _judge_draws(seen),
        Finding(
            "charges",
            not seen.uncharged and not seen.beyond_total,
            f"{seen.uncharged:,} releases without a charge, {seen.beyond_total:,} beyond the total",
        ),
        Finding(
            "information",
            not gained.low > 0,
            f"{np.mean(seen.learnt):.4f} nats learnt, {np.mean(seen.charged):.4f} charged, on average",
        ),
    ]
    if claimed.odds_limit is not None:
        beyond = sum(spread > claimed.odds_limit for spread in seen.largest)
        delta = 0.0 if scene.finite else claimed.odds_delta
        kept = not beyond or clopper_pearson(beyond, len(seen.largest)).low <= delta
        words = f"beyond the limit of {claimed.odds_limit:g} in {beyond} of {len(seen.largest)} lives"
        findings.append(Finding("odds", kept, words))
    right = clopper_pearson(sum(seen.right), len(seen.right))
    share = scene.membership[:, scene.targets].mean(axis=0)
    ceiling = success_ceiling(
        claimed.total,
        float(np.maximum(share, 1 - share).max()),
        claimed.odds_limit,
        0.0 if scene.finite else claimed.odds_delta,
    )
    words = f"{right.value:.3f} ({right.low:.3f} to {right.high:.3f}, level {LEVEL}), at most {ceiling:.3f}"
    return [*findings, Finding("success", not right.passes(ceiling), words)]


def _judge_noise(scene: Scene, seen: Seen) -> Finding:
    surplus = [_mean_surplus(values, scene.finite) for values in seen.surplus.values() if values]
    if not surplus:
        return Finding("noise", None, "not checked: nothing was released")
    shown = ", ".join(f"{one.value:+.3f} ({one.low:+.3f} to {one.high:+.3f})" for one in surplus)
    words = f"beyond what is claimed, by {'labels' if scene.finite else 'variance'}: {shown}"
    is_enough = all(one.high >= 0 for one in surplus) and not seen.too_coupled
    if scene.finite:
        is_closer = seen.evidence >= _ENOUGH_EVIDENCE
        told = (
            "it was"
            if is_closer
            else "it was not"
            if -seen.evidence >= _ENOUGH_EVIDENCE
            else "nobody can tell"
        )
        words += f"; twice as close to the secret as is claimed: {told}"
        return Finding("noise", is_enough and not is_closer, words)
    follows, repeats = students_mean(seen.products()), seen.repeats()
    most = noticeable_variance(max(map(len, seen.surplus.values())))
    words += (
        f"; less than {most:.2f} of the claimed variance would have been noticed in {100 * POWER:.0f} % of audits"
        f"; correlation of two in turn {follows.value:+.3f} ({follows.low:+.3f} to {follows.high:+.3f})"
        f"; {repeats:,} that came again"
    )
    is_new = follows.low <= 0 <= follows.high and repeats <= _MOST_REPEATS
    return Finding("noise", is_enough and is_new, words)


def _mean_surplus(values: list[float], finite: bool) -> Estimate:
    if finite:
        return _mean_difference(values)
    return Estimate(*(one - 1 for one in variance_of(np.add(values, 1))))


def _judge_draws(seen: Seen) -> Finding:
    if not seen.own:
        return Finding("draws", None, "not checked: the belief answered nothing")
    own, likelier = (_mean_difference(values) for values in (seen.own, seen.likelier))
    return Finding(
        "draws",
        all(one.low <= 0 <= one.high for one in (own, likelier)),
        f"of {len(seen.own):,} answers of the belief the share with the secret's label was {own.value:+.3f} from what "
        f"the belief says ({own.low:+.3f} to {own.high:+.3f}), with the likelier label {likelier.value:+.3f} "
        f"({likelier.low:+.3f} to {likelier.high:+.3f})",
    )


def _mean_difference(values: list[float], level: float = LEVEL) -> Estimate:
    """Return the mean of differences of two probabilities; each may depend on those before, if its mean does not."""
    return Estimate(*(2 * one - 1 for one in mean_of((np.asarray(values) + 1) / 2, level)))


def _judge_served(scene: Scene, seen: Seen) -> Finding:
    """Judge what no seed repeats: hardly ever wrongly, and without numbers, so that two audits say the same."""
    wrong = []
    surplus = [value for values in seen.surplus.values() for value in values]
    if not surplus:
        return Finding("served", None, "not checked: nothing was released")
    if not _has_noise(surplus, scene.finite):
        wrong.append("less noise than is claimed")
    turns = np.sign(seen.products()).tolist()
    if seen.repeats() > _MOST_REPEATS or (turns and not _is_fair(turns)):
        wrong.append("noise that follows from other noise")
    if seen.own and not (_is_fair(seen.own) and _is_fair(seen.likelier)):
        wrong.append("the belief's answers are not drawn from it")
    if seen.astray or seen.mislabelled:
        wrong.append("belief or labels do not follow from what was released")
    words = ", ".join(wrong) or "noise, labels and belief as claimed"
    return Finding("served", not wrong, f"{_N_SERVED} lives that draw from the operating system: {words}")


def _is_fair(differences: list[float]) -> bool:
    """Tell whether differences are 0 on average, as far as chance allows."""
    mean = _mean_difference(differences, 1 - FALSE_ALARM)
    return mean.low <= 0 <= mean.high


def _has_noise(surplus: list[float], finite: bool) -> bool:
    """Tell whether releases have the noise that is claimed, as far as chance allows."""
    from scipy.special import gammainc  # noqa: PLC0415  # takes time to import

    if finite:
        return _mean_difference(surplus, 1 - FALSE_ALARM).high >= 0
    # Squares of so many standard normals, if the variance is what is claimed.
    return bool(gammainc(len(surplus) / 2, (np.sum(surplus) + len(surplus)) / 2) >= FALSE_ALARM)
