"""Columns beside images or texts: nothing is learned from them, but they may say whose each record is.

A guess, for hints: nothing is decided by it.
"""

from collections.abc import Collection, Mapping
from typing import Any

from pacpredict.show import show
from pacpredict.tables.distinct import Distinct, take_apart
from pacpredict.tables.identifiers import identifier_hint
from pacpredict.tables.persons import Coded, facts_of_persons, person_hint


def persons_beside(others: Mapping[str, Any], suspects: Collection[str] = ()) -> list[str]:
    """Say which columns look as if they named persons, of whom some have several records; suspects always do."""
    from pandas import Series  # noqa: PLC0415  # takes time to import

    columns = [take_apart(name, Series(values)) for name, values in others.items() if _is_column(values)]
    facts = facts_of_persons([Coded(one.name, *one.in_order()) for one in columns])
    hints = [_hint(one, facts.get(one.name, []), is_suspect=one.name in suspects) for one in columns]
    return [hint for hint in hints if hint is not None]


def _is_column(values: Any) -> bool:
    """Tell arrays of several dimensions, such as more images, from what can name somebody."""
    return getattr(values, "ndim", 1) == 1


def _hint(column: Distinct, facts: list[str], *, is_suspect: bool) -> str | None:
    missing, distinct = column.counts
    n_named = len(column.codes) - missing
    if distinct == n_named:
        return None  # nobody has two
    if (hint := identifier_hint(column.name, column.values.tolist())) is not None:
        return hint
    if not facts and not is_suspect:
        return None
    return f"column {show(column.name)} {person_hint(column.name, distinct, n_named, facts)}"
