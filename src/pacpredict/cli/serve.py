"""`serve`: an artifact behind HTTP."""

from argparse import ArgumentParser, Namespace

from pacpredict.cli.command import Command
from pacpredict.cli.options import add_artifact, add_ledger, add_trust
from pacpredict.exceptions import MissingExtra


def _add_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    parser.add_argument(
        "--host", default="127.0.0.1", help="the address to listen at (default: this machine only)"
    )
    parser.add_argument("--port", type=int, default=8000, help="(default: 8000; 0 takes a free one)")
    parser.add_argument(
        "--name", help="the model's name in paths (default: that of the artifact, without .pac)"
    )
    add_ledger(parser)
    parser.add_argument(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="processes; several need a PostgreSQL ledger (default: 1)",
    )
    add_trust(parser)


def _run(arguments: Namespace) -> None:
    try:
        from pacpredict.serving.run import Settings, serve  # noqa: PLC0415  # takes time to import
    except ImportError as problem:
        if (problem.name or "").startswith("pacpredict"):
            raise
        raise MissingExtra("serve", "serving") from problem
    serve(
        Settings(
            arguments.artifact,
            arguments.artifact.resolve().stem if arguments.name is None else arguments.name,
            ledger=arguments.ledger,
            trust=arguments.trust,
            host=arguments.host,
            port=arguments.port,
            workers=arguments.workers,
        )
    )


SERVE = Command(
    name="serve",
    summary="answer queries over HTTP",
    description="Answer queries over HTTP: Open Inference Protocol (V2), MLflow's /invocations, and /privacy.\n"
    "An answer is on record before it is sent. Stop with Ctrl-C or SIGTERM: what was begun is finished.",
    example="pacpredict serve census.pac --port 8000",
    add_arguments=_add_arguments,
    run=_run,
)
