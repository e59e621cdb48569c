"""Outside of the theorem: is a record in the pool at all? What answers about a record itself tell of that.

Models whose subset lacks a record are what models of a pool without it would be. So the votes on hand show both worlds:
with the record all models vote, and without it those that lack it. Retraining without the record shows the second world
for real. Compared is how often an answer is the record's own label in either, by each decoder and for one unprotected
model.

The attacker who tells the worlds apart knows, of each record, how probable its own label is in either, and whether an
answer is charged: the strongest there can be, of those who see charges and whether labels are the record's own. Beside
it stands what labels tell alone. A charge shows whether all models agree, unless every answer is charged alike. Not
looked at is which of the other labels comes. Of two classes what is computed of one question is exact, given the votes.
Of many, answers are taken to be independent, so that no more are asked than that holds for; but where votes are tied
those of `map` lean together, which is passed over.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from pacpredict import defaults
from pacpredict.audit.estimates import RATES
from pacpredict.audit.subject import Subject
from pacpredict.core.belief import Belief
from pacpredict.core.calibrate import calibrate_votes
from pacpredict.core.decode import NoiseRule
from pacpredict.exceptions import InvalidInput
from pacpredict.learners.learner import Learner
from pacpredict.mechanism.budget import Charging
from pacpredict.training.pool import Pool
from pacpredict.training.subsets import Subsets
from pacpredict.training.train import train
from pacpredict.types import BoolArray, FloatArray, IntArray, Votes

# One unprotected model, which was trained on the record or was not; then the decoders.
Answerer = Literal["one model", "argmax", "sample", "map"]
ANSWERERS: tuple[Answerer, ...] = ("one model", "argmax", "sample", "map")
# What an attacker looks at. Every reply says what it was charged.
Sees = Literal["labels", "labels and charges"]
SEES: tuple[Sees, ...] = ("labels", "labels and charges")
# Imperceptible variants of a record that are asked about at most, each answered anew.
N_VARIANTS = 1000
# By how much the belief may move while they are asked: so much more than a binomial number the count of labels varies.
_DRIFT = 0.01
# Draws by which probabilities are estimated where more than two classes are voted for.
N_DRAWS = 4000
# False positive rates of a curve, evenly spread over a logarithmic axis.
_CURVE = np.geomspace(RATES[-1], 1.0, 33)


class Presence(NamedTuple):
    """What answers about some records tell of their being in the pool."""

    answerer: Answerer
    step_budget: float
    records: int
    questions: int  # about each record
    sees: Sees
    own_label_in: float  # how often an answer is the record's own label, with it in the pool
    own_label_out: float  # and without
    charged_in: (
        float | None
    )  # share of the records whose answers are charged; None of a model that charges nothing
    charged_out: float | None
    advantage: float  # of the best test: true less false positives
    tpr: list[float]  # at the false positive rates of estimates.RATES
    curve: list[tuple[float, float]]  # of the best test, false and true positive rates


class Worlds(NamedTuple):
    """Votes on some records in both worlds, who was trained on them, and their own labels."""

    inside: Votes  # (n_records, n_models)
    outside: Votes  # (n_records, n_models), or those of a half of them
    trained_on: BoolArray  # (n_records, n_models), of the models inside
    labels: IntArray
    plain: "Worlds | None" = None  # with the votes of the models themselves, if these count otherwise


def worlds_on_hand(subject: Subject, records: IntArray) -> Worlds:
    """Take the models whose subset lacks a record for those of a pool without it."""
    votes, trained_on = subject.votes[records], subject.membership.T[subject.units[records]]
    lacking = np.unique((~trained_on).sum(axis=1))
    if lacking.size != 1 or lacking[0] == 0:
        raise InvalidInput("records must be in the same share of subsets each, and not in all")
    plain = subject.plain[records]
    outside = plain[~trained_on].reshape(len(records), int(lacking[0]))
    models = Worlds(plain, outside, trained_on, subject.labels[records])
    if subject.rule == "plain":
        return models
    counted = [
        subject.count(row[None], subject.membership[~own])[0]
        for row, own in zip(outside, trained_on, strict=True)
    ]
    return models._replace(inside=votes, outside=np.stack(counted), plain=models)


def memorised(subject: Subject) -> FloatArray:
    """Return, of each record, how much more often models that were trained on it give its own label than others."""
    own = subject.plain == subject.labels[:, None]
    trained_on = subject.membership.T[subject.units]
    n_in = trained_on.sum(axis=1)
    inside = (own & trained_on).sum(axis=1) / np.maximum(n_in, 1)
    outside = (own & ~trained_on).sum(axis=1) / np.maximum(subject.n_models - n_in, 1)
    return np.asarray(inside - outside)


def retrain_without(
    learner: Learner,
    pool: Pool,
    subsets: Subsets,
    seed: int,
    units: IntArray,
    *,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Callable[[IntArray], Votes]:
    """Train all models again without some units, in the same subsets of all others; returns what votes on records."""
    keep = np.ones(pool.units.count, np.bool_)
    keep[units] = False
    rest = pool.part(keep[pool.units.of_record])
    without = Subsets.of(subsets.matrix()[:, keep])
    models = {}
    for i, fitted in train(learner, rest, without, seed, range(subsets.n_models), n_jobs=n_jobs):
        models[i] = fitted
        if progress is not None:
            progress(len(models), subsets.n_models)
    in_order = [models[i] for i in range(subsets.n_models)]
    voter = learner.voter(
        [one.model for one in in_order], [one.classes for one in in_order], len(pool.classes), pool.schema
    )

    def votes(records: IntArray) -> Votes:
        return np.ascontiguousarray(
            voter.votes(learner.prepare(pool.schema, pool.rows.take(records))), np.int16
        )

    return votes


def n_variants(step_budget: float) -> int:
    """Return how many variants may be asked about while each answer is as if it were the first; 1: none but the record.

    Answers move the belief, and later ones follow it: after many large steps they all are what the secret says. Of a
    label with mass w the mass varies by 2 b n w (1 - w) after n answers, and the mean of n labels by w (1 - w) / n.
    """
    return max(1, min(N_VARIANTS, math.isqrt(int(_DRIFT / (2 * step_budget)))))


class Rates(NamedTuple):
    """How an answer about each record looks, with it in the pool and without."""

    inside: FloatArray  # how probably it is the record's own label
    outside: FloatArray
    charged_inside: BoolArray | None = None  # whether it is charged; None of a model that charges nothing
    charged_outside: BoolArray | None = None

    def told_by_charge(self) -> BoolArray:
        """Tell of which records a charge alone says whether they are in the pool."""
        if self.charged_inside is None or self.charged_outside is None:
            return np.zeros(self.inside.size, np.bool_)
        return self.charged_inside != self.charged_outside


def rates_of(
    worlds: Worlds,
    answerer: Answerer,
    step_budget: float,
    charging: Charging = defaults.CHARGING,
    *,
    noise: NoiseRule = defaults.NOISE,
    n_draws: int = N_DRAWS,
) -> Rates:
    if answerer == "one model":
        worlds = worlds.plain or worlds
        own_vote = worlds.inside == worlds.labels[:, None]
        inside = (own_vote & worlds.trained_on).sum(axis=1) / worlds.trained_on.sum(axis=1)
        return Rates(inside, np.asarray((worlds.outside == worlds.labels[:, None]).mean(axis=1)))
    both = (worlds.inside, worlds.outside)
    inside, outside = (
        own_label_rates(votes, worlds.labels, answerer, step_budget, noise, n_draws) for votes in both
    )
    return Rates(inside, outside, *(is_charged(votes, charging) for votes in both))


def is_charged(votes: Votes, charging: Charging) -> BoolArray:
    """Tell which records' answers are charged while the budget lasts and no limit on odds is near."""
    return np.asarray((votes.min(axis=1) < votes.max(axis=1)) | (charging == "flat"))


