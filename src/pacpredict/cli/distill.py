"""`distill`: a student of a deployment that may be published, and whether one is what it says."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pacpredict import defaults
from pacpredict.cli import heads
from pacpredict.cli.command import Command
from pacpredict.cli.learner import setting
from pacpredict.cli.numbers import count, real
from pacpredict.cli.options import (
    add_artifact,
    add_jobs,
    add_json,
    add_ledger,
    add_missing,
    add_other_decode,
    add_other_votes,
    add_trust,
)
from pacpredict.cli.output import check_new_folder
from pacpredict.cli.progress import progress_bar, saying_how_to_go_on
from pacpredict.cli.queries import choose_features, read_columns, with_missing
from pacpredict.exceptions import InvalidInput

if TYPE_CHECKING:
    from pacpredict.deployment import Deployment
    from pacpredict.distill.columns import PublicRows
    from pacpredict.distill.questions import Questions
    from pacpredict.distill.run import Exam, Options
    from pacpredict.rows.kind import AnySchema


def _add_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    parser.add_argument(
        "public", type=Path, nargs="?", help="public rows without labels, in any form that predict takes"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="the folder of the student to write")
    parser.add_argument(
        "--verify", type=Path, metavar="DIR", help="check a student instead; with public rows, train it again"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what it would cost; nothing is asked or charged"
    )
    _add_student(parser)
    _add_asking(parser)
    _add_test(parser)
    heads.add_arguments(parser)
    add_jobs(parser)
    add_other_decode(parser)
    add_other_votes(parser)
    add_missing(parser)
    add_ledger(parser)
    add_trust(parser)
    add_json(parser)


def _add_student(parser: ArgumentParser) -> None:
    about = parser.add_argument_group("student")
    about.add_argument(
        "--learner",
        metavar="NAME",
        help=f"as of fit, or a classifier like sklearn.neighbors.KNeighborsClassifier (default: {defaults.LEARNER})",
    )
    about.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        type=setting,
        metavar="NAME=VALUE",
        help="parameters of the learner, such as epochs=50; values as JSON writes them",
    )
    about.add_argument(
        "--filter",
        choices=("corrected", "paper", "bayesian"),
        help="which labels are kept (default: corrected for argmax, bayesian for map and sample)",
    )
    about.add_argument("--alpha", type=real, metavar="A", help="how wrong kept labels may be (default: 0.01)")
    about.add_argument(
        "--soft", action="store_true", help="learn all labels that models give to a row, by their posterior"
    )
    about.add_argument("--balanced", action="store_true", help="let all classes weigh the same")


def _add_asking(parser: ArgumentParser) -> None:
    about = parser.add_argument_group("asking")
    about.add_argument("--queries", type=count, metavar="N", help="ask no more rows than so many")
    about.add_argument(
        "--until-success",
        type=real,
        metavar="P",
        help="ask while what is spent in all surely stays within the budget of this success of membership inference; "
        "what others spend meanwhile comes on top",
    )
    about.add_argument(
        "--order",
        choices=("random", "active"),
        default="random",
        help="of the rows; active: those first on which most models agree (default: random)",
    )
    about.add_argument(
        "--seed", type=count, default=0, metavar="N", help="of order and training; public (default: 0)"
    )


def _add_test(parser: ArgumentParser) -> None:
    about = parser.add_argument_group("evaluation")
    about.add_argument(
        "--test", type=Path, metavar="FILE", help="rows with known labels, which should be public"
    )
    about.add_argument(
        "--target", metavar="COLUMN", help="the column with these labels (default: the artifact's target)"
    )
    about.add_argument(
        "--curve",
        type=count,
        nargs="+",
        default=[],
        metavar="N",
        help="numbers of rows after which to say how a student does",
    )


def _run(arguments: Namespace) -> None:
    from pacpredict.deployment import Deployment  # noqa: PLC0415  # takes time to import
    from pacpredict.kernels import compile_once  # noqa: PLC0415

    if arguments.verify is None and arguments.public is None:
        raise InvalidInput("give the public rows that shall be asked")
    if arguments.verify is None and not arguments.dry_run:
        if arguments.out is None:
            raise InvalidInput("say where the student shall be: --out DIR")
        check_new_folder(arguments.out)
    options = _options(arguments)
    given = None if arguments.public is None else read_columns(arguments.public)
    with Deployment.open(
        arguments.artifact,
        ledger=arguments.ledger,
        anchor=arguments.anchor,
        trust=arguments.trust,
        decode=arguments.decode,
        votes=arguments.votes,
        to_look=arguments.verify is not None or arguments.dry_run,
    ) as deployment:
        public = None if given is None else _public(given, deployment, arguments)
        compile_once()
        if arguments.verify is not None:
            _verify(arguments, deployment, public)
        elif public is not None:
            _distill(arguments, deployment, public, options)


def _options(arguments: Namespace) -> "Options":
    from pacpredict.distill.run import ALPHA, Options  # noqa: PLC0415

    name = arguments.learner or (heads.NAME if arguments.features is not None else defaults.LEARNER)
    heads.check_arguments(arguments, [name])
    own = heads.params_of(arguments) if name == heads.NAME else {}
    return Options(
        learner=name,
        params={**own, **dict(arguments.set)} or None,
        filter=arguments.filter,
        alpha=ALPHA if arguments.alpha is None else arguments.alpha,
        queries=arguments.queries,
        until_success=arguments.until_success,
        order=arguments.order,
        seed=arguments.seed,
        soft=arguments.soft,
        balanced=arguments.balanced,
        curve=tuple(arguments.curve),
    )


def _public(given: Mapping[str, Any], deployment: "Deployment", arguments: Namespace) -> "PublicRows":
    from pacpredict.distill.columns import PublicRows  # noqa: PLC0415

    return PublicRows.of(deployment.artifact.schema, _features(given, deployment, arguments))


def _features(given: Mapping[str, Any], deployment: "Deployment", arguments: Namespace) -> Mapping[str, Any]:
    return with_missing(choose_features(dict(given), None, deployment.artifact), arguments.missing)


def _tested(arguments: Namespace, deployment: "Deployment", schema: "AnySchema") -> "Exam | None":
    """Read the rows of the evaluation; labels are compared as texts, as a CSV file has them."""
    from pacpredict.distill.run import Exam  # noqa: PLC0415

    if arguments.test is None:
        return None
    import numpy as np  # noqa: PLC0415

    artifact = deployment.artifact
    target = arguments.target or (artifact.manifest.get("source") or {}).get("target")
    given = dict(read_columns(arguments.test))
    if target not in given:
        raise InvalidInput(f"{arguments.test} has no column {target!r} with labels: name it, --target COLUMN")
    codes = {str(label): code for code, label in enumerate(artifact.classes.values)}
    labels = [str(label) for label in given.pop(target)]
    if unknown := sorted(set(labels) - codes.keys()):
        raise InvalidInput(
            f"{arguments.test} has the label {unknown[0]!r}, which is none of the deployment's"
        )
    rows = schema.rows(_features(given, deployment, arguments))
    return Exam(rows, np.array([codes[label] for label in labels], np.int64))


def _distill(
    arguments: Namespace, deployment: "Deployment", public: "PublicRows", options: "Options"
) -> None:
    from pacpredict.cli.as_json import print_json  # noqa: PLC0415
    from pacpredict.distill.run import distill, plan  # noqa: PLC0415

    tested = _tested(arguments, deployment, public.schema)
    if arguments.dry_run:
        options.settings(deployment)
        learner = options.trainer(deployment.artifact.schema.kind)
        planned = plan(deployment, public.asked, options, learner, progress_bar)
        _say_cost(deployment, planned, options, as_json=arguments.json)
        return
    with saying_how_to_go_on():
        card = distill(deployment, public, options, arguments.out, progress_bar, tested).card
    if arguments.json:
        print_json(card)
        return
    labels, privacy = card["labels"], deployment.privacy()  # the card has what was spent by its last label
    print(
        f"{arguments.out}: trained on {labels['kept']:,} labels, kept of {labels['asked']:,} that were asked; "
        f"{privacy['spent_nats']:.6g} of {privacy['total_nats']:.6g} nats are spent by now"
    )
    if card["evaluation"] is not None:
        print(f"{100 * card['evaluation']['accuracy']:.2f}% of {card['evaluation']['rows']:,} rows are right")
    print(f"what it promises: {arguments.out / 'card.md'}, card.html, card.json")


def _say_cost(deployment: "Deployment", questions: "Questions", options: "Options", *, as_json: bool) -> None:
    """Say what the rows would cost, and what would be promised with and without anybody else's answers."""
    from pacpredict.cli.as_json import print_json  # noqa: PLC0415
    from pacpredict.cli.table import percent_at_most, print_table  # noqa: PLC0415
    from pacpredict.core.attacks import success_after  # noqa: PLC0415
    from pacpredict.distill.card import success_if_settled  # noqa: PLC0415
    from pacpredict.distill.questions import limit_to  # noqa: PLC0415

    budget, space = deployment.artifact.recipe.budget, deployment.artifact.space
    prior = space.priors["membership"]
    planned = limit_to(questions, budget, options.until_success, prior)
    steps = planned.steps(budget)
    after = budget.nats(planned.spent_steps + steps)
    # By what all rows cost at most, as on the card; it means something only if nothing else is ever answered.
    settled = success_if_settled(deployment, planned.most_steps(budget)) if planned.is_alone else None
    cost = {
        "rows": len(planned),
        "rows_left_out": planned.n_refused,
        "answered_before": planned.n_known,
        "free": planned.n_free,
        "contested": planned.n_contested,
        "cost_nats": budget.nats(steps),
        "spent_nats_after": after,
        "total_nats": budget.total,
        "success_at_most": success_after(budget.total, prior),
        "success_if_settled": settled,
    }
    if as_json:
        print_json(cost)
        return
    rows = [
        ("rows to ask", f"{len(planned):,}"),
        ("left out, for lack of budget", f"{planned.n_refused:,}"),
        ("answered before, at no charge", f"{planned.n_known:,}"),
        (f"all models agree{': a step each' if budget.charging == 'flat' else ''}", f"{planned.n_free:,}"),
        ("models differ: a step each, at most", f"{planned.n_contested:,}"),
        ("cost", f"{cost['cost_nats']:.4g} nats"),
        ("spent afterwards", f"{after:.4g} of {budget.total:.4g} nats"),
        ("membership told, at most and for ever", percent_at_most(success_after(budget.total, prior))),
    ]
    if settled is not None:
        rows.append(("  if settled now, and nothing else is answered", percent_at_most(settled)))
    print_table("Cost of a student", (), rows)


def _verify(arguments: Namespace, deployment: "Deployment", public: "PublicRows | None") -> None:
    from pacpredict.cli.as_json import print_json  # noqa: PLC0415
    from pacpredict.distill.verify import verify_student  # noqa: PLC0415

    found = verify_student(deployment, arguments.verify, public)
    if arguments.json:
        print_json(found._asdict())
        return
    same = "trained again, model and student.json are identical to the byte"
    again = same if found.trained_again else "it was not trained again"
    print(
        f"{found.files} files, {found.labels:,} labels ({found.kept:,} kept) and {found.releases:,} releases are what "
        f"the card says; {again}"
    )
    print(f"not checked: {', '.join(found.not_checked)}")


DISTILL = Command(
    name="distill",
    summary="train a student on private labels, to be published",
    description="Ask public rows privately, keep the labels that are surely the secret model's, and train a student\n"
    "on them that may be published: with a card that says what it promises, and nothing that needs pacpredict.\n"
    "Interrupted, the same command goes on where it was; no answer is paid for twice.",
    example="pacpredict distill census.pac public.csv --learner xgboost --alpha 0.01 --out student",
    add_arguments=_add_arguments,
    run=_run,
)
