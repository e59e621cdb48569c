"""Tables and numbers for people."""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal

_BAR_WIDTH = 20
BAR_LEGEND = "= a guess without any answer   # what the answers may add"


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> None:
    """Print a table whose first column is words and whose other columns are numbers; columns need no names."""
    from rich import box  # noqa: PLC0415  # rich is imported where something is drawn, not for --help
    from rich.console import Console  # noqa: PLC0415
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
    for position, column in enumerate(columns or [""] * len(rows[0])):
        table.add_column(Text(column), justify="right" if position else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    # Captured and printed, so that a reader who left is met in one place, by main.
    console = Console()
    with console.capture() as captured:
        console.print(table)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()).strip("\n"))


def percent_at_most(probability: float) -> str:
    """Return a success rate in percent, rounded up as bounds are."""
    exact = Decimal(repr(probability)).scaleb(2)
    return f"{exact.quantize(Decimal('0.0001'), rounding=ROUND_CEILING)} %"


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
