"""Images and texts on the command line: which features, and which heads on them."""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pacpredict.cli.as_json import print_json
from pacpredict.cli.columns import print_points, units_in_words
from pacpredict.cli.numbers import real
from pacpredict.cli.output import check_outside
from pacpredict.cli.progress import progress_bar
from pacpredict.cli.table import print_table
from pacpredict.exceptions import InvalidInput

NAME = "heads"
_NO_CACHE = "none"


def add_arguments(parser: ArgumentParser) -> None:
    about = parser.add_argument_group("images and texts", "For --learner heads.")
    about.add_argument(
        "--features",
        metavar="NAME",
        help="tfidf, hashing, potion or bge-small for texts; lite0, lite2 or resnet50 for images; several joined by +; "
        "or a model in ONNX",
    )
    about.add_argument("--head", choices=("logistic", "ridge"), help="(default: logistic)")
    about.add_argument(
        "--penalty", type=real, metavar="X", help="on squared slopes (default: by the features)"
    )
    about.add_argument(
        "--feature-cache",
        metavar="DIR",
        help="where features of training data are kept for the next fit, or the word none (default: your cache)",
    )


def params_of(arguments: Namespace) -> dict[str, Any]:
    """Return the parameters of heads that options set."""
    given = {"features": arguments.features, "head": arguments.head, "penalty": arguments.penalty}
    params = {name: value for name, value in given.items() if value is not None}
    if arguments.feature_cache is not None:
        cache = arguments.feature_cache
        if cache != _NO_CACHE:
            check_outside(Path(cache, "features"))
        params["cache"] = None if cache == _NO_CACHE else Path(cache)
    if params:
        params["n_threads"] = arguments.jobs if arguments.jobs > 0 else os.cpu_count() or 1
    return params


def check_arguments(arguments: Namespace, learners: list[str]) -> None:
    """Refuse options that no learner would look at."""
    if params_of(arguments) and NAME not in learners:
        raise InvalidInput(
            f"--features, --head, --penalty and --feature-cache are for --learner {NAME}, not for {', '.join(learners)}"
        )


def compute_features(learner: Any, pool: Any) -> None:
    """Compute the features of all records, with a bar; training then finds them at hand."""
    if learner.name == NAME:
        with progress_bar("features") as progress:
            learner.prepare(pool.schema, pool.rows, progress)


def keep_features(learner: Any, pool: Any) -> None:
    """Compute the features of all records, with a bar, if they are kept where parts of the pool find them again."""
    if learner.name == NAME and learner.keeps_features:
        compute_features(learner, pool)


def show_records(name: str, pool: Any, warnings: Sequence[str], *, as_json: bool) -> None:
    """Show what a fit would make of images or texts, and below it what to think about."""
    import numpy as np  # noqa: PLC0415  # takes time to import

    counts = np.bincount(pool.labels, minlength=len(pool.classes)).tolist()
    classes = dict(zip(map(str, pool.classes.values), counts, strict=True))
    if as_json:
        about = {"records": len(pool), "columns": pool.schema.summary(), "classes": classes}
        print_json({**about, **pool.units.summary(), "warnings": warnings})
        return
    rows = [
        ("records", f"{len(pool):,}"),
        ("protected are", units_in_words(pool.units.summary())),
        ("each is", ", ".join(pool.schema.summary())),
    ]
    print_table(name, (), [*rows, *((f"class {label}", f"{n:,}") for label, n in classes.items())])
    if warnings:
        print()
        print_points(warnings)
