"""`show`: what an artifact is, what it has spent, and what that guarantees."""

import math
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from pacpredict.cli.as_json import print_json
from pacpredict.cli.columns import print_columns, print_points, units_in_words
from pacpredict.cli.command import Command
from pacpredict.cli.options import add_artifact, add_json, add_ledger
from pacpredict.cli.promise import print_promise
from pacpredict.cli.table import nats, print_attacks, print_table
from pacpredict.promise import promise_from
from pacpredict.show import percent


def _add_show_arguments(parser: ArgumentParser) -> None:
    add_artifact(parser)
    add_ledger(parser)
    parser.add_argument(
        "--columns", action="store_true", help="show the columns that queries need, and no more"
    )
    add_json(parser)


def _run_show(arguments: Namespace) -> None:
    if arguments.columns:
        _print_schema(arguments.artifact, as_json=arguments.json)
    else:
        print_artifact(
            arguments.artifact, ledger=arguments.ledger, anchor=arguments.anchor, as_json=arguments.json
        )


def _print_schema(path: Path, *, as_json: bool) -> None:
    from pacpredict.artifact.artifact import Artifact  # noqa: PLC0415
    from pacpredict.tables.schema import Schema  # noqa: PLC0415

    schema = Artifact.open(path).schema
    if as_json:
        print_json(schema.to_json())
    elif isinstance(schema, Schema):
        print_columns(schema.columns)
    else:
        print_table(
            "Columns", ("column", "type"), [(schema.to_json()["column"], kind) for kind in schema.summary()]
        )


def print_artifact(
    path: Path, *, ledger: str | None = None, anchor: str | None = None, as_json: bool = False
) -> None:
    from pacpredict.deployment import Deployment  # noqa: PLC0415  # NumPy and more take time to import
    from pacpredict.training.space import summarise_posterior  # noqa: PLC0415

    with Deployment.open(path, ledger=ledger, anchor=anchor, to_look=True) as deployment:
        about, privacy = deployment.describe(), deployment.privacy()
        posterior = summarise_posterior(deployment.membership_posterior())
    if as_json:
        print_json({**about, **privacy, "membership_posterior": posterior})
        return
    _print_about(about)
    print()
    _print_privacy(privacy, about["unit"])
    print()
    _print_posterior(posterior, about["unit"])
    if about["warnings"]:
        print()
        print_points(about["warnings"])


def _print_about(about: dict[str, Any]) -> None:
    classes = ", ".join(map(str, about["classes"][:8])) + (", ..." if len(about["classes"]) > 8 else "")
    kinds, share = about["columns"], about["contested_share"]
    rows = [
        ("identity", about["identity"][:16]),
        ("made", about["created"]),
        ("models", f"{about['models']} x {about['title']}"),
        ("subsets", f"{about['construction']}, each {about['unit']} in {about['rate']:.4g} of them"),
        ("records", f"{about['records']:,}"),
        ("protected are", units_in_words(about)),
        ("columns", ", ".join(f"{n} {kind}" for kind, n in kinds.items())),
        ("classes", classes),
        ("contested", "not measured" if share is None else f"{percent(share)} of new queries"),
    ]
    print_table(about["name"], (), rows)


def _print_privacy(privacy: dict[str, Any], unit: str) -> None:
    spent, total = privacy["spent_nats"], privacy["total_nats"]
    facts = [
        ("queries answered", f"{privacy['queries']:,}"),
        ("of which the models disagreed on", f"{privacy['contested']:,}"),
        ("spent", f"{spent:.6g} of {total:.6g} nats ({100 * spent / total:.4f}%)"),
        ("each answer, at most", nats(privacy["step_budget_nats"])),
        ("charged", "where models disagree" if privacy["charging"] == "adaptive" else "for every answer"),
        ("decoder", privacy["decoder"]),
        ("noise of argmax and map", privacy["noise"]),
        ("votes", privacy["votes"]),
        ("odds limit", "none" if privacy["odds_limit"] is None else f"{privacy['odds_limit']:g}"),
    ]
    print_table("Spent", (), facts)
    print()
    print_promise(promise_from(privacy, unit))
    print()
    attacks = [(bound["question"], bound["prior"], bound["success"]) for bound in privacy["bounds"].values()]
    print_attacks("How often an attack can succeed", attacks)
    print_points(privacy["explanations"])


def _print_posterior(posterior: dict[str, Any], unit: str) -> None:
    """Show where the units are, leaving out the empty ends."""
    edges, counts = posterior["histogram"]["edges"], posterior["histogram"]["units"]
    occupied = [i for i, n in enumerate(counts) if n]
    longest = 30  # characters
    rows = [
        (
            f"{edges[i]:g} to {edges[i + 1]:g}",
            f"{counts[i]:,}",
            ("#" * math.ceil(longest * counts[i] / max(counts))).ljust(longest),
        )
        for i in range(occupied[0], occupied[-1] + 1)
    ]
    caption = f"smallest {posterior['smallest']:.6f}, largest {posterior['largest']:.6f}"
    print_table("Posterior probability of membership", ("probability", f"{unit}s", ""), rows, caption)


SHOW = Command(
    name="show",
    summary="what an artifact is, what it has spent, what that guarantees",
    description="Show what an artifact is, what its answers have spent, and how often attacks can succeed.",
    example="pacpredict show census.pac",
    add_arguments=_add_show_arguments,
    run=_run_show,
)
