"""Labels as both protocols write them."""

from typing import Any

from pacpredict.curator import Answers, Inquiry
from pacpredict.tables.classes import Classes
from pacpredict.tables.schema import Column

_INT64 = range(-(2**63), 2**63)


class Labels:
    """Labels of one plain type stay what they are; all others, also of several types, become texts."""

    def __init__(self, classes: Classes) -> None:
        self.datatype = _common_datatype(classes.values) or "BYTES"

    def plain(self, answers: Answers) -> list[Any]:
        labels = answers.labels.tolist()
        return list(map(str, labels)) if self.datatype == "BYTES" else labels


def column_datatype(column: Column) -> str:
    """Return the datatype that metadata names for a column; others are taken where the values mean the same.

    It follows from the kind alone: which values the training data has is not told.
    """
    return {"number": "FP64", "boolean": "BOOL"}.get(column.kind, "BYTES")


def _common_datatype(values: tuple[Any, ...]) -> str | None:
    kinds = {type(value) for value in values}
    if kinds == {int}:
        return "INT64" if all(value in _INT64 for value in values) else None
    return {frozenset({bool}): "BOOL", frozenset({float}): "FP64"}.get(frozenset(kinds))


def describe_releases(inquiry: Inquiry, answers: Answers) -> dict[str, Any]:
    """Return what answers say beside labels: numbers in the history, charges, and how far a partial one came."""
    described: dict[str, Any] = {
        "sequence": [release.sequence for release in answers.releases],
        "charge_nats": [release.charge for release in answers.releases],
    }
    if inquiry.partial:
        described |= {"rows_asked": len(inquiry.rows), "rows_answered": len(answers.releases)}
    return described
