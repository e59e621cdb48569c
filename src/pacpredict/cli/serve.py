"""`serve`: an artifact behind HTTP."""

import logging
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pacpredict.cli.as_json import print_json
from pacpredict.cli.command import EXIT_REFUSED, Command
from pacpredict.cli.options import add_json, add_ledger, read_password
from pacpredict.cli.settings import Found, add_settings, find_settings, limit_names
from pacpredict.cli.table import print_table
from pacpredict.exceptions import InvalidInput, MissingExtra, PacPredictError
from pacpredict.serving.limits import Limits

if TYPE_CHECKING:
    from pacpredict.serving.settings import Settings


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "artifact", type=Path, nargs="?", help="the directory that `pacpredict fit` made; or in the TOML file"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="say what all settings come to and whether the server could start; no more",
    )
    add_json(parser)
    add_ledger(parser)
    add_settings(parser)


def _voters(value: dict[str, Any]) -> Any:
    if value["voters"] not in ("here", "ray"):
        raise InvalidInput(f"models vote here, or on ray, not on {value['voters']!r}")
    if value["voters"] == "here":
        if value["address"] is not None or value["actors"] or value["gpus_per_actor"]:
            raise InvalidInput("--address, --actors and --gpus-per-actor need --voters ray")
        return None
    from pacpredict.training.cluster import Cluster  # noqa: PLC0415

    return Cluster(value["address"], gpus_per_model=value["gpus_per_actor"], actors=value["actors"])


def _run(arguments: Namespace) -> None:
    try:
        from pacpredict.serving.logs import announce  # noqa: PLC0415  # takes time to import
        from pacpredict.serving.run import check, serve  # noqa: PLC0415
    except ImportError as problem:
        if (problem.name or "").startswith("pacpredict"):
            raise
        raise MissingExtra("serve", "serving") from problem
    found = find_settings(arguments)
    settings = _settings(found)
    if arguments.check:
        _print_check(found, settings, check(settings), as_json=arguments.json)
        return
    from pacpredict.kernels import compile_once  # noqa: PLC0415

    compile_once()
    try:
        serve(settings)
    except PacPredictError as problem:
        if settings.log == "text":
            raise
        announce(settings.log, logging.ERROR, str(problem))  # for whoever reads the log: each line is JSON
        sys.exit(EXIT_REFUSED)


def _settings(found: dict[str, Found]) -> "Settings":
    from pacpredict.serving.settings import Settings  # noqa: PLC0415

    value = {name: each.value for name, each in found.items()}
    artifact = value["artifact"]
    if artifact is None:
        raise InvalidInput("which artifact? Give it on the command line, or as `artifact` in a TOML file")
    if value["ledger_password_file"] is not None:
        read_password(value["ledger_password_file"])
    return Settings(
        artifact,
        artifact.resolve().stem if value["name"] is None else value["name"],
        allow_hosts=value["allow_host"],
        allow_origins=value["allow_origin"],
        proxies=value["proxy"],
        metrics=not value["no_metrics"],
        limits=Limits(**{limit: value[name] for limit, name in limit_names().items()}),
        **{
            name: value[name]
            for name in ("ledger", "anchor", "trust", "decode", "votes", "host", "port", "workers")
        },
        **{name: value[name] for name in ("open", "separate_answers", "tls_certificate", "tls_key", "log")},
        drain_seconds=value["drain_seconds"],
        voters=_voters(value),
    )


def _print_check(found: dict[str, Found], settings: "Settings", opening: str, *, as_json: bool) -> None:
    shown = {name: (_plain(name, each.value), each.source) for name, each in sorted(found.items())}
    shown["name"] = (settings.name, found["name"].source)
    if as_json:
        print_json(
            {
                "access": opening,
                "settings": {
                    name: {"value": value, "source": source} for name, (value, source) in shown.items()
                },
            }
        )
        return
    rows = [
        (name, "none" if value is None else str(value), source) for name, (value, source) in shown.items()
    ]
    print_table("What the server would be started with", ("setting", "value", "from"), rows, opening)


def _plain(name: str, value: Any) -> Any:
    if name in ("ledger", "anchor") and isinstance(value, str) and "://" in value:
        parts = urlsplit(value)  # nobody needs to see a password
        host = parts.netloc.rpartition("@")[2]
        return f"{parts.scheme}://{f'{parts.username}@' if parts.username else ''}{host}{parts.path}"
    if isinstance(value, tuple):
        return ", ".join(value) or None
    return str(value) if isinstance(value, Path) else value


SERVE = Command(
    name="serve",
    summary="answer queries over HTTP",
    description="Answer queries over HTTP: Open Inference Protocol (V2), MLflow's /invocations, and /privacy.\n"
    "An answer is on record before it is sent. Stop with Ctrl-C or SIGTERM: what was begun is finished.\n"
    "Every option can also be in a TOML file (--config), as max_rows = 500, or in the environment, as\n"
    "PACPREDICT_SERVE_MAX_ROWS=500; the environment is stronger than the file, and options are the strongest.",
    example="pacpredict serve census.pac --port 8000",
    add_arguments=_add_arguments,
    run=_run,
)
