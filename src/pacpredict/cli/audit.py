"""`audit`: the strongest attacks there are, against simulated futures of a deployment, or what its ledger exposed."""

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from pacpredict.cli.as_json import print_json
from pacpredict.cli.columns import print_points
from pacpredict.cli.command import Command
from pacpredict.cli.numbers import count
from pacpredict.cli.options import (
    LEDGER_VARIABLE,
    add_anchor,
    add_artifact,
    add_force,
    add_json,
    add_ledger_password,
    add_other_decode,
    add_trust,
)
from pacpredict.cli.output import check_file, output_file
from pacpredict.cli.table import print_table
from pacpredict.core.attacks import GROUP_SIZE
from pacpredict.exceptions import InvalidInput

if TYPE_CHECKING:
    from pacpredict.artifact.artifact import Artifact
    from pacpredict.audit.estimates import Estimate
    from pacpredict.audit.live import Exposure
    from pacpredict.audit.run import Audit
    from pacpredict.rows.kind import AnyRows

_OWN = "own"  # the ledger of the artifact


def _add_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    parser.add_argument("--report", type=Path, metavar="FILE", help="the page to write, such as audit.html")
    add_force(parser)
    parser.add_argument(
        "--data", type=Path, metavar="TABLE", help="the training data, if it is elsewhere now"
    )
    parser.add_argument("--public", type=Path, metavar="TABLE", help="public records to ask about, too")
    parser.add_argument(
        "--trials", type=count, default=100, metavar="N", help="futures of each kind (default: 100)"
    )
    parser.add_argument(
        "--queries",
        type=count,
        default=100_000,
        metavar="N",
        help="asked in each, on which models differ (default: 1e5)",
    )
    parser.add_argument(
        "--targets", type=count, default=10, metavar="N", help="units to be after, of each kind (default: 10)"
    )
    parser.add_argument(
        "--runs", type=count, default=50, metavar="N", help="games against each of them (default: 50)"
    )
    parser.add_argument(
        "--retrain",
        type=count,
        default=0,
        metavar="N",
        help="records to train all models again without (default: 0)",
    )
    parser.add_argument(
        "--seed", type=count, default=1, metavar="N", help="of all that chance decides (default: 1)"
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="threads (default: one per core)")
    add_other_decode(parser)
    add_trust(parser)
    parser.add_argument(
        "--ledger",
        nargs="?",
        const=_OWN,
        metavar="URL",
        help="instead: what the releases so far have exposed, from the ledger in the artifact or at a URL; it names "
        "units, and is for the owner only",
    )
    add_ledger_password(parser)
    add_anchor(parser)
    add_json(parser)


def _run(arguments: Namespace) -> None:
    if arguments.report is not None:
        check_file(arguments.report, force=arguments.force)
    from pacpredict.kernels import compile_once  # noqa: PLC0415  # takes time to import

    compile_once()
    if arguments.ledger is None:
        _run_simulated(arguments)
    else:
        _run_live(arguments)


def _run_simulated(arguments: Namespace) -> None:
    from pacpredict.artifact.artifact import Artifact  # noqa: PLC0415
    from pacpredict.audit.page import render  # noqa: PLC0415
    from pacpredict.audit.run import Plan, audit  # noqa: PLC0415
    from pacpredict.audit.words import to_json  # noqa: PLC0415
    from pacpredict.cli.data import read_pool_of  # noqa: PLC0415
    from pacpredict.cli.progress import progress_bar  # noqa: PLC0415

    artifact = Artifact.open(arguments.artifact, trust=arguments.trust, blind=True)
    pool = read_pool_of(artifact, arguments.data)
    plan = Plan(
        arguments.trials,
        arguments.queries,
        arguments.targets,
        arguments.runs,
        arguments.retrain,
        arguments.seed,
        arguments.jobs,
    )
    with progress_bar("parts of the audit") as progress:
        found = audit(
            artifact,
            pool,
            plan,
            decode=arguments.decode,
            public=None if arguments.public is None else _public_rows(artifact, arguments.public),
            progress=progress,
        )
    if arguments.report is not None:
        with output_file(arguments.report, force=arguments.force) as out:
            out.write(render(found).encode())
    if arguments.json:
        print_json(to_json(found))
    else:
        _print(found)


