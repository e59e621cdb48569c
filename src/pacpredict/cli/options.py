"""Options that several commands share."""

import os
import sys
from argparse import Action, ArgumentError, ArgumentParser, Namespace, _ArgumentGroup
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pacpredict import defaults
from pacpredict.cli.numbers import ONE_PER_CORE, count, jobs, real
from pacpredict.exceptions import InvalidInput

if TYPE_CHECKING:
    from pacpredict.deployment import Deployment

# Where the ledger is, for programs that must not show a password in the list of processes.
LEDGER_VARIABLE = "PACPREDICT_LEDGER"

ADDRESS_HELP = "head of the Ray cluster, or auto (default: one that runs here, or else is started)"

_VOTES = (
    "plain, or leave-one-out: where one record explains the votes, answer as the models without it do; leave-two-out "
    "where strangers contribute records"
)

Arguments = ArgumentParser | _ArgumentGroup


def add_artifact(parser: ArgumentParser) -> None:
    parser.add_argument("artifact", type=Path, help="the directory that `pacpredict fit` made")


def add_json(parser: Arguments) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_jobs(parser: Arguments) -> None:
    parser.add_argument(
        "--jobs",
        type=jobs,
        default=ONE_PER_CORE,
        metavar="N",
        help="models trained at a time (default: one per core)",
    )


def add_backend(parser: Arguments) -> None:
    parser.add_argument(
        "--backend", metavar="NAME", help="ray, or a backend of joblib's (default: processes of this machine)"
    )


def add_address(parser: Arguments) -> None:
    parser.add_argument("--address", metavar="HOST:PORT", help=ADDRESS_HELP)


def add_models(parser: Arguments) -> None:
    parser.add_argument(
        "--models",
        type=count,
        default=defaults.MODELS,
        metavar="M",
        help=f"subsets and models (default: {defaults.MODELS})",
    )


def add_subsets(parser: Arguments) -> None:
    add_models(parser)
    parser.add_argument(
        "--construction",
        choices=("balanced", "half-partitions"),
        default=defaults.CONSTRUCTION,
        help="(default: balanced)",
    )
    parser.add_argument(
        "--rate", type=real, default=defaults.RATE, help="share of subsets that a record is in (default: 1/2)"
    )


def add_decode(parser: Arguments) -> None:
    parser.add_argument(
        "--decode",
        metavar="NAME",
        default=defaults.DECODE,
        help="argmax, the paper's and the default; map; or sample",
    )
    parser.add_argument(
        "--noise",
        metavar="KIND",
        default=defaults.NOISE,
        help="of argmax and map: least in all, the paper's and the default; or fair, the same for all voted labels",
    )


def add_votes(parser: Arguments) -> None:
    parser.add_argument(
        "--votes",
        metavar="RULE",
        default=defaults.VOTES,
        help=f"{_VOTES} (default: {defaults.VOTES})",
    )


def add_missing(parser: Arguments) -> None:
    parser.add_argument(
        "--missing",
        action="append",
        default=[],
        metavar="TEXT",
        help="a value that means missing, such as '?', or in one column alone, such as age=-9; may be repeated "
        "(an empty cell always does)",
    )


def add_ledger(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--ledger",
        action=_LedgerUrl,
        metavar="URL",
        default=os.environ.get(LEDGER_VARIABLE) or None,
        help=f"where the ledger is, if not in the artifact (default: what {LEDGER_VARIABLE} says)",
    )
    add_ledger_password(parser)
    add_anchor(parser)


def open_deployment(arguments: Namespace, *, to_look: bool = True) -> "Deployment":
    """Open the artifact with the ledger and the anchor that were given; to look at it, or to begin to use them."""
    from pacpredict.deployment import Deployment  # noqa: PLC0415  # takes time to import

    return Deployment.open(
        arguments.artifact, ledger=arguments.ledger, anchor=arguments.anchor, to_look=to_look
    )


def add_anchor(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--anchor",
        metavar="PLACE",
        help="a file on another disk, or a postgresql:// URL, that remembers how far the history has come; once given, "
        "always",
    )


def add_force(parser: ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="replace a file that exists already")


def add_other_decode(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--decode",
        metavar="NAME",
        help="another decoder than the artifact's, for answers from now on; those on record stay what they are",
    )


def add_other_votes(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--votes",
        metavar="RULE",
        help=f"{_VOTES}; for answers from now on (default: the artifact's)",
    )


def add_ledger_password(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--ledger-password-file",
        action=_PasswordFile,
        metavar="FILE",
        help="a file with the password of the database; PGPASSWORD, PGPASSFILE and ~/.pgpass are heeded, too",
    )


class _LedgerUrl(Action):
    def __call__(self, _: ArgumentParser, namespace: Namespace, url: Any, __: str | None = None) -> None:
        if has_password(url):
            print(
                "pacpredict: warning: whoever lists the processes of this machine sees the password in --ledger; "
                f"put it into a file (--ledger-password-file), or into the environment ({LEDGER_VARIABLE}, PGPASSWORD)",
                file=sys.stderr,
            )
        setattr(namespace, self.dest, url)


class _PasswordFile(Action):
    """Hands the password to PostgreSQL's own library, here and in the processes of workers, by its variable."""

    def __call__(self, _: ArgumentParser, namespace: Namespace, path: Any, __: str | None = None) -> None:
        try:
            read_password(path)
        except InvalidInput as problem:
            raise ArgumentError(self, str(problem)) from None
        setattr(namespace, self.dest, path)


def read_password(path: str) -> None:
    """Hand the password in a file to PostgreSQL's own library, by its variable."""
    try:
        os.environ["PGPASSWORD"] = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, ValueError) as problem:
        raise InvalidInput(f"{path} holds no password: {problem}") from None


def has_password(url: str) -> bool:
    """Tell whether a URL of PostgreSQL says a password, before the host or among the parameters."""
    authority = url.partition("://")[2].partition("/")[0]
    user, is_user, _ = authority.rpartition("@")
    return (bool(is_user) and ":" in user) or "password=" in url.partition("?")[2]


def add_trust(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--trust",
        action="store_true",
        help="load models that skops stored, whose files can name code to run; for artifacts of your own",
    )
