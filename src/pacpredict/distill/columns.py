"""What a published student knows about columns: of categories those of the public rows, none of the pool's.

Names, kinds and forms of columns are the deployment's, and so are the lists of categories and the codes for missing
values that its owner declared: the student must read cells as the deployment does.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from pacpredict.exceptions import InvalidQuery
from pacpredict.rows.kind import AnyRows, AnySchema
from pacpredict.tables.column import OTHER
from pacpredict.tables.declared import MOST_CATEGORIES
from pacpredict.tables.forms import split
from pacpredict.tables.schema import Column, Schema
from pacpredict.tables.values import MissingCodes, codes_by_column, is_missing, is_storable, other_spellings


class PublicRows(NamedTuple):
    """The same rows as a deployment reads them, to be asked, and as its student does, to learn from."""

    asked: AnyRows
    rows: AnyRows
    schema: AnySchema  # the student's

    def __len__(self) -> int:
        return len(self.asked)

    @classmethod
    def of(cls, schema: AnySchema, given: Any) -> "PublicRows":
        """Read public rows; InvalidQuery if the deployment would refuse one."""
        asked = schema.rows(given)
        if not isinstance(schema, Schema):  # of images and texts, which says nothing but how they are read
            return cls(asked, asked, schema)
        public = public_schema(schema, given)
        return cls(asked, public.rows(given), public)


def public_schema(schema: Schema, given: Any) -> Schema:
    """Return a schema with the columns of a deployment and the categories of a public table."""
    names, values = split(given, InvalidQuery)
    by_name = dict(zip(names or (column.name for column in schema.columns), values, strict=True))
    codes = codes_by_column(schema.missing, by_name)
    columns = tuple(
        _public(column, MissingCodes(codes[column.name]).without(by_name[column.name]))
        for column in schema.columns
    )
    return replace(schema, columns=columns, min_category=1)


def _public(column: Column, values: Iterable[Any]) -> Column:
    """List the most frequent categories of a public column, as texts: what type they have in the pool is not told."""
    if column.kind != "category" or column.is_declared:
        return replace(column, is_dtype=False)
    counts = Counter(_spelt(value) for value in values if not is_missing(value))
    usable = [text for text in counts if text != OTHER and is_storable(text)]
    most = sorted(usable, key=lambda text: (-counts[text], text))[:MOST_CATEGORIES]
    return replace(column, categories=tuple(sorted(most)), is_dtype=False)


def _spelt(value: Any) -> str:
    return str(value) if isinstance(value, str) else str(next(other_spellings(value), value))
