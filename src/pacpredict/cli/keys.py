"""`keys ...`: who may ask a server, and how much."""

import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from datetime import UTC, datetime, timedelta
from typing import Any

from pacpredict.cli.as_json import print_json
from pacpredict.cli.command import Command
from pacpredict.cli.numbers import count, real
from pacpredict.cli.options import add_artifact, add_json, add_ledger, open_deployment
from pacpredict.cli.table import print_table

_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}


def _expiry(text: str) -> str:
    """Read a time in the future: a date, a date with a time, or how long from now."""
    try:
        if span := re.fullmatch(r"([0-9]{1,6})([dhms])", text.strip()):
            when = datetime.now(UTC) + timedelta(**{_UNITS[span[2]]: int(span[1])})
        else:
            when = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise ArgumentTypeError(
            f"{text!r} is no time; write 90d, 12h, 2027-01-31 or 2027-01-31T12:00Z"
        ) from None
    when = when.replace(tzinfo=when.tzinfo or UTC).astimezone(UTC)
    if when <= datetime.now(UTC):
        raise ArgumentTypeError(f"{text!r} is in the past")
    return when.isoformat(timespec="seconds")


def _add_make_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    _add_name(parser, "how the client is called in the ledger; each name is used once")
    parser.add_argument(
        "--role",
        choices=("query", "read", "admin"),
        default="query",
        help="query: ask; read: metrics and the page; admin: both, and the list of keys (default: query)",
    )
    parser.add_argument(
        "--expires",
        type=_expiry,
        metavar="WHEN",
        help="90d, 12h, 2027-01-31 or 2027-01-31T12:00Z (default: never)",
    )
    parser.add_argument("--rate", type=count, metavar="N", help="new answers in a minute (default: no limit)")
    parser.add_argument("--queries", type=count, metavar="N", help="new answers in all (default: no limit)")
    parser.add_argument(
        "--nats",
        type=real,
        metavar="N",
        help="share of the privacy budget that it may spend (default: all of it)",
    )
    add_ledger(parser)
    add_json(parser)


def _run_make(arguments: Namespace) -> None:
    from pacpredict.ledger.keys import Terms  # noqa: PLC0415

    terms = Terms(
        arguments.name,
        arguments.role,
        arguments.expires,
        arguments.rate,
        arguments.queries,
        arguments.nats,
    )
    # A server that others reach starts with keys only: so the first is what begins a ledger elsewhere.
    with open_deployment(arguments, to_look=False) as deployment:
        is_first = not deployment.keys.all()
        token = deployment.keys.make(terms)
    if arguments.json:
        print_json({"key": token, **terms._asdict()})
    else:
        print(token)
    if is_first:
        print(
            "pacpredict: this is the first key. Servers that run already ask for none: start them again",
            file=sys.stderr,
        )


def _add_list_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    add_ledger(parser)
    add_json(parser)


def _run_list(arguments: Namespace) -> None:
    with open_deployment(arguments) as deployment:
        found = deployment.keys.describe()
    if arguments.json:
        print_json({"keys": found})
        return
    if not found:
        print("there are no keys; `pacpredict keys make` makes one")
        return
    columns = ("name", "role", "state", "a minute", "queries", "nats")
    print_table("Keys, and what they have used", columns, [_row(key) for key in found])


def _row(key: dict[str, Any]) -> tuple[str, ...]:
    ends = key["state"] == "valid" and key["expires"] is not None
    return (
        key["name"],
        key["role"],
        f"to {key['expires'][:10]}" if ends else key["state"],
        "any" if key["rate"] is None else f"{key['rate']:,}",
        _of(f"{key['used_queries']:,}", None if key["queries"] is None else f"{key['queries']:,}"),
        _of(f"{key['used_nats']:.4g}", None if key["nats"] is None else f"{key['nats']:.4g}"),
    )


def _of(used: str, most: str | None) -> str:
    return used if most is None else f"{used} of {most}"


def _add_revoke_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    _add_name(parser, "the name of the key")
    add_ledger(parser)
    add_json(parser)


def _run_revoke(arguments: Namespace) -> None:
    with open_deployment(arguments) as deployment:
        deployment.keys.revoke(arguments.name)
    if arguments.json:
        print_json({"revoked": arguments.name})
    else:
        print(f"{arguments.name!r} is revoked: no server takes it any more")


def _add_name(parser: ArgumentParser, meaning: str) -> None:
    parser.add_argument("name", help=meaning)


MAKE = Command(
    name="keys make",
    summary="make a key for a client, and show it once",
    description="Make a key and print it; only a salted hash is kept, so it cannot be shown again. Clients send it as\n"
    "`Authorization: Bearer KEY`. Limits keep one client from spending what all share; they are no boundary of\n"
    "privacy, since clients can put together what they were told.",
    example="pacpredict keys make census.pac lab --queries 10000 --expires 90d",
    add_arguments=_add_make_arguments,
    run=_run_make,
)

LIST = Command(
    name="keys list",
    summary="show the keys, and what they have used",
    description="List all keys that were ever made: role, whether they are valid, limits and use.",
    example="pacpredict keys list census.pac",
    add_arguments=_add_list_arguments,
    run=_run_list,
)

REVOKE = Command(
    name="keys revoke",
    summary="end a key at once, on all servers",
    description="Revoke a key. Every server on the same ledger refuses it from the next request on. Revoking it again\n"
    "changes nothing.",
    example="pacpredict keys revoke census.pac lab",
    add_arguments=_add_revoke_arguments,
    run=_run_revoke,
)
