"""What transcripts come to: scores that chance decides, and breaches that no chance explains.

If the mechanism is honest, a score is standard normal and independent of all before it and of the secret. The score of
noise is its size in claimed standard deviations. The score of a drawn label is the normal quantile of a uniform number
within the label's share of the probabilities that the claim gives it (the randomised probability integral transform).
"""

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pacpredict.types import BoolArray, FloatArray, IntArray


class Scores(NamedTuple):
    """Columns with a row for each score."""

    session: IntArray
    secret: IntArray
    position: IntArray  # of the entry in its session
    score: FloatArray
    side: FloatArray  # 1 or -1, by where the secret's own label lies
    value: (
        FloatArray  # of noise the coordinate on record; of a drawn label the probability of the secret's own
    )
    label: IntArray  # the secret's own
    is_own: BoolArray  # of a drawn label, whether it is the secret's own


@dataclass
class ScoreLog:
    """Scores as they come in, eight numbers each."""

    numbers: "array[float]" = field(default_factory=lambda: array("d"))

    def add(self, *row: float) -> None:
        self.numbers.extend(row)

    def columns(self) -> Scores:
        table = np.array(self.numbers).reshape(-1, len(Scores._fields)).T
        session, secret, position, label = table[[0, 1, 2, 6]].astype(np.int64)
        return Scores(session, secret, position, table[3], table[4], table[5], label, table[7] > 0)


@dataclass
class SelfTestEvidence:
    """All that was seen so far."""

    noise: ScoreLog = field(default_factory=ScoreLog)
    labels: ScoreLog = field(default_factory=ScoreLog)  # drawn through the channel
    beliefs: ScoreLog = field(default_factory=ScoreLog)  # drawn from the belief
    twins: list[tuple[float, bool]] = field(
        default_factory=list
    )  # how likely two labels agree; whether they do
    groups: list[str] = field(default_factory=list)  # of each session
    secrets: list[int] = field(default_factory=list)  # drawn as a new deployment draws its own
    session_secrets: list[int] = field(default_factory=list)  # drawn by sessions themselves
    looked_at: Counter[str] = field(default_factory=Counter)  # of each exact check, how often it was made
    breaches: Counter[str] = field(default_factory=Counter)  # and how often it failed

    def note(self, check: str, *, breached: bool) -> None:
        """Count a comparison that must never fail."""
        self.looked_at[check] += 1
        self.breaches[check] += bool(breached)
