"""The learner on the command line: which, with which settings, and by what these are chosen."""

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Any

from pacpredict import defaults
from pacpredict.cli import heads
from pacpredict.cli.numbers import real
from pacpredict.cli.progress import progress_bar
from pacpredict.exceptions import InvalidInput
from pacpredict.learners.registry import GOALS, TUNES, Tune, learner_from, learner_named, learner_names
from pacpredict.show import percent

if TYPE_CHECKING:
    from pacpredict.rows.kind import RowKind


def add_learner_arguments(parser: ArgumentParser) -> None:
    about = parser.add_argument_group("learner")
    about.add_argument(
        "--learner",
        action="append",
        choices=learner_names(),
        help=f"may be repeated, to choose among several (default: {defaults.LEARNER})",
    )
    about.add_argument(
        "--tune",
        nargs="?",
        choices=TUNES,
        const="halving",
        default=defaults.TUNE,
        help="search settings: successive halving, or the full grid",
    )
    about.add_argument(
        "--tune-for",
        choices=GOALS,
        default=defaults.TUNE_FOR,
        help="accuracy (default): of a model, settings searched on each subset by itself; "
        "private: of private answers at the budget, one setting for all",
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
        "--class-weight",
        nargs="+",
        action="extend",
        default=[],
        type=_class_weight,
        metavar="LABEL=WEIGHT",
        help="what the records of a class count, or the word balanced",
    )
    heads.add_arguments(parser)


def learners_named(arguments: Namespace) -> list[str]:
    """Return the names; what cannot be searched, or is not installed, is refused before anything else is done."""
    default = heads.NAME if arguments.features is not None else defaults.LEARNER
    names = list(dict.fromkeys(arguments.learner or [default]))
    heads.check_arguments(arguments, names)
    on_each_subset: Tune = arguments.tune if arguments.tune_for == "accuracy" else "none"
    for name in names:
        learner_named(name, _own_params(arguments, name), tune=on_each_subset)
    if arguments.tune_for == "private" and arguments.tune == "none" and len(names) == 1:
        raise InvalidInput("--tune-for private has nothing to choose: give --tune, or several --learner")
    return names


def params_for(arguments: Namespace, pool: Any) -> dict[str, Any] | None:
    """Return the parameters that options set: weights of classes by the labels of the pool, and what is named."""
    params, given = dict(arguments.set), dict(arguments.class_weight)
    if "balanced" in given and given["balanced"] is None:
        if len(given) > 1:
            raise InvalidInput("--class-weight is the word balanced, or weights by label: not both")
        params["class_weight"] = "balanced"
    elif given:
        by_text = {str(label): label for label in pool.classes.values}
        params["class_weight"] = {by_text.get(text, text): weight for text, weight in given.items()}
    return params or None


def choose_learner(
    arguments: Namespace, names: list[str], pool: Any, recipe: Any, backend: Any = None
) -> Any:
    """Return the learner to fit with, and say which it is if there was a choice."""
    from pacpredict.artifact.make import begun_learner  # noqa: PLC0415  # takes time to import
    from pacpredict.evaluation.choose import choose  # noqa: PLC0415

    candidates = candidates_of(arguments, names, params_for(arguments, pool), recipe.seed)
    if len(candidates) == 1:
        return candidates[0]
    if (begun := begun_learner(arguments.out, candidates)) is not None:
        return begun
    with progress_bar("models tried") as progress:
        choice = choose(
            pool,
            candidates,
            recipe,
            arguments.tune_for,
            n_jobs=arguments.jobs,
            backend=backend,
            progress=progress,
        )
    settings = ", ".join(f"{name}={value}" for name, value in choice.learner.config()["params"].items())
    print(
        f"chosen among {len(candidates)}: {choice.learner.name} ({settings or 'as it is'}), "
        f"{percent(choice.accuracy)} right",
        file=sys.stderr,
    )
    return choice.learner


def candidates_of(
    arguments: Namespace, names: list[str], params: dict[str, Any] | None, seed: int
) -> list[Any]:
    """Return the learners to choose among."""
    if arguments.tune_for == "accuracy":
        return [learner_from(name, _own_params(arguments, name, params), arguments.tune) for name in names]
    return [
        one
        for name in names
        for one in learner_from(name, _own_params(arguments, name, params)).candidates(arguments.tune, seed)
    ]


def kinds_taken(arguments: Namespace, names: list[str]) -> "tuple[RowKind, ...]":
    """Return the kinds of rows that the learners take, which must be the same for all."""
    taken = {name: learner_named(name, _own_params(arguments, name)).takes for name in names}
    if len(set(taken.values())) > 1:
        said = ", ".join(f"{name} from {' or '.join(kinds)}s" for name, kinds in taken.items())
        raise InvalidInput(f"these learners do not learn from the same records: {said}")
    return taken[names[0]]


def _own_params(
    arguments: Namespace, name: str, params: dict[str, Any] | None = None
) -> dict[str, Any] | None:
    """Return the parameters of one learner: what options say of it, beside what they say of all."""
    own = heads.params_of(arguments) if name == heads.NAME else {}
    return {**own, **(params or {})} or None


def setting(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign:
        raise ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE, such as epochs=50")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value  # a text needs no quotes


def _class_weight(text: str) -> tuple[str, float | None]:
    if text == "balanced":
        return text, None
    label, sign, weight = text.rpartition("=")
    if not sign:
        raise ArgumentTypeError(f"{text!r} is not of the form LABEL=WEIGHT, such as sick=10, nor balanced")
    return label, real(weight)
