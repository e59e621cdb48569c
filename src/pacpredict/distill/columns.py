"""What a published student knows about columns: of categories those that the public rows show, none of the pool's.

A deployment's schema lists the categories of its records, of which some may occur in one record only. Names, kinds and
forms of columns are the deployment's, and so are the codes that its owner declared to stand for missing values: the
student must read cells as the deployment does.
"""

from dataclasses import replace

import numpy as np

from pacpredict.rows.kind import AnyRows, AnySchema
from pacpredict.tables.schema import Column, Rows, Schema


def public_schema(schema: AnySchema, rows: AnyRows) -> AnySchema:
    """Return the schema of rows that were checked against another one: its kinds of columns, their own categories."""
    if not isinstance(schema, Schema) or not isinstance(rows, Rows):
        return schema  # of images and texts, which says nothing but their size, and how they come to it
    columns = (_public(column, rows, j) for j, column in enumerate(schema.columns))
    return replace(schema, columns=tuple(columns), unknown="missing")


def translated(rows: AnyRows, schema: AnySchema, public: AnySchema) -> AnyRows:
    """Return the rows of a schema with the codes of the public one; a category that it lacks is missing."""
    if not (isinstance(rows, Rows) and isinstance(schema, Schema) and isinstance(public, Schema)):
        return rows
    numbers = rows.numbers.copy()
    for j, (column, own) in enumerate(zip(schema.columns, public.columns, strict=True)):
        if column.kind == "category":
            code = {category: float(i) for i, category in enumerate(own.categories)}
            meanings = column.decode(numbers[:, j])
            numbers[:, j] = [np.nan if value is None else code.get(value, np.nan) for value in meanings]
    return Rows(numbers, rows.texts)


def _public(column: Column, rows: Rows, j: int) -> Column:
    numbers = rows.numbers[:, j]
    found = (
        {value for value in column.decode(numbers) if value is not None}
        if column.kind == "category"
        else set()
    )
    # In an order that does not depend on the pool either.
    categories = sorted(found, key=lambda value: (type(value).__name__, value))
    if column.kind == "category" and not categories:
        return Column(
            column.name, "number", has_missing=True
        )  # nobody has one: there is nothing to learn from
    return replace(
        column, categories=tuple(categories), has_missing=bool(np.isnan(numbers).any()), is_declared=False
    )
