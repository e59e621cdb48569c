"""Tables of columns: of a file before a fit, and of an artifact; and whose records are protected together."""

import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pacpredict.cli.table import print_table

if TYPE_CHECKING:
    from pacpredict.tables.schema import Column
    from pacpredict.tables.survey import Survey

_WIDEST_NAME = 28


def print_survey(name: str, found: "Survey") -> None:
    """Print what is known of each column, and below it what to think about."""
    rows = [
        (_short(one.name), one.type, f"{one.missing:,}", f"{one.distinct:,}", one.action)
        for one in found.columns
    ]
    print_table(
        f"{name}: {found.records:,} records", ("column", "type", "missing", "distinct", "is taken as"), rows
    )
    print()
    print_points(found.warnings)


def print_points(points: Sequence[str]) -> None:
    """Print sentences, one below the other, as wide as the terminal."""
    width = shutil.get_terminal_size().columns
    for point in points:
        print(textwrap.fill(f"- {point}", width, subsequent_indent="  ", break_on_hyphens=False))


def print_warnings(warnings: Sequence[str]) -> None:
    for warning in warnings:
        print(f"pacpredict: warning: {warning}", file=sys.stderr)


def units_in_words(about: dict[str, Any]) -> str:
    """Say what the figures are about: persons or contents."""
    most, alone = about["largest_unit"], about["largest_unit"] == 1
    kinds = {
        "person": "persons, with one record each" if alone else f"persons, with up to {most:,} records each",
        "record": "records, all different"
        if alone
        else f"different records, of up to {most:,} identical rows",
    }
    return f"{about['units']:,} {kinds[about['unit']]}"


def print_columns(columns: Sequence["Column"]) -> None:
    """Print the columns that queries to an artifact need."""
    rows = [(_short(column.name), column.kind, _short(_values(column))) for column in columns]
    print_table("Columns (any value may be missing)", ("column", "type", "values"), rows)


def _values(column: "Column") -> str:
    if column.kind == "category":
        first = [*map(str, column.categories[:3]), *(["..."] if len(column.categories) > 3 else [])]
        return ", ".join([*first, "other"])
    return column.form or ("2024-12-31" if column.kind == "date" else "")


def _short(text: str) -> str:
    return text if len(text) <= _WIDEST_NAME else f"{text[: _WIDEST_NAME - 3]}..."
