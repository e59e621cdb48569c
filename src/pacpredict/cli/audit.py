"""`audit`: the strongest attacks there are, against simulated futures of a deployment, or what its ledger revealed."""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pacpredict.cli.as_json import print_json
from pacpredict.cli.columns import print_points
from pacpredict.cli.command import Command
from pacpredict.cli.numbers import count, jobs
from pacpredict.cli.options import (
    LEDGER_VARIABLE,
    add_anchor,
    add_artifact,
    add_force,
    add_json,
    add_ledger_password,
    add_other_decode,
    add_other_votes,
    add_trust,
)
from pacpredict.cli.output import check_file, output_file
from pacpredict.cli.queries import choose_features, read_columns
from pacpredict.cli.table import print_table
from pacpredict.core.attacks import GROUP_SIZE
from pacpredict.exceptions import InvalidInput, PromiseBroken

if TYPE_CHECKING:
    from pacpredict.artifact.artifact import Artifact
    from pacpredict.audit.estimates import Estimate
    from pacpredict.audit.live import LedgerReview
    from pacpredict.audit.run import Audit
    from pacpredict.audit.self_test.negative_control import Control
    from pacpredict.rows.kind import AnyRows

_OWN = "own"  # the ledger of the artifact
# Options that are fields of a plan.
_PLANNED = {
    "trials": "n_trials",
    "queries": "n_queries",
    "targets": "n_targets",
    "runs": "n_runs",
    "sessions": "n_sessions",
    "retrain": "n_retrained",
    "seed": "seed",
    "jobs": "n_jobs",
}


def _add_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    parser.add_argument("--report", type=Path, metavar="FILE", help="the page to write, such as audit.html")
    add_force(parser)
    parser.add_argument(
        "--data", type=Path, metavar="TABLE", help="the training data, if it is elsewhere now"
    )
    parser.add_argument("--public", type=Path, metavar="TABLE", help="public records to ask about, too")
    # What is not given is what `Plan` says: so it is known what was, and whether it makes sense with --ledger.
    parser.add_argument("--trials", type=count, metavar="N", help="futures of each kind (default: 100)")
    parser.add_argument(
        "--queries",
        type=count,
        metavar="N",
        help="asked in each, on which models differ (default: 1e5)",
    )
    parser.add_argument(
        "--targets", type=count, metavar="N", help="units to be after, of each kind (default: 10)"
    )
    parser.add_argument("--runs", type=count, metavar="N", help="games against each of them (default: 50)")
    parser.add_argument(
        "--sessions",
        type=count,
        metavar="N",
        help="sessions of the self-test; four times as many notice half the shift (default: 512)",
    )
    parser.add_argument(
        "--retrain",
        type=count,
        metavar="N",
        help="records to train all models again without (default: 0)",
    )
    parser.add_argument("--seed", type=count, metavar="N", help="of all that chance decides (default: 1)")
    parser.add_argument(
        "--jobs", type=jobs, metavar="N", help="threads, and models trained at a time (default: one per core)"
    )
    add_other_decode(parser)
    add_other_votes(parser)
    add_trust(parser)
    parser.add_argument(
        "--ledger",
        nargs="?",
        const=_OWN,
        metavar="URL",
        help="instead: what the releases so far have revealed, from the ledger in the artifact or at a URL; it names "
        "units, and is for the owner only",
    )
    parser.add_argument(
        "--negative-control",
        action="store_true",
        help="instead: run the self-test on this mechanism broken in several ways, and show what is caught",
    )
    add_ledger_password(parser)
    add_anchor(parser)
    add_json(parser)


def _run(arguments: Namespace) -> None:
    _refuse_other_way(arguments)
    if arguments.report is not None:
        check_file(arguments.report, force=arguments.force)
    from pacpredict.kernels import compile_once  # noqa: PLC0415  # takes time to import

    compile_once()
    if arguments.negative_control:
        _run_negative_control(arguments)
    elif arguments.ledger is None:
        _run_simulated(arguments)
    else:
        _run_live(arguments)