def measure(
    rates: Rates, answerer: Answerer, step_budget: float, n_questions: int = 1, sees: Sees = "labels"
) -> Presence:
    """Say how well the best test tells, by answers about a record, whether it is in the pool."""
    told = rates.told_by_charge() if sees == "labels and charges" else None
    advantage, tpr, curve = tell_apart(rates.inside, rates.outside, n_questions, told)
    return Presence(
        answerer,
        step_budget,
        rates.inside.size,
        n_questions,
        sees,
        float(rates.inside.mean()),
        float(rates.outside.mean()),
        _share(rates.charged_inside),
        _share(rates.charged_outside),
        advantage,
        tpr,
        curve,
    )


def _share(charged: BoolArray | None) -> float | None:
    return None if charged is None else float(charged.mean())


def own_label_rates(
    votes: Votes,
    labels: IntArray,
    decode: Answerer,
    step_budget: float,
    noise: NoiseRule = defaults.NOISE,
    n_draws: int = N_DRAWS,
) -> FloatArray:
    """Return, of each record, how probably an answer at the beginning of a history is its own label."""
    share = np.asarray((votes == labels[:, None]).mean(axis=1))
    n_voted = np.array([np.unique(row).size for row in votes])
    rates = np.where(n_voted > 1, share, share.round())  # all say the label, or none does
    if decode == "sample":  # its labels are distributed as the votes are
        return rates
    for i in np.flatnonzero((n_voted > 1) & (share > 0)):
        if n_voted[i] == 2:
            rates[i] = _rate_of_two(float(share[i]), decode, step_budget)
        else:
            rates[i] = _rate_by_drawing(votes[i], int(labels[i]), decode, step_budget, noise, n_draws)
    return rates


