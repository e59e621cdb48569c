"""Tables and numbers for people."""

import math
import sys
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from pacpredict.core.attacks import NOT_PREVENTED

_BAR_WIDTH = 10
BAR_COLUMN = "0 to 100%"
BAR_LEGEND = "= a guess without any answer   # what the answers may add"


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> None:
    """Print a table whose first column is words and whose other columns are numbers.

    Without names of columns it is a list of facts, which may be words, too. Nothing is ever cut off: where the terminal
    is too narrow, words are wrapped, bars are left out, and at last rows become paragraphs.
    """
    from rich.console import Console  # noqa: PLC0415  # rich is imported where something is drawn, not for --help

    console = Console()
    widths = _widths(columns, rows, console.width)
    if not widths and BAR_COLUMN in columns:
        bars = columns.index(BAR_COLUMN)
        columns, *rows = ([*cells[:bars], *cells[bars + 1 :]] for cells in (columns, *rows))
        caption = caption.replace(BAR_LEGEND, "").strip("\n")
        widths = _widths(columns, rows, console.width)
    drawn = (
        _table(title, columns, rows, caption, widths)
        if widths
        else _paragraphs(title, columns, rows, caption)
    )
    # Captured and printed, so that a reader who left is met in one place, by main. What was printed before goes
    # first: rich would flush it, and end the program in its own way.
    sys.stdout.flush()
    with console.capture() as captured:
        console.print(drawn)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()).strip("\n"))


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]], most: int) -> list[int]:
    """Share a terminal's width among the columns: words and facts may wrap, numbers not. [] where they do not fit."""
    from rich.cells import cell_len  # noqa: PLC0415

    cells = list(zip(*([columns, *rows] if columns else rows), strict=True))
    whole = [max(map(cell_len, column)) for column in cells]
    least = [max(cell_len(word) for cell in column for word in cell.split() or [""]) for column in cells]
    if columns:
        least[1:] = whole[1:]
    left = most - 3 * len(cells) - 1 - sum(least)  # blanks beside each column, and at the ends
    if left < 0:
        return []
    widths = least[:]
    # What is left over goes to the words first; in a list of facts to the facts, since a broken number reads badly.
    for i in range(len(widths)) if columns else reversed(range(len(widths))):
        widths[i] += min(left, whole[i] - least[i])
        left -= widths[i] - least[i]
    return widths


def _table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str, widths: Sequence[int]
) -> Any:
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(
        title=Text(title),
        caption=Text(caption),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        show_header=bool(columns),
    )
    for position, width in enumerate(widths):
        name = Text(columns[position] if columns else "")
        table.add_column(name, justify="right" if position else "left", width=width)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _paragraphs(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> Any:
    from rich.text import Text  # noqa: PLC0415

    names = columns[1:] or [""] * (len(rows[0]) - 1)
    longest = max(map(len, names))
    lines = [title, ""]
    for words, *numbers in rows:
        lines.append(words)
        lines += [
            f"  {name:{longest}} {number}".rstrip() for name, number in zip(names, numbers, strict=True)
        ]
    return Text("\n".join([*lines, *(["", caption] if caption else [])]), overflow="fold")


def print_attacks(title: str, attacks: Sequence[tuple[str, float, float]]) -> None:
    """Print, of each attack, the question it answers and how often it succeeds: before any answer, and at most."""
    rows = [
        (question, percent_at_most(prior), percent_at_most(success), bar(prior, success))
        for question, prior, success in attacks
    ]
    columns = ("the attacker's question", "before", "at most", BAR_COLUMN)
    print_table(title, columns, rows, f"{BAR_LEGEND}\n{NOT_PREVENTED}")


def percent_at_most(probability: float) -> str:
    """Return a success rate in percent, rounded up as bounds are."""
    exact = Decimal(repr(probability)).scaleb(2)
    return f"{exact.quantize(Decimal('0.0001'), rounding=ROUND_CEILING)}%"


def percent(rate: float) -> str:
    """Return a rate that somebody chose, in percent, without needless digits."""
    return f"{100 * rate:g}%"


def at_most(value: float) -> str:
    """Return a bound with four digits, rounded up."""
    if value == math.inf:
        return "none"
    return f"{float(Context(prec=4, rounding=ROUND_CEILING).create_decimal(repr(value))):.4g}"


def nats(budget: float) -> str:
    """Return a budget in full, to be copied, and as the power of two in which the paper writes budgets."""
    return f"{budget!r} nats" + (f" (2^{math.log2(budget):.2f})" if 0 < budget < math.inf else "")


def bar(prior: float, success: float) -> str:
    """Return a scale from 0 to 100 % with the prior and what the answers may add to it."""
    known = round(prior * _BAR_WIDTH)
    reached = round(success * _BAR_WIDTH)
    return "=" * known + "#" * (reached - known) + "." * (_BAR_WIDTH - reached)
