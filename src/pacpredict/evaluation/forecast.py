"""From votes on held-out records to what private answers would be worth."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from operator import add
from typing import Any

import numpy as np

from pacpredict import defaults
from pacpredict.core.decode import DECODERS_OF, Decoder, NoiseRule
from pacpredict.core.simulate import simulate
from pacpredict.evaluation.crossfit import Fold
from pacpredict.evaluation.score import Score
from pacpredict.types import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Case:
    """Private answers by one decoder at one budget.

    `sd` is the standard deviation of the accuracy of one deployment that is asked about as many records as were held
    out at a time: over its secret and its noise, and over which records these are.
    """

    decode: Decoder
    step_budget: float  # nats
    accuracy: float
    sd: float
    score: Score
    where_contested: float  # accuracy on the records on which models differ

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("decode", "step_budget", "accuracy", "sd")}


@dataclass(frozen=True, eq=False)
class Forecast:
    """What one learner would be worth in a deployment, and without one."""

    unprotected: Score  # of one model on all records
    half: Score  # of a model on half of them, without noise
    contested: float  # the share of records on which not all models agree
    half_where_contested: float
    cases: tuple[Case, ...]

    @property
    def majority(self) -> float:
        """The accuracy of always answering with the most frequent class."""
        sizes = self.unprotected.confusion.sum(axis=1)
        return float(sizes.max() / sizes.sum())

    def case(self, decode: Decoder, step_budget: float) -> Case:
        return next(one for one in self.cases if (one.decode, one.step_budget) == (decode, step_budget))


def forecast(
    folds: Iterable[Fold],
    n_classes: int,
    step_budgets: Sequence[float],
    *,
    n_trials: int,
    seed: int,
    noise: NoiseRule = defaults.NOISE,
    n_jobs: int | None = None,
) -> Forecast:
    """Simulate deployments that answer the held-out records, each once; `n_trials` secrets for each fold and budget."""
    given = list(folds)
    differ = [fold.votes.min(axis=1) < fold.votes.max(axis=1) for fold in given]
    alone = [Score.of(fold.truth, fold.unprotected[None, :], n_classes) for fold in given]
    halves = [Score.of(fold.truth, fold.votes.T, n_classes) for fold in given]
    right = [(fold.votes == fold.truth[:, None]).mean(axis=1) for fold in given]
    cases = []
    for step, (mechanism, decoders) in product(step_budgets, DECODERS_OF.items()):
        runs = [
            simulate(
                fold.votes,
                fold.truth,
                step,
                n_trials=n_trials,
                seed=seed + i,
                mechanism=mechanism,
                noise=noise,
                n_classes=n_classes,
                keep_answers=True,
                n_jobs=n_jobs,
            ).answers
            or {}
            for i, fold in enumerate(given)
        ]
        cases += [
            _case(decode, step, given, [run[decode] for run in runs], differ, n_classes)
            for decode in decoders
        ]
    return Forecast(
        reduce(add, alone),
        reduce(add, halves),
        float(np.concatenate(differ).mean()),
        _mean_where(right, differ),
        tuple(cases),
    )


def _case(
    decode: Decoder,
    step: float,
    folds: Sequence[Fold],
    answers: Sequence[Any],
    differ: Sequence[BoolArray],
    n_classes: int,
) -> Case:
    score = reduce(
        add, (Score.of(fold.truth, given, n_classes) for fold, given in zip(folds, answers, strict=True))
    )
    right = [given == fold.truth for fold, given in zip(folds, answers, strict=True)]  # (n_trials, n) each
    of_record = [fold.mean(axis=0) for fold in right]
    return Case(
        decode, step, score.accuracy, _deviation(right, of_record), score, _mean_where(of_record, differ)
    )


def _deviation(right: Sequence[BoolArray], of_record: Sequence[FloatArray]) -> float:
    """Return the deviation of one deployment's accuracy, by the law of total variance.

    Given the records, accuracy varies with secret and noise, as the trials do. Which records are asked about adds the
    variance of their mean.
    """
    over_trials = float(np.mean([fold.mean(axis=1).var() for fold in right]))
    n_asked = np.mean([len(fold) for fold in of_record])
    return math.sqrt(over_trials + float(np.concatenate(of_record).var() / n_asked))


def _mean_where(values: Sequence[FloatArray], chosen: Sequence[BoolArray]) -> float:
    """Return the mean over the chosen records, NaN if there are none."""
    every, which = np.concatenate(list(values)), np.concatenate(list(chosen))
    return float(every[which].mean()) if which.any() else math.nan
