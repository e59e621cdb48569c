"""Features for linear models: numbers, flags of missing ones, and one column per category. Nothing here is learned."""

from collections.abc import Sequence

import numpy as np

from pacpredict.types import FloatArray

_CELLS_AT_ONCE = 2**22  # 32 MiB of doubles


class Expansion:
    """Expands (n_rows, n_features) with codes and NaN into (n_rows, width) of finite numbers.

    First come the quantities, 0 where one is missing, then for each of them a flag that says so, then for each
    categorical feature one column per category, all of them 0 where it is missing.
    """

    def __init__(self, feature_categories: Sequence[int]) -> None:
        sizes = np.asarray(feature_categories, dtype=np.int64)
        self.numbers, self.codes = np.flatnonzero(sizes == 0), np.flatnonzero(sizes)
        starts = 2 * len(self.numbers) + np.cumsum(sizes[self.codes]) - sizes[self.codes]
        self._starts = starts.astype(np.int64)
        self.width = 2 * len(self.numbers) + int(sizes.sum())

    @property
    def n_numbers(self) -> int:
        return len(self.numbers)

    def without_flags(self, features: FloatArray) -> FloatArray:
        """Return the quantities as they are, NaN where one is missing, and one column per category."""
        return np.hstack([features[:, self.numbers], self(features)[:, 2 * self.n_numbers :]])

    def __call__(self, features: FloatArray) -> FloatArray:
        n = len(self.numbers)
        expanded = np.zeros((len(features), self.width))
        missing = np.isnan(features[:, self.numbers])
        expanded[:, :n] = np.where(missing, 0.0, features[:, self.numbers])
        expanded[:, n : 2 * n] = missing
        codes = features[:, self.codes]
        row, column = np.nonzero(~np.isnan(codes))
        expanded[row, self._starts[column] + codes[row, column].astype(np.int64)] = 1.0
        return expanded

    @property
    def rows_at_once(self) -> int:
        """How many rows to expand at a time."""
        return max(1, _CELLS_AT_ONCE // max(1, self.width))
