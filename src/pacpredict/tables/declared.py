"""Columns whose type or categories the owner declares: public facts, which the pool then does not decide."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pacpredict.exceptions import InvalidInput, InvalidQuery, InvalidTable
from pacpredict.show import show
from pacpredict.tables.column import KINDS, OTHER, Category, Column, Kind, Values, is_category
from pacpredict.tables.dates import guess_format
from pacpredict.tables.separators import is_form

# With "other" 255, which is what scikit-learn's boosted trees can tell apart. Many more names than this are closer to a
# list of records.
MOST_CATEGORIES = 254

# Types of columns by their names: "number", "number:1.234,5", "date:%d.%m.%Y", "category:A,B", or a list of categories.
Types = Mapping[str, str | Sequence[Category]]


class Declared(NamedTuple):
    """What a column is declared to be."""

    kind: Kind
    form: str = ""  # of dates, and of numbers with separators
    categories: tuple[Category, ...] | None = None  # None: those that enough units of the pool have


def parse_types(types: Types) -> dict[str, Declared]:
    """Return what columns are declared to be; InvalidInput if a type is none that there is."""
    return {
        name: _parse_type(name, given) if isinstance(given, str) else _parse_list(name, given)
        for name, given in types.items()
    }


def _parse_type(name: str, text: str) -> Declared:
    kind, _, rest = text.partition(":")
    if kind not in KINDS or (rest and kind not in {"date", "number", "category"}):
        raise _no_type(name, text)
    if rest and kind == "category":
        return _parse_list(name, [part.strip() for part in rest.split(",")])
    if rest and kind == "number" and not is_form(rest):
        raise InvalidInput(
            f"the type of column {show(name)} must show how 1234.5 is written there, as in number:1,234.5, "
            f"number:1.234,5 or 'number:€ 1 234,5'; got {show(text)}"
        )
    return Declared(kind, rest)


def _parse_list(name: str, given: Any) -> Declared:
    if not isinstance(given, list | tuple):
        raise _no_type(name, given)
    categories = tuple(value for value in given if value != OTHER)  # which every column has
    if wrong := [value for value in categories if not is_category(value) or value == ""]:
        raise InvalidInput(
            f"column {show(name)} is declared to have the category {show(wrong[0])}, which cannot be"
        )
    if not categories or len(set(categories)) < len(categories):
        raise InvalidInput(
            f"column {show(name)} must be declared to have some categories, each once; got {show(given)}"
        )
    if len(categories) > MOST_CATEGORIES:
        raise InvalidInput(
            f"column {show(name)} is declared to have {len(categories):,} categories; at most {MOST_CATEGORIES} fit"
        )
    return Declared("category", "", categories)


def _no_type(name: str, given: Any) -> InvalidInput:
    return InvalidInput(
        f"the type of column {show(name)} must be one of {', '.join(KINDS)}, or date:FORMAT as in date:%d.%m.%Y, or "
        f"number:EXAMPLE as in number:1.234,5, or category:LIST as in category:A,B (in TOML and Python also a list of "
        f"categories); got {show(given)}"
    )


def declared_types(columns: Iterable[Column]) -> dict[str, str | list[Category]]:
    """Return the types without which the same training data would make other columns, as far as columns tell."""
    return {column.name: declared for column in columns if (declared := _type_of(column)) is not None}


def _type_of(column: Column) -> str | list[Category] | None:
    if column.is_declared:
        return list(column.categories)
    if column.form:
        return f"{column.kind}:{column.form}"
    are_texts = all(isinstance(category, str) for category in column.categories)
    return column.kind if column.kind == "date" or not (are_texts or column.is_dtype) else None


def declare_column(name: str, values: Values, declared: Declared) -> Column:
    """Return the column as it is declared, if the training data has no value that cannot be of it."""
    listed = declared.categories
    column = Column(name, declared.kind, listed or (), is_declared=listed is not None, form=declared.form)
    try:
        column.numbers(values)
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


def categories_of_dtype(name: str, declared: list[Any]) -> tuple[Category, ...]:
    """Return the categories of pandas's category dtype as a column has them."""
    categories = tuple(value.item() if isinstance(value, np.generic) else value for value in declared)
    for value in categories:
        if not is_category(value):
            raise InvalidTable(
                f"column {show(name)} has the category {show(value)}; categories must be texts, booleans, finite "
                "numbers or integers below 2**53: turn the column into text with astype(str)"
            )
    return categories
