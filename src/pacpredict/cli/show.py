"""`show`: what an artifact is, what it has spent, and what that guarantees."""

from argparse import ArgumentParser, Namespace
from contextlib import closing
from pathlib import Path
from typing import Any

from pacpredict.cli.as_json import print_json
from pacpredict.cli.command import Command
from pacpredict.cli.options import add_artifact, add_json, add_ledger
from pacpredict.cli.table import BAR_LEGEND, at_most, bar, nats, percent_at_most, print_table


def _add_show_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    add_ledger(parser)
    add_json(parser)


def _run_show(arguments: Namespace) -> None:
    print_artifact(arguments.artifact, ledger=arguments.ledger, as_json=arguments.json)


def print_artifact(path: Path, *, ledger: str | None = None, as_json: bool = False) -> None:
    from pacpredict.curator import describe, report_privacy  # noqa: PLC0415  # NumPy and more take time to import
    from pacpredict.ensemble.artifact.artifact import Artifact  # noqa: PLC0415
    from pacpredict.ledger.home import open_ledger  # noqa: PLC0415

    artifact = Artifact.open(path)
    with closing(open_ledger(artifact.path, artifact.identity, ledger)) as opened:
        privacy = report_privacy(artifact.recipe, opened.load())
    about = describe(artifact)
    if as_json:
        print_json({**about, **privacy})
    else:
        _print_about(about)
        print()
        _print_privacy(privacy)


def _print_about(about: dict[str, Any]) -> None:
    classes = ", ".join(map(str, about["classes"][:8])) + (", ..." if len(about["classes"]) > 8 else "")
    kinds = about["columns"]
    rows = [
        ("identity", about["identity"][:16]),
        ("made", about["created"]),
        ("models", f"{about['models']} x {about['learner']}"),
        ("subsets", f"{about['construction']}, each record in {about['rate']:.4g} of them"),
        ("records", f"{about['records']:,}"),
        ("columns", ", ".join(f"{n} {kind}" for kind, n in kinds.items())),
        ("classes", classes),
    ]
    print_table(about["name"], (), rows)


def _print_privacy(privacy: dict[str, Any]) -> None:
    spent, total = privacy["spent_nats"], privacy["total_nats"]
    facts = [
        ("queries answered", f"{privacy['queries']:,}"),
        ("of which the models disagreed on", f"{privacy['contested']:,}"),
        ("spent", f"{spent:.6g} of {total:.6g} nats ({100 * spent / total:.4f} %)"),
        ("each answer, at most", nats(privacy["step_budget_nats"])),
        ("charged", "where models disagree" if privacy["charging"] == "adaptive" else "for every answer"),
        ("decoder", privacy["decoder"]),
        (f"matching epsilon (delta {privacy['delta']:g})", at_most(privacy["epsilon"])),
    ]
    print_table("Spent", (), facts)
    print()
    rows = [
        (
            attack,
            *(percent_at_most(bound[name]) for name in ("prior", "success")),
            bar(bound["prior"], bound["success"]),
        )
        for attack, bound in privacy["bounds"].items()
    ]
    columns = ("attack", "before", "at most", "0 to 100 %")
    print_table("How often an attack can succeed", columns, rows, BAR_LEGEND)


SHOW = Command(
    name="show",
    summary="what an artifact is, what it has spent, what that guarantees",
    description="Show what an artifact is, what its answers have spent, and how often attacks can succeed.",
    example="pacpredict show census.pac",
    add_arguments=_add_show_arguments,
    run=_run_show,
)
