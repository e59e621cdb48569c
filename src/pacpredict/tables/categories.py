"""Which categories columns list: those that enough units have.

A category that fewer have would tell that one of these few is in the pool. All such values are the one category
"other", and so is every value that the pool does not have: a query with one is answered alike in both cases.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pacpredict.exceptions import InvalidTable
from pacpredict.show import show, show_some
from pacpredict.tables.column import Category, Column
from pacpredict.tables.contents import number_contents
from pacpredict.tables.declared import MOST_CATEGORIES
from pacpredict.tables.infer import Draft
from pacpredict.types import BoolArray, FloatArray, IntArray

# A longer text is a sentence, not the name of a category.
LONGEST_CATEGORY = 100
# Texts are free text if more units than this share have one that is not listed. A single unit decides that only at the
# edge; the number of different texts, or the longest of them, is decided by one unit more often.
_MOST_UNLISTED = 0.5


class Settled(NamedTuple):
    """A column, and how many units have each of the values that became "other"."""

    column: Column
    rare: dict[Category, int]

    def check(self) -> Column:
        """Return the column; InvalidTable if it has too many categories."""
        if (n_listed := len(self.column.categories)) > MOST_CATEGORIES:
            raise InvalidTable(
                f"column {show(self.column.name)} has {n_listed:,} different values "
                f"({show_some(list(self.column.categories), 3)}), and a category can have {MOST_CATEGORIES}: "
                "declare it something else, or drop it"
            )
        return self.column


def settle_columns(drafts: Sequence[Draft], persons: IntArray | None, min_category: int) -> list[Settled]:
    """Return the columns with the categories that at least `min_category` units have; decide what is free text.

    `persons` has the number of each record's person. Without it equal records are one unit. To be on the safe side,
    records that differ only in what became "other" count once, until all listed categories have enough without them.
    """
    units = number_contents(draft.cells for draft in drafts) if persons is None else persons
    holders = [_count_units(draft, units) for draft in drafts]
    listed = [count >= min_category for count in holders]
    drafts = [_decided(draft, common, units) for draft, common in zip(drafts, listed, strict=True)]
    listed = [
        common[: len(draft.values) * draft.is_open] for draft, common in zip(drafts, listed, strict=True)
    ]
    while persons is None:
        units = number_contents(map(_pooled, drafts, listed))
        still = [
            common & (_count_units(draft, units) >= min_category)
            for draft, common in zip(drafts, listed, strict=True)
        ]
        if all(map(np.array_equal, still, listed)):
            break
        listed = still
    return list(map(_settled, drafts, listed, holders))


def _decided(draft: Draft, listed: BoolArray, units: IntArray) -> Draft:
    """Make a column of texts one of categories or of free text."""
    if not draft.may_be_text or _are_categories(draft, listed, units):
        return draft
    return replace(draft, column=replace(draft.column, kind="text"), is_open=False)


def _are_categories(draft: Draft, listed: BoolArray, units: IntArray) -> bool:
    common = [str(draft.values[i]) for i in np.flatnonzero(listed)]
    if not 0 < len(common) <= MOST_CATEGORIES or max(map(len, common)) > LONGEST_CATEGORY:
        return False
    present = ~np.isnan(draft.cells)
    is_rare = ~np.append(listed, True)[draft.cells[present].astype(np.int64)]
    n_unlisted, n_units = len(np.unique(units[present][is_rare])), len(np.unique(units[present]))
    return n_unlisted <= _MOST_UNLISTED * n_units


def _count_units(draft: Draft, units: IntArray) -> IntArray:
    """Return how many units have each of the values to choose from."""
    if not draft.is_open:
        return np.zeros(0, np.int64)
    present = ~np.isnan(draft.cells)
    n_values, n_units = len(draft.values), int(units.max()) + 1
    pairs = np.unique(draft.cells[present].astype(np.int64) * n_units + units[present])
    return np.bincount(pairs // n_units, minlength=n_values + 1)[:n_values]


def _pooled(draft: Draft, listed: BoolArray) -> FloatArray:
    """Return the cells with one number for all values that are not listed."""
    if not draft.is_open:
        return draft.cells
    other = len(listed)
    codes = np.array([*np.where(listed, np.arange(other), other), other, np.nan])
    return codes[np.where(np.isnan(draft.cells), other + 1, draft.cells).astype(np.int64)]


def _settled(draft: Draft, listed: BoolArray, holders: IntArray) -> Settled:
    if not draft.is_open:
        return Settled(draft.column, {})
    categories = tuple(draft.values[i] for i in np.flatnonzero(listed))
    rare = {draft.values[i]: int(holders[i]) for i in np.flatnonzero(~listed & (holders > 0))}
    return Settled(replace(draft.column, categories=categories), rare)