def _run_simulated(arguments: Namespace) -> None:
    from pacpredict.artifact.artifact import Artifact  # noqa: PLC0415
    from pacpredict.audit.page import render  # noqa: PLC0415
    from pacpredict.audit.run import Plan, audit  # noqa: PLC0415
    from pacpredict.audit.words import broken, to_json, verdict  # noqa: PLC0415
    from pacpredict.cli.data import read_pool_of  # noqa: PLC0415
    from pacpredict.cli.progress import progress_bar  # noqa: PLC0415

    artifact = Artifact.open(arguments.artifact, trust=arguments.trust, blind=True)
    pool = read_pool_of(artifact, arguments.data)
    given = {field: getattr(arguments, name) for name, field in _PLANNED.items()}
    plan = Plan(**{field: value for field, value in given.items() if value is not None})
    with progress_bar("parts of the audit") as progress:
        found = audit(
            artifact,
            pool,
            plan,
            decode=arguments.decode,
            votes=arguments.votes,
            public=None if arguments.public is None else public_rows(artifact, arguments.public),
            progress=progress,
        )
    if arguments.report is not None:
        with output_file(arguments.report, force=arguments.force) as out:
            out.write(render(found).encode())
    if arguments.json:
        print_json(to_json(found))
    else:
        _print(found)
    if any(broken(found)):
        raise PromiseBroken(f"{verdict(found)[0]} What it is stands above.")


def public_rows(artifact: "Artifact", path: Path) -> "AnyRows":
    """Read public records; columns that queries do not have, such as labels, are left out."""
    from pacpredict.rows.read import read_records  # noqa: PLC0415
    from pacpredict.tables.schema import Schema  # noqa: PLC0415

    if not isinstance(artifact.schema, Schema):
        return artifact.schema.rows(choose_features(read_columns(path), None, artifact))
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
    games = [
        row(f"{name_of(one)}, after {one.targets} ones", one.success, one.ceiling) for one in found.duels
    ]
    rows += [
        row(one.question, one.success, one.ceiling)
        for one in found.attacks
        if not one.name.startswith("group") or one.name.endswith(f"-{GROUP_SIZE}")
    ]
    columns = ("attack", "told", "interval, 99.9 %", "at most")
    own, larger = found.about["total_nats"], found.duels[0].total_nats
    charged = max(look.charged_nats for _, look in looks)
    title = f"Audit of {found.about['name']}, after {charged:.3g} of its {own:.3g} nats"
    print_table(title, columns, rows)
    print()
    print_table(
        f"Adversaries after one {found.about['unit']}, at a total of {larger:.3g} nats instead",
        columns,
        games,
    )
    print()
    first, *rest = verdict(found)
    print(first)
    print_points(rest)
    print("\nNot promised: is a record in the pool at all?")
    print_points(pool_in_words(found))


def _run_live(arguments: Namespace) -> None:
    from pacpredict.audit.live import review  # noqa: PLC0415
    from pacpredict.audit.live_page import render_review  # noqa: PLC0415
    from pacpredict.audit.words import plain  # noqa: PLC0415
    from pacpredict.deployment import Deployment  # noqa: PLC0415

    url = (os.environ.get(LEDGER_VARIABLE) or None) if arguments.ledger == _OWN else arguments.ledger
    with Deployment.open(arguments.artifact, ledger=url, anchor=arguments.anchor, to_look=True) as deployment:
        found = review(deployment)
    if arguments.report is not None:
        with output_file(arguments.report, force=arguments.force) as out:
            out.write(render_review(arguments.artifact.name, found).encode())
    if arguments.json:
        print_json(plain(found))
    else:
        _print_review(found)