def _public_rows(artifact: "Artifact", path: Path) -> "AnyRows":
    """Read public records; columns that queries do not have, such as labels, are left out."""
    from pacpredict.rows.read import read_records  # noqa: PLC0415
    from pacpredict.tables.schema import Schema  # noqa: PLC0415

    if not isinstance(artifact.schema, Schema):
        raise InvalidInput("--public takes tables, and this artifact answers about whole images or texts")
    records = read_records(path, artifact.schema.missing)
    names = [column.name for column in artifact.schema.columns]
    return artifact.schema.rows({name: records[name] for name in names if name in records})


def _print(found: "Audit") -> None:
    from pacpredict.audit.words import name_of, pool_in_words, show, verdict  # noqa: PLC0415

    def row(name: str, told: "Estimate", ceiling: float) -> tuple[str, str, str, str]:
        low, high = max(told.low, 0.0), min(told.high, 1.0)
        return name, show(told.value), f"{show(low)} to {show(high)}", show(ceiling)

    looks = [(one.strategy, one.looks[-1]) for one in found.inferences]
    rows = [row(f"asks {strategy}", look.success, look.ceiling) for strategy, look in looks]
    rows += [
        row(f"{name_of(one)}, after {one.targets} ones", one.success, one.ceiling) for one in found.duels
    ]
    rows += [
        row(one.question, one.success, one.ceiling)
        for one in found.attacks
        if not one.name.startswith("group") or one.name.endswith(f"-{GROUP_SIZE}")
    ]
    print_table(f"Audit of {found.about['name']}", ("attack", "told", "interval, 99.9 %", "at most"), rows)
    print()
    first, *rest = verdict(found)
    print(first)
    print_points(rest)
    print("\nNot promised: is a record in the pool at all?")
    print_points(pool_in_words(found))


def _run_live(arguments: Namespace) -> None:
    from pacpredict.audit.live import expose  # noqa: PLC0415
    from pacpredict.audit.live_page import render_exposure  # noqa: PLC0415
    from pacpredict.audit.words import plain  # noqa: PLC0415
    from pacpredict.deployment import Deployment  # noqa: PLC0415

    url = (os.environ.get(LEDGER_VARIABLE) or None) if arguments.ledger == _OWN else arguments.ledger
    _refuse_simulated(arguments)
    with Deployment.open(arguments.artifact, ledger=url, anchor=arguments.anchor, to_look=True) as deployment:
        found = expose(deployment)
    if arguments.report is not None:
        with output_file(arguments.report, force=arguments.force) as out:
            out.write(render_exposure(arguments.artifact.name, found).encode())
    if arguments.json:
        print_json(plain(found))
    else:
        _print_exposure(found)


def _refuse_simulated(arguments: Namespace) -> None:
    """Say that what was asked for is no part of looking at a ledger, instead of passing over it."""
    for name in ("data", "public", "retrain", "decode"):
        if getattr(arguments, name):
            raise InvalidInput(
                f"--{name} is for simulated futures: a ledger has its questions and answers already"
            )


def _print_exposure(found: "Exposure") -> None:
    last = found.moments[-1]
    limit = "none" if found.limit is None else f"{found.limit:g}"
    facts = [
        ("answers", f"{last.answers:,}"),
        ("charged", f"{last.charged_nats:.6g} of {found.total_nats:.6g} nats"),
        ("revealed by this very history", f"{last.learnt_nats:.6g} nats"),
        ("farthest that log-odds of anybody moved", f"{last.largest_shift:.6f} (limit: {limit})"),
        ("typical", f"{last.typical_shift:.6f}"),
    ]
    print_table("What the releases have exposed (for the owner only)", (), facts)
    print()
    named = [
        (str(one.unit), ", ".join(map(str, one.records[:3])), f"{one.probability:.6f}", f"{one.shift:+.6f}")
        for one in found.most_exposed
    ]
    print_table(
        f"The most exposed {found.unit}s", (found.unit, "rows of the data", "trained on", "moved"), named
    )


AUDIT = Command(
    name="audit",
    summary="attack simulated futures of a deployment, or see what its ledger exposed",
    description="Make the strongest attacks there are against simulated futures of a deployment, and set them beside\n"
    "what is promised. Neither the secret nor the ledger is touched. With --ledger: what the releases so far have\n"
    "exposed.",
    example="pacpredict audit census.pac --report audit.html",
    add_arguments=_add_arguments,
    run=_run,
)
