"""The settings of `serve`: each is a line in a TOML file, a variable of the environment and an option, in this order.

What comes later wins. A setting `max_rows` is `max_rows = 500`, `PACPREDICT_SERVE_MAX_ROWS=500` or `--max-rows 500`.
"""

import os
import tomllib
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from pacpredict.cli.numbers import count, port, real
from pacpredict.cli.options import ADDRESS_HELP
from pacpredict.exceptions import InvalidInput
from pacpredict.serving.limits import Limits

PREFIX = "PACPREDICT_SERVE_"
_YES, _NO = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


class Setting(NamedTuple):
    """A setting that is read from texts; `many` may be repeated, and separated by commas in the environment."""

    name: str
    read: Callable[[str], Any]
    default: Any
    help: str
    metavar: str = "N"
    many: bool = False

    @property
    def option(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def is_switch(self) -> bool:
        return self.read is _switch

    def of_text(self, text: str) -> Any:
        return tuple(map(self.read, filter(None, text.split(",")))) if self.many else self.read(text)

    def of_value(self, value: Any) -> Any:
        """Read what TOML has already understood as a number, a truth or a list, by the same rules."""
        if self.many and isinstance(value, list):
            return tuple(self.read(str(each)) for each in value)
        if isinstance(value, dict | list):
            raise ArgumentTypeError(f"{value!r} cannot be read")
        return self.of_text(str(value))


def _switch(text: str) -> bool:
    if text.lower() in _YES | _NO:
        return text.lower() in _YES
    raise ArgumentTypeError(f"{text!r} is neither true nor false")


def limit_names() -> dict[str, str]:
    """Return the setting of each limit."""
    return {
        limit.name: limit.name
        if limit.name.endswith("_seconds") or limit.name == "small_bytes"
        else f"max_{limit.name}"
        for limit in fields(Limits)
    }


_LIMIT_HELP = {
    "url_bytes": "in a URL",
    "head_bytes": "in URL and headers",
    "body_bytes": "in the body of one request",
    "rows": "in one request",
    "pixel_bytes": "of the images of one request, once they are decoded",
    "head_seconds": "for URL and headers to arrive",
    "body_seconds": "for a body to arrive",
    "unread_seconds": "for a reply to be taken",
    "idle_seconds": "that a connection is kept between two requests",
    "connections": "at a time, of each worker",
    "connections_per_address": "of them from one address; proxies that --proxy names may have all",
    "pipelined": "requests on one connection that did not wait for the reply before",
    "held_bodies": "of the largest size, in memory at a time",
    "waiting": "requests that wait for an answer",
    "small_bytes": "of a body that does not queue behind larger ones",
}


def _limit_settings() -> list[Setting]:
    return [
        Setting(
            name,
            real if limit.endswith("_seconds") else count,
            getattr(Limits, limit),
            f"{_LIMIT_HELP[limit]} (default: {getattr(Limits, limit):,})",
        )
        for limit, name in limit_names().items()
    ]


SETTINGS: tuple[Setting, ...] = (
    Setting("host", str, "127.0.0.1", "the address to listen at (default: this machine only)", "ADDRESS"),
    Setting("port", port, 8000, "(default: 8000; 0 takes a free one)"),
    Setting(
        "name", str, None, "the model's name in paths (default: that of the artifact, without .pac)", "NAME"
    ),
    Setting("workers", count, 1, "processes; several need a PostgreSQL ledger (default: 1)"),
    Setting(
        "voters",
        str,
        "here",
        "where the models vote: here (default), or ray: spread over the actors of a Ray cluster",
        "PLACE",
    ),
    Setting("address", str, None, ADDRESS_HELP, "HOST:PORT"),
    Setting("actors", count, None, "that models are spread over (default: one for each CPU)"),
    Setting("gpus_per_actor", real, 0.0, "may be a fraction (default: 0)"),
    Setting(
        "decode",
        str,
        None,
        "another decoder than the artifact's, for answers from now on; those on record stay what they are",
        "NAME",
    ),
    Setting(
        "votes",
        str,
        None,
        "plain, leave-one-out or leave-two-out, for answers from now on (default: the artifact's)",
        "RULE",
    ),
    Setting(
        "trust",
        _switch,
        False,
        "load models that skops stored, whose files can name code to run; for artifacts of your own",
    ),
    Setting("open", _switch, False, "answer everybody who can reach the server, without a key"),
    Setting(
        "separate_answers",
        _switch,
        False,
        "do not show one key what another was answered: the same query is answered, and charged, once for each key",
    ),
    Setting(
        "allow_host",
        str,
        (),
        "a name that the server is called by, beside addresses and the machine's own; *.NAME for all below it, * for "
        "any; may be repeated",
        "NAME",
        many=True,
    ),
    Setting(
        "allow_origin",
        str,
        (),
        "whose web pages may ask, like https://app.example.org; * for anybody's; may be repeated",
        "ORIGIN",
        many=True,
    ),
    Setting(
        "proxy",
        str,
        (),
        "the address or network of a proxy whose X-Forwarded-For and X-Forwarded-Proto are believed; may be repeated",
        "ADDRESS",
        many=True,
    ),
    Setting(
        "tls_certificate", Path, None, "a file with the certificate and its chain, to speak HTTPS", "FILE"
    ),
    Setting("tls_key", Path, None, "a file with the key of the certificate", "FILE"),
    Setting("no_metrics", _switch, False, "count nothing, and have no /metrics"),
    Setting(
        "log",
        str,
        "text",
        "text, or json: an object for each line, with an id for each request (default: text)",
        "FORM",
    ),
    Setting(
        "drain_seconds",
        real,
        5.0,
        "after SIGTERM, to be not ready but still answer, so that balancers can turn away (default: 5)",
    ),
    *_limit_settings(),
)

# Settings that other commands have, too, and that are read there.
SHARED = ("artifact", "ledger", "ledger_password_file", "anchor")


class Found(NamedTuple):
    """A value and where it was found."""

    value: Any
    source: str


def add_settings(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="a TOML file with settings, under the names below"
    )
    for setting in SETTINGS:
        if setting.is_switch:
            parser.add_argument(setting.option, action="store_true", default=None, help=setting.help)
        else:
            parser.add_argument(
                setting.option,
                type=setting.read,
                action="append" if setting.many else "store",
                metavar=setting.metavar,
                help=setting.help,
            )


def find_settings(arguments: Namespace, environment: Mapping[str, str] = os.environ) -> dict[str, Found]:
    """Say what each setting comes to, and why."""
    found = {setting.name: Found(setting.default, "default") for setting in SETTINGS}
    found |= {name: Found(None, "default") for name in SHARED}
    if arguments.config is not None:
        found |= _of_file(arguments.config)
    found |= _of_environment(environment)
    for name in found:
        given = getattr(arguments, name)
        if given is not None:
            found[name] = Found(tuple(given) if isinstance(given, list) else given, "option")
    return found


def _of_file(path: Path) -> dict[str, Found]:
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise InvalidInput(f"{path} cannot be read as TOML: {problem}") from None
    found = {}
    for name, value in given.items():
        if name == "artifact" and isinstance(
            value, str
        ):  # seen from the file, wherever the server is started
            found[name] = Found(path.parent / value, str(path))
        else:
            found[name] = Found(_read(name, value, str(path)), str(path))
    return found


def _of_environment(environment: Mapping[str, str]) -> dict[str, Found]:
    return {
        name: Found(_read(name, text, variable), variable)
        for variable, text in environment.items()
        if variable.startswith(PREFIX)
        for name in [variable.removeprefix(PREFIX).lower()]
    }


def _read(name: str, value: Any, source: str) -> Any:
    setting = next((each for each in SETTINGS if each.name == name), None)
    if setting is None and name in SHARED and isinstance(value, str):
        return Path(value) if name == "artifact" else value
    if setting is None:
        raise InvalidInput(
            f"{source} sets {name!r}, which is no setting; `pacpredict serve --help` lists them"
        )
    try:
        return setting.of_value(value)
    except ArgumentTypeError as problem:
        raise InvalidInput(f"{source}: {name}: {problem}") from None