def _rate_of_two(share: float, decode: Answerer, b: float) -> float:
    """Return how probably a label with this share of the belief, of two, is decoded from a noisy release."""
    d = math.sqrt(2 * b / (share * (1 - share)))  # distance of the two points in deviations of the noise
    lean = 0.0 if decode == "argmax" else math.log(share / (1 - share)) / d
    return share * _phi(lean + d / 2) + (1 - share) * _phi(lean - d / 2)


def _phi(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


def _rate_by_drawing(
    votes: Votes, label: int, decode: Answerer, b: float, rule: NoiseRule, n_draws: int
) -> float:
    """Estimate the same among more labels."""
    belief, n_classes = Belief.uniform(votes.size), int(votes.max()) + 1
    noise = calibrate_votes(votes, n_classes, belief, b, noise=rule)
    rng = np.random.default_rng(0)
    secrets = rng.integers(votes.size, size=n_draws)
    noisy = noise.coordinates[secrets] + np.sqrt(noise.variances) * rng.standard_normal(
        (n_draws, noise.variances.size)
    )
    classes, first, counts = np.unique(votes, return_index=True, return_counts=True)
    if decode == "argmax":
        vectors = noise.centre + noisy @ noise.axes
        return float((vectors.argmax(axis=1) == label).mean())
    points = noise.coordinates[first] / noise.variances
    gains = noisy @ points.T - 0.5 * (points * noise.coordinates[first]).sum(axis=1) + np.log(counts)
    return float((classes[gains.argmax(axis=1)] == label).mean())


def tell_apart(
    inside: FloatArray, outside: FloatArray, n_questions: int, told: BoolArray | None = None
) -> tuple[float, list[float], list[tuple[float, float]]]:
    """Return the advantage of the best test, its true positives at low false ones, and its curve, over all records.

    Seen is how many of the answers are the record's own label: a binomial number in either world. The best test says
    "in" where the likelihood ratio is largest; where several outcomes tie at the threshold it says so at random. Of
    records that are `told` something else is seen, too, that is never the same in both worlds.
    """
    from scipy.stats import binom  # noqa: PLC0415  # takes time to import

    counts = np.arange(n_questions + 1)
    of_in = binom.pmf(counts, n_questions, np.clip(inside, 0, 1)[:, None]) / inside.size
    of_out = binom.pmf(counts, n_questions, np.clip(outside, 0, 1)[:, None]) / outside.size
    if told is not None:
        apart = of_out[told]
        of_out[told] = 0.0  # what is seen then is seen with the record in the pool only
        of_in, of_out = (np.concatenate(parts) for parts in ((of_in, 0 * apart), (of_out, apart)))
    of_in, of_out = of_in.ravel(), of_out.ravel()
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(of_in > 0, of_in / of_out, 0.0)
    order = np.argsort(-ratio, kind="stable")
    false = np.concatenate([[0.0], np.cumsum(of_out[order])])
    true = np.concatenate([[0.0], np.cumsum(of_in[order])])
    found = np.interp([*RATES, *_CURVE], *_upper(false, true)).tolist()
    curve = list(zip(_CURVE.tolist(), found[len(RATES) :], strict=True))
    return float(np.max(true - false)), found[: len(RATES)], curve


def _upper(false: FloatArray, true: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Keep, of points with the same false positive rate, the highest."""
    last = np.append(np.diff(false) > 0, True)
    return false[last], true[last]
