"""Columns whose type somebody declares, because they know better than what can be inferred."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from pacpredict.exceptions import InvalidInput, InvalidQuery, InvalidTable
from pacpredict.show import show, show_some
from pacpredict.tables.column import KINDS, Category, Column, Kind, Values, is_category
from pacpredict.tables.dates import guess_format
from pacpredict.tables.separators import is_form
from pacpredict.tables.values import as_limit, is_missing

# What scikit-learn's boosted trees can tell apart. Many more names than this are closer to a list of records.
MOST_CATEGORIES = 255

# Types of columns by their names, as parse_types reads them: "number", "number:1.234,5", "date:%d.%m.%Y".
Types = Mapping[str, str]


class Declared(NamedTuple):
    """What a column is declared to be."""

    kind: Kind
    form: str = ""  # of dates, and of numbers with separators


def parse_types(types: Types) -> dict[str, Declared]:
    """Return what columns are declared to be; InvalidInput if a type is none that there is."""
    return {name: _parse_type(name, text) for name, text in types.items()}


def _parse_type(name: str, text: Any) -> Declared:
    kind, _, form = text.partition(":") if isinstance(text, str) else ("", "", "")
    if kind not in KINDS or (form and kind not in {"date", "number"}):
        raise InvalidInput(
            f"the type of column {show(name)} must be one of {', '.join(KINDS)}, or date:FORMAT as in "
            f"date:%d.%m.%Y, or number:EXAMPLE as in number:1.234,5; got {show(text)}"
        )
    if form and kind == "number" and not is_form(form):
        raise InvalidInput(
            f"the type of column {show(name)} must show how 1234.5 is written there, as in number:1,234.5, "
            f"number:1.234,5 or 'number:€ 1 234,5'; got {show(text)}"
        )
    return Declared(kind, form)


def declared_types(columns: Iterable[Column]) -> dict[str, str]:
    """Return the types without which the same training data would make other columns, as far as columns tell."""
    types = {column.name: _type_of(column) for column in columns}
    return {name: kind for name, kind in types.items() if kind is not None}


def _type_of(column: Column) -> str | None:
    if column.form:
        return f"{column.kind}:{column.form}"
    if column.kind == "date":
        return "date"
    is_code = (
        column.kind == "category" and not column.is_declared and not isinstance(column.categories[0], str)
    )
    return column.kind if column.has_limits or is_code else None


def declare_column(name: str, values: Values, has_missing: bool, declared: Declared) -> Column:
    """Return the column that these values of the training data make as what it is declared to be."""
    categories: tuple[Category, ...] = ()
    if declared.kind == "category":
        categories = _occurring(name, values)
    has_limits = declared.kind == "number" and any(map(_is_limit, values))
    column = Column(name, declared.kind, categories, has_missing, has_limits=has_limits, form=declared.form)
    try:
        column.numbers(values, "refuse")
        texts = column.texts(values) if declared.kind == "text" else ()
    except InvalidQuery as problem:
        raise InvalidTable(
            f"{problem}; correct it, or if it means missing, say so: --missing, or NaN instead of it in Python"
        ) from None
    if guess_format(set(texts) - {""}) is not None:
        raise InvalidTable(
            f"column {show(name)} has dates, and cannot be text: declare it a date, or drop it"
        )
    return column


def declared_categories(name: str, declared: list[Any]) -> tuple[Category, ...]:
    """Return the categories of pandas's category dtype as a column has them."""
    categories = tuple(value.item() if isinstance(value, np.generic) else value for value in declared)
    for value in categories:
        if not is_category(value):
            raise InvalidTable(
                f"column {show(name)} has the category {show(value)}; categories must be texts, booleans, finite "
                "numbers or integers below 2**53: turn the column into text with astype(str)"
            )
    return categories


def _occurring(name: str, values: Values) -> tuple[Category, ...]:
    distinct = list(dict.fromkeys(value for value in values if not is_missing(value)))
    if len(distinct) > MOST_CATEGORIES:
        raise InvalidTable(
            f"column {show(name)} has {len(distinct):,} different values ({show_some(distinct, 3)}), and a category "
            f"can have {MOST_CATEGORIES}: declare it something else, or drop it"
        )
    categories = declared_categories(name, distinct)
    try:
        return tuple(sorted(categories))
    except TypeError as problem:
        raise InvalidTable(
            f"column {show(name)} mixes text and numbers: turn all of it into text"
        ) from problem


def _is_limit(value: Any) -> bool:
    return isinstance(value, str) and as_limit(value) is not None
