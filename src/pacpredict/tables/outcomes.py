"""Columns that may be an outcome themselves, or follow from the target: known too late to be asked about.

A guess from names and values: it is said, and decides nothing.
"""

import re
from collections.abc import Iterator

import numpy as np

from pacpredict.show import percent, show
from pacpredict.tables.association import cells_of_numbers, share_explained
from pacpredict.tables.column import Column
from pacpredict.tables.distinct import Distinct
from pacpredict.types import BoolArray

# A column that explains this share of the target's entropy by itself says the same thing in other words.
_TELLS_TOO_MUCH = 0.9
# A mark that most records of a class have, and next to no others, tells that class, however rare it is.
_MOST_WITH_MARK = 0.95
_LEAST_MARKED = 1 / 3
# Of a class that most records are of, any mark says little.
_RARE_ENOUGH = 0.5
_FEWEST_MARKED = 10
# Parts of names by which outcomes go; a column of such a name is asked about, not judged.
_OUTCOMES = {
    *(
        "outcome",
        "outcomes",
        "died",
        "death",
        "dead",
        "deceased",
        "mortality",
        "survived",
        "survival",
        "expired",
    ),
    *(
        "readmitted",
        "readmission",
        "relapse",
        "recurrence",
        "los",
        "stay",
        "discharged",
        "disposition",
        "result",
    ),
    *("target", "label", "churned", "defaulted", "response"),
    *("dropout", "withdrawn", "withdrawal", "collections", "chargeoff", "writeoff"),
}
_PHRASES = re.compile(r"\b(?:charged? off|writ(?:e|ten) off|dropped out|drop out)\b")
_PARTS = re.compile(r"[A-Za-z][a-z]+|[A-Z]+|\d+")


def outcome_doubt(column: Column, given: Distinct, labels: Distinct) -> str | None:
    """Say why a column may be an outcome itself, or follow from the target."""
    parts, of_target = ([part.lower() for part in _PARTS.findall(one.name)] for one in (given, labels))
    if shared := {part for part in set(parts) & set(of_target) if not part.isdigit()}:
        return f"is named like the target ({min(shared)!r})"
    if sounds := {*(set(parts) & _OUTCOMES), *_PHRASES.findall(" ".join(parts))}:
        return f"sounds like an outcome ({min(sounds)!r})"
    if (labels.codes < 0).any() or len(labels.distinct) < 2:
        return None
    for mark, words in _marks(given):
        if (said := _singles_out(mark, words, labels)) is not None:
            return said
    cells = given.codes + 1
    if column.kind == "number":
        numbers = column.numbers([None, *given.distinct])
        cells = cells_of_numbers(np.array(numbers, np.float64)[cells])
    share = share_explained(cells, labels.codes)
    return f"says {percent(share)} of the target by itself" if share >= _TELLS_TOO_MUCH else None


def _marks(given: Distinct) -> Iterator[tuple[BoolArray, str]]:
    """Yield what a record can be marked by in this column: a value or none, the usual value or another."""
    is_missing = given.codes < 0
    yield is_missing, "is missing"
    yield ~is_missing, "is filled in"
    counts = np.bincount(given.codes[~is_missing], minlength=1)
    if 2 * counts.max() > counts.sum():
        usual = int(counts.argmax())
        yield given.codes == usual, f"is {show(given.distinct[usual])}"
        yield (given.codes != usual) & ~is_missing, f"is not {show(given.distinct[usual])}"


def _singles_out(mark: BoolArray, words: str, labels: Distinct) -> str | None:
    """Say which class a mark tells: how many of the class have it, and how few others do."""
    n_marked = int(mark.sum())
    if n_marked < _FEWEST_MARKED:
        return None
    of_class, marked = (
        np.bincount(labels.codes),
        np.bincount(labels.codes[mark], minlength=len(labels.distinct)),
    )
    best = int(marked.argmax())
    precision, recall = marked[best] / n_marked, marked[best] / of_class[best]
    is_rare = of_class[best] <= _RARE_ENOUGH * len(mark)
    if not is_rare or precision < _MOST_WITH_MARK or recall < _LEAST_MARKED:
        return None
    return (
        f"{words} in {percent(recall)} of the records of {show(labels.distinct[best])}, and {percent(precision)} of "
        "the records where it is so are of that class"
    )