def _run_negative_control(arguments: Namespace) -> None:
    from pacpredict.artifact.artifact import Artifact  # noqa: PLC0415
    from pacpredict.audit.run import Plan  # noqa: PLC0415
    from pacpredict.audit.self_test.mechanism import served_mechanism  # noqa: PLC0415
    from pacpredict.audit.self_test.negative_control import N_SESSIONS, run_negative_control  # noqa: PLC0415
    from pacpredict.audit.subject import Subject  # noqa: PLC0415
    from pacpredict.cli.data import read_pool_of  # noqa: PLC0415
    from pacpredict.cli.progress import progress_bar  # noqa: PLC0415

    artifact = Artifact.open(arguments.artifact, trust=arguments.trust, blind=True)
    pool = read_pool_of(artifact, arguments.data)
    subject = Subject.of(artifact, pool, decode=arguments.decode, votes=arguments.votes)
    subject.contested()  # refuses a pool on which all models agree
    with progress_bar("self-tests") as progress:
        controls = run_negative_control(
            served_mechanism(artifact.ensemble(rule=subject.rule), artifact.recipe, arguments.decode),
            subject.votes,
            seed=Plan().seed if arguments.seed is None else arguments.seed,
            n_sessions=arguments.sessions or N_SESSIONS,
            progress=progress,
        )
    wrong = [one for one in controls if not one.is_right]
    if arguments.json:
        told = [{**one._asdict(), "is_right": one.is_right} for one in controls]
        print_json({"holds": not wrong, "controls": told})
    else:
        _print_controls(controls)
    if wrong:
        raise PromiseBroken(
            f"{len(wrong)} of {len(controls)} mechanisms were not judged as they should be: see above. More --sessions "
            "notice smaller breaches"
        )


def _print_controls(controls: "Sequence[Control]") -> None:
    rows = [
        (one.sabotage or "nothing", one.leak, one.failed[0] if one.failed else "passes") for one in controls
    ]
    print_table("The self-test of this mechanism, broken on purpose", ("broken", "leaks", "caught by"), rows)
    caught = sum(bool(one.failed) for one in controls if one.sabotage is not None)
    print(f"\n{caught} of {len(controls) - 1} broken mechanisms were caught.")


def _refuse_other_way(arguments: Namespace) -> None:
    """Say what is no part of simulating futures, or of looking at a ledger, instead of passing over it."""
    if arguments.negative_control:
        names = ["ledger", "anchor", "ledger_password_file", "report", "public"]
        names += [name for name in _PLANNED if name not in {"sessions", "seed"}]
        why = "is no part of a negative control: leave it or --negative-control out"
    elif arguments.ledger is None:
        names = ["anchor", "ledger_password_file"]
        why = "is for looking at a ledger: say --ledger, too, or leave it out"
    else:
        names = ["data", "public", "decode", "votes", *_PLANNED]
        why = "is for simulated futures: a ledger has its questions and answers already; leave it or --ledger out"
    for name in names:
        if getattr(arguments, name) is not None:
            raise InvalidInput(f"--{name.replace('_', '-')} {why}")


def _print_review(found: "LedgerReview") -> None:
    from pacpredict.audit.live_page import ROWS, some_records  # noqa: PLC0415

    last = found.moments[-1]
    limit = "none" if found.limit is None else f"{found.limit:g}"
    facts = [
        ("answers", f"{last.answers:,}"),
        ("charged", f"{last.charged_nats:.6g} of {found.total_nats:.6g} nats"),
        ("revealed by this very history", f"{last.learnt_nats:.6g} nats"),
        ("log-odds of any statement moved, at most", f"{last.spread:.6f} (limit: {limit})"),
        (f"log-odds of any {found.unit} moved, at most", f"{last.largest_shift:.6f}"),
        ("typical", f"{last.typical_shift:.6f}"),
    ]
    print_table("What the releases have revealed (for the owner only)", (), facts)
    print()
    named = [
        (str(one.unit), some_records(one.records, most=3), f"{one.probability:.6f}", f"{one.shift:+.6f}")
        for one in found.most_moved
    ]
    print_table(
        f"{found.unit.capitalize()}s whose odds moved most", (found.unit, ROWS, "trained on", "moved"), named
    )


AUDIT = Command(
    name="audit",
    summary="attack simulated futures of a deployment, or see what its ledger revealed",
    description="Make the strongest attacks there are against simulated futures of a deployment, and set them beside\n"
    "what is promised. Neither the secret nor the ledger is touched. With --ledger: what the releases so far have\n"
    "revealed. With --negative-control: whether the self-test catches this mechanism once it is broken.",
    example="pacpredict audit census.pac --report audit.html",
    add_arguments=_add_arguments,
    run=_run,
)
