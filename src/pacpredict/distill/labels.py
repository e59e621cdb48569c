"""Private labels with what the history says about them, and those of them that a student learns from."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pacpredict.core.decode import Decoder, check_decoder
from pacpredict.core.filters import Confidence, Filter, is_believed, is_confident, posteriors
from pacpredict.exceptions import InvalidInput, NothingToLearn
from pacpredict.mechanism.evidence import Evidence, Point
from pacpredict.types import BoolArray, FloatArray, IntArray, Votes


@dataclass(frozen=True, eq=False)
class Labels:
    """Answers in the order in which they were asked for, and the history that they come from."""

    rows: IntArray  # positions in the public data
    sequences: IntArray  # of their releases
    labels: IntArray
    kinds: list[str]  # how each came about
    votes: Votes  # of all models
    confidence: Confidence
    points: dict[int, Point]  # by how many of the rows had been answered

    @classmethod
    def of(
        cls, rows: IntArray, sequences: Sequence[int], evidence: Evidence, ends: Collection[int]
    ) -> "Labels":
        """Put together what was asked and what a replay says of it; `ends` are the numbers of rows of the points."""
        found = [evidence.labels[sequence] for sequence in sequences]
        n_models = next(iter(evidence.points.values())).belief.n_models
        votes = [np.full(n_models, one.label) if one.votes is None else one.votes for one in found]
        return cls(
            rows,
            np.array(sequences, np.int64),
            np.array([one.label for one in found], np.int64),
            [one.kind for one in found],
            np.array(votes, np.int16),
            Confidence(
                np.array([one.confidence.statistic for one in found]),
                np.array([one.confidence.n_rivals for one in found]),
            ),
            {end: evidence.points[last_of(sequences, end)] for end in ends},
        )

    def __len__(self) -> int:
        return self.rows.size

    def posterior(self, end: int, n_classes: int) -> FloatArray:
        """Return how probable each label is for each of the first rows, by all that was known when these were done."""
        return posteriors(self.votes[:end], self.points[end].belief, n_classes)


class Targets(NamedTuple):
    """What a student is trained on: records of the public data with a label and a weight each."""

    records: (
        IntArray  # among the rows that were asked; one may occur with several labels, of less weight each
    )
    labels: IntArray
    weights: FloatArray
    kept: BoolArray  # of the rows that were asked


def last_of(sequences: Sequence[int], end: int) -> int:
    """Return the last release that the first rows rest on."""
    return max(sequences[:end], default=0)


def check_filter_of(chosen: Filter, decoder: Decoder) -> None:
    """Refuse a test of noise where there is none, before anything is paid for."""
    if chosen != "bayesian" and check_decoder(decoder)[0] == "channel":
        raise InvalidInput(
            f"the filter {chosen} tests noisy releases, and by {decoder} labels are released without noise: choose the "
            "filter bayesian, or another decoder"
        )


def default_filter(decoder: Decoder) -> Filter:
    """Return the corrected test for the paper's decoder, and the posterior for those that rest on the belief."""
    return "corrected" if decoder == "argmax" else "bayesian"


def keep(labels: Labels, end: int, chosen: Filter, alpha: float, n_classes: int) -> BoolArray:
    """Decide which of the first rows keep their label."""
    if chosen == "bayesian":
        posterior = labels.posterior(end, n_classes)
        return is_believed(posterior, labels.labels[:end], alpha, labels.votes.shape[1])
    statistic, n_rivals = (part[:end] for part in labels.confidence)
    return is_confident(Confidence(statistic, n_rivals), alpha, corrected=chosen == "corrected")


def targets_of(
    labels: Labels, end: int, chosen: Filter, alpha: float, n_classes: int, *, soft: bool, balanced: bool
) -> Targets:
    """Choose what a student learns from the first rows.

    With `soft`, a kept row has every label that models give to it, weighed by its posterior. With `balanced`, all
    classes weigh the same together.

    Raises
    ------
    NothingToLearn
        if nothing is kept, or one class only.
    """
    kept = keep(labels, end, chosen, alpha, n_classes)
    records = np.flatnonzero(kept)
    own, weights = labels.labels[:end][kept], np.ones(records.size)
    if not records.size:
        raise NothingToLearn(
            f"the filter {chosen} kept none of {end:,} labels at alpha = {alpha:g}. All of them stay on record: choose "
            "another filter, a larger alpha or more rows, and what was answered costs nothing again"
        )
    if soft:
        posterior = labels.posterior(end, n_classes)[kept]
        at, own = np.nonzero(posterior > 0)
        records, weights = records[at], posterior[at, own]
    if np.unique(own).size < 2:
        raise NothingToLearn(
            f"all {records.size:,} labels that were kept are of one class: there is nothing to tell apart. All labels "
            "stay on record: choose a larger alpha, or rows that are more varied"
        )
    if balanced:
        of_class = np.bincount(own, weights, n_classes)
        weights = weights * (weights.sum() / (np.count_nonzero(of_class) * of_class[own]))
    return Targets(records, own, weights, kept)
