"""How right some answers are: accuracy, balanced accuracy, confusion."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pacpredict.types import FloatArray, IntArray, Votes


@dataclass(frozen=True, eq=False)
class Score:
    """Of several answers to each record the mean."""

    confusion: FloatArray  # (n_classes, n_classes): records of a true class (row) that get an answer (column)

    @classmethod
    def of(cls, truth: IntArray, answers: Votes, n_classes: int) -> "Score":
        """Count answers (n_times, n_records) to records of known classes."""
        cells = truth[None, :] * n_classes + answers.astype(np.int64)
        counts = np.bincount(cells.ravel(), minlength=n_classes * n_classes)
        return cls(counts.reshape(n_classes, n_classes) / len(answers))

    def __add__(self, other: "Score") -> "Score":
        return Score(self.confusion + other.confusion)

    @property
    def accuracy(self) -> float:
        return float(np.trace(self.confusion) / self.confusion.sum())

    @property
    def balanced_accuracy(self) -> float:
        """The mean over classes of the share of their records that are answered right."""
        sizes = self.confusion.sum(axis=1)
        present = sizes > 0
        return float((np.diag(self.confusion)[present] / sizes[present]).mean())

    def to_json(self) -> dict[str, Any]:
        return {
            "accuracy": self.accuracy,
            "balanced_accuracy": self.balanced_accuracy,
            "confusion": self.confusion.tolist(),
        }
