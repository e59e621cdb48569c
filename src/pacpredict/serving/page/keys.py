"""The keys of a deployment and their use, for its administrators."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pacpredict.pages.document import figures, section
from pacpredict.pages.markup import Child, Markup, tag
from pacpredict.pages.words import day

_COLUMNS = ["name", "role", "state", "answers", "nats", "rate"]


def render_keys(keys: Sequence[dict[str, Any]]) -> Markup:
    """Return a table of what Keyring.describe says."""
    if not keys:
        text = "There are no keys: whoever reaches this server may do everything. "
        return section("Keys", tag("p", text, tag("code", "pacpredict keys make"), " makes one."))
    return section("Keys", figures(_COLUMNS, [_row(key) for key in keys], n_words=3))


def _row(key: dict[str, Any]) -> list[Child]:
    until = "" if key["expires"] is None else f" until {day(datetime.fromisoformat(key['expires']))}"
    return [
        key["name"],
        key["role"],
        f"{key['state']}{until if key['state'] == 'valid' else ''}",
        _used(f"{key['used_queries']:,}", key["queries"] and f"{key['queries']:,}"),
        _used(f"{key['used_nats']:.3g}", key["nats"] and f"{key['nats']:.3g}"),
        f"{key['rate']:,} a minute" if key["rate"] else "any",
    ]


def _used(used: str, most: str | None) -> str:
    return f"{used} of {most}" if most else used
