"""Search in input space: rows, such as nobody has, on which votes follow a unit's membership as closely as possible."""

from collections.abc import Callable

import numpy as np

from pacpredict.audit.adversaries import told_about
from pacpredict.rows.kind import AnyRows
from pacpredict.tables.schema import Rows
from pacpredict.types import BoolArray, IntArray, Votes

N_ROUNDS = 8
# Rows that are tried in a round, and how many of the best go on to the next.
N_TRIED, N_KEPT = 64, 8
# Values of a row that are changed at a time, at most.
_MOST_CHANGES = 3


def search(
    rows: AnyRows,
    records: IntArray,
    member: BoolArray,
    vote: Callable[[AnyRows], Votes],
    rng: np.random.Generator,
    *,
    n_rounds: int = N_ROUNDS,
) -> Votes:
    """Climb from a unit's own records; returns the votes on the best rows that were found, most telling first.

    In each round the best rows so far get some values of other records, and what then tells more is kept.
    """
    column = member.astype(np.float64)[:, None]
    best = rows.take(records[:N_KEPT])
    votes = vote(best)
    for _ in range(n_rounds):
        tried = _changed(best, rows, rng)
        best, votes = best.join([best, tried]), np.concatenate([votes, vote(tried)])
        order = np.argsort(-told_about(votes, column)[:, 0], kind="stable")[:N_KEPT]
        best, votes = best.take(order), votes[order]
    return votes


def _changed(best: AnyRows, rows: AnyRows, rng: np.random.Generator) -> AnyRows:
    """Return copies of the best rows with some values of random other rows."""
    copies = best.take(rng.integers(len(best), size=N_TRIED))
    donors = rows.take(rng.integers(len(rows), size=N_TRIED))
    if not isinstance(copies, Rows) or not isinstance(donors, Rows):
        # Images and texts are cut in halves, and half of one is joined to half of another.
        return copies.join([copies, donors]).mixed(rng).take(np.arange(N_TRIED))
    n_columns = copies.numbers.shape[1]
    take = rng.random((N_TRIED, n_columns)).argsort(axis=1) < rng.integers(1, _MOST_CHANGES + 1, (N_TRIED, 1))
    numbers = np.where(take, donors.numbers, copies.numbers)
    texts = {
        j: tuple(
            theirs if swap else own
            for own, theirs, swap in zip(copies.texts[j], donors.texts[j], take[:, j], strict=True)
        )
        for j in copies.texts
    }
    return Rows(numbers, texts)
