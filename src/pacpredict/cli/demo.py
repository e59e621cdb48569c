"""`demo`: the product at work, on patients that come with scikit-learn."""

import shlex
import signal
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from pacpredict.cli.as_json import print_json
from pacpredict.cli.command import Command
from pacpredict.cli.numbers import port
from pacpredict.cli.options import add_json, add_models
from pacpredict.cli.progress import progress_bar
from pacpredict.cli.promise import print_promise
from pacpredict.cli.table import print_table
from pacpredict.exceptions import InvalidInput, MissingExtra
from pacpredict.promise import promise_from
from pacpredict.show import percent

if TYPE_CHECKING:
    from pacpredict.demo.clinic import Clinic

_PORT = 8000
_SECONDS_BETWEEN_QUESTIONS = 0.3  # slow enough to watch


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--once", action="store_true", help="ask each patient once, print the guarantee, and end"
    )
    parser.add_argument(
        "--port",
        type=port,
        metavar="N",
        help="(default: 8000; if that is taken, and with --once, a free one)",
    )
    add_models(parser)
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="keep the artifact there (default: remove it)"
    )
    add_json(parser)


def _run(arguments: Namespace) -> None:
    if arguments.json and not arguments.once:
        raise InvalidInput("--json goes with --once: without that the demo has no end")
    try:
        import uvicorn  # noqa: F401, PLC0415  # said now, and not by the server when models are trained
    except ImportError as problem:
        raise MissingExtra("serve", "the demo") from problem
    from pacpredict.demo.clinic import Clinic  # noqa: PLC0415  # takes time to import

    began = time.monotonic()
    with _ended_by_signals(), TemporaryDirectory(prefix="pacpredict-demo-") as folder:
        clinic = Clinic(arguments.out or Path(folder, "clinic.pac"), Path(folder, "server.log"))
        _say(f"training {arguments.models} models on random halves of {len(clinic.pool)} patients ...")
        clinic.fit(arguments.models)
        _say("starting the server ...")
        with clinic.serving(_port(arguments)) as url:
            if arguments.once:
                _ask_once(clinic)
            else:
                _say(f"ready after {time.monotonic() - began:.0f} s\n")
                print(_invitation(clinic, url), flush=True)
                with suppress(KeyboardInterrupt):
                    _ask_for_ever(clinic)
        _report(clinic, as_json=arguments.json)


def _port(arguments: Namespace) -> int:
    if arguments.port is not None:
        return int(arguments.port)
    return 0 if arguments.once else _PORT


def _ask_once(clinic: "Clinic") -> None:
    n_questions = len(clinic.later)
    with progress_bar("questions") as update:
        for i in range(n_questions):
            clinic.ask()
            update(i + 1, n_questions)


def _ask_for_ever(clinic: "Clinic") -> None:
    with progress_bar("answers paid from the budget") as update:
        while clinic.ask():
            update(clinic.n_charged, clinic.n_paid_for)
            time.sleep(_SECONDS_BETWEEN_QUESTIONS)
    _say("the budget is spent: from now on the server refuses, and the page says so. Ctrl-C ends the demo")
    signal.pause()


def _invitation(clinic: "Clinic", url: str) -> str:
    """Say what to open and what to type; the command works as it is printed."""
    from pacpredict.demo.client import PATH, body_of  # noqa: PLC0415

    curl = ["curl", "-s", "-H", f"Authorization: Bearer {clinic.key}"]
    return f"""\
Open      {url}/
Key       {clinic.key}
Ask       {shlex.join([*curl, f"{url}{PATH}", "-d", body_of(clinic.later[0].row)])}
Look at   {shlex.join([*curl, f"{url}/privacy"])}

A client asks three questions a second. Where models disagree, an answer is paid for from the
budget, which is small here: it lasts for about an hour. Ctrl-C ends client and server, and
removes what the demo has made.
"""


def _report(clinic: "Clinic", *, as_json: bool) -> None:
    privacy = clinic.privacy()
    if as_json:
        print_json({"asked": clinic.n_asked, "right": clinic.n_right, **privacy})
        return
    spent, total = privacy["spent_nats"], privacy["total_nats"]
    facts = [
        ("questions asked over HTTP", f"{clinic.n_asked:,}"),
        ("answered rightly", percent(clinic.n_right / max(1, clinic.n_asked))),
        ("models disagreed on", f"{clinic.n_charged:,}"),
        ("spent", f"{spent:.3g} of {total:.3g} nats ({percent(spent / total)})"),
    ]
    print_table("The demo", (), facts)
    print()
    print_promise(promise_from(privacy, "record"))


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and a closed terminal end the demo as Ctrl-C does, with everything that it has started.

    A shell without job control starts what is to run in the background deaf to SIGINT: Ctrl-C is listened to anyway.
    """
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {which: signal.signal(which, _interrupt) for which in ends}
    try:
        yield
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def _say(what: str) -> None:
    print(f"pacpredict: {what}", file=sys.stderr, flush=True)


DEMO = Command(
    name="demo",
    summary="fit, serve and ask a deployment of patients, to look at",
    description="Fit a deployment on patients that come with scikit-learn, serve it with its page, and ask it\n"
    "until Ctrl-C. With --once: ask about each patient once, print what is guaranteed, and end.",
    example="pacpredict demo --once",
    add_arguments=_add_arguments,
    run=_run,
)
