"""What learners around scikit-learn's estimators share: finding their classes, and settling their parameters."""

from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

from pacpredict.exceptions import InvalidInput, InvalidModel
from pacpredict.learners.registry import Tune
from pacpredict.show import show, show_some
from pacpredict.tables.classes import label_from_json, label_to_json

# Weights of classes, by the owner's label.
ClassWeights = dict[Hashable, float]

# What libraries call a parameter whose keys are labels.
_BY_LABEL = ("class_weight", "class_weights")
# Settings that successive halving begins with, the given one included.
MOST_CANDIDATES = 16
_PLAIN = bool, int, float, str, type(None)


@cache
def find_class(path: str) -> Any:
    """Import a class of a library by its dotted path: stored models vote without it."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def name_of(estimator: Any, paths: Mapping[str, str]) -> str | None:
    """Return by which name an estimator's class is known; a subclass may decide otherwise and is not."""
    for name, path in paths.items():
        # By its name first, so that nothing is imported for an estimator of another library.
        if path.endswith(f".{type(estimator).__name__}") and type(estimator) is find_class(path):
            return name
    return None


def settle(model: Any, seed: int, weights: Mapping[str, ClassWeights], names: Sequence[Hashable]) -> Any:
    """Make an estimator ready to train on one subset, whose classes have these names: one thread, its own seed."""
    every = model.get_params()
    own = {path: by_code(given, names) for path, given in weights.items()}
    return model.set_params(**single_thread(every), **seeded(every, seed), **own)


def single_thread(params: Mapping[str, Any]) -> dict[str, Any]:
    """Undo each n_jobs that was given: models are trained in parallel, their insides are not."""
    is_given = {name: value is not None for name, value in params.items() if _last(name) == "n_jobs"}
    return {name: None for name, given in is_given.items() if given}


def seeded(params: Mapping[str, Any], seed: int | None) -> dict[str, Any]:
    """Set each random_state among the parameters to the seed, so that training again gives the same model."""
    return {name: seed for name in params if _last(name) == "random_state"}


def class_weights(params: Mapping[str, Any]) -> dict[str, ClassWeights]:
    """Return those parameters that weigh classes by label, with Python's own labels and numbers."""
    return {
        name: {_as_python(label): float(weight) for label, weight in value.items()}
        for name, value in params.items()
        if _last(name) in _BY_LABEL and isinstance(value, Mapping)
    }


def by_code(weights: ClassWeights, names: Sequence[Hashable]) -> dict[int, float]:
    """Return the weights of those classes that a subset has, by the codes that models see."""
    return {code: weights[name] for code, name in enumerate(names) if name in weights}


def check_class_weights(params: Mapping[str, Any], labels: Sequence[Hashable]) -> None:
    """Refuse weights of labels that there are not, before anything is trained."""
    for name, weights in class_weights(params).items():
        if unknown := [label for label in weights if label not in labels]:
            raise InvalidInput(
                f"{name} weighs {show_some(unknown)}, which is none of the labels {show_some(list(labels))}"
            )
        if wrong := [weight for weight in weights.values() if not (0 < weight < np.inf)]:
            raise InvalidInput(
                f"{name} has the weight {show(wrong[0])}; a weight must be positive and finite"
            )


def chosen_params(estimator: Any) -> dict[str, Any] | None:
    """Return the parameters that differ from the defaults; None if one cannot be written down in JSON."""
    standard = type(estimator)().get_params()
    given = estimator.get_params()
    chosen = {name: value for name, value in given.items() if repr(value) != repr(standard[name])}
    chosen |= class_weights(chosen)
    try:
        params_to_json(chosen)
    except InvalidModel:
        return None
    return chosen


def params_to_json(params: Mapping[str, Any]) -> dict[str, Any]:
    """Write parameters as JSON has them; weights of classes as pairs, since labels need not be texts."""
    pairs = {
        name: [[label_to_json(label), weight] for label, weight in weights.items()]
        for name, weights in class_weights(params).items()
    }
    plain = {name: value for name, value in params.items() if name not in pairs}
    for name, value in plain.items():
        if not isinstance(value, _PLAIN):
            raise InvalidModel(f"the parameter {name} cannot be stored: {show(value)}")
    return {name: pairs.get(name, value) for name, value in params.items()}


def params_from_json(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return what params_to_json wrote."""
    return {
        name: {label_from_json(label): weight for label, weight in value}
        if _last(name) in _BY_LABEL and isinstance(value, list)
        else value
        for name, value in stored.items()
    }


def settings_of(grid: Mapping[str, Sequence[Any]], tune: Tune, seed: int) -> list[dict[str, Any]]:
    """Return all settings of a grid, with "halving" a random few, and without a search none."""
    if tune == "none" or not grid:
        return []
    every = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    if tune == "full":
        return every
    return [every[i] for i in np.random.default_rng(seed).permutation(len(every))[: MOST_CANDIDATES - 1]]


def _last(name: str) -> str:
    """Return a parameter's name without those of the estimators around it."""
    return name.rpartition("__")[2]


def _as_python(label: Any) -> Hashable:
    value: Hashable = label.item() if isinstance(label, np.generic) else label
    return value
