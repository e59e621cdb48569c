"""Which learners there are: by name, and for an estimator that a user brings.

A new learner is a class with the methods of `Learner`, registered here by a name and a function that builds it from
JSON parameters, or by a function that recognises estimators.
"""

from collections.abc import Callable, Mapping
from typing import Any

from sklearn.base import is_clusterer, is_regressor

from pacpredict.ensemble.learners import linear, trees, xgboost
from pacpredict.ensemble.learners.anything import EstimatorLearner
from pacpredict.ensemble.learners.learner import Learner
from pacpredict.ensemble.learners.search import TUNES, Tune
from pacpredict.exceptions import InvalidInput

Build = Callable[[Mapping[str, Any]], Learner]
Recognise = Callable[[Any], Learner | None]

_BUILDERS: dict[str, Build] = {}
_RECOGNISERS: list[Recognise] = []


def register(name: str, build: Build) -> None:
    """Make a learner known by its name; `build` gets its config, of which `params` may be absent."""
    _BUILDERS[name] = build


def recognise(recogniser: Recognise) -> None:
    """Let a function claim estimators: it returns a learner, or None for what is not its own."""
    _RECOGNISERS.append(recogniser)


def learner_names() -> list[str]:
    return list(_BUILDERS)


def learner_named(name: str, params: Mapping[str, Any] | None = None, tune: Tune = "none") -> Learner:
    """Build a learner to train with from its name, with its default parameters unless others are given."""
    config: dict[str, Any] = {"name": name}
    if params is not None:
        config["params"] = params
    if tune != "none":
        config["tune"] = tune
    learner = learner_of_config(config)
    if name == "xgboost":
        xgboost.library()  # a missing package is reported before anything else is done
    return learner


def learner_of_config(config: Mapping[str, Any]) -> Learner:
    """Build the learner that an artifact names."""
    name = config.get("name")
    tune = config.get("tune", "none")
    if tune not in TUNES:
        raise InvalidInput(f"tune must be one of {', '.join(TUNES)}, got {tune!r}")
    if tune != "none" and name != "xgboost":
        raise InvalidInput(f"settings can be searched for xgboost only; fit {name} without tuning")
    if name == EstimatorLearner.name:
        return EstimatorLearner(None, takes_frames=bool(config["takes_frames"]))
    if name not in _BUILDERS:
        raise InvalidInput(f"there is no learner {name!r}; choose among {', '.join(_BUILDERS)}")
    return _BUILDERS[name](config)


def learner_for(estimator: Any) -> Learner:
    """Return the fastest learner for an estimator: packed, stacked, or a loop over any fit and predict."""
    missing = [name for name in ("fit", "predict", "get_params") if not hasattr(estimator, name)]
    if missing or isinstance(estimator, type):
        raise InvalidInput(
            f"{estimator!r:.100} is not an estimator of scikit-learn's kind"
            + (f": it has no {', '.join(missing)}" if missing else ", but a class of them: call it")
        )
    if is_regressor(estimator) or is_clusterer(estimator):
        raise InvalidInput(f"{estimator!r:.100} does not predict classes: give a classifier")
    for recogniser in _RECOGNISERS:
        if (learner := recogniser(estimator)) is not None:
            return learner
    return EstimatorLearner(estimator)


def _xgboost(config: Mapping[str, Any]) -> Learner:
    return xgboost.XGBoostLearner(config.get("params", xgboost.DEFAULTS), config.get("tune", "none"))


def _trees(config: Mapping[str, Any]) -> Learner:
    name = config["name"]
    return trees.TreesLearner(name, config.get("params", trees.DEFAULTS.get(name, {})))


def _linear(config: Mapping[str, Any]) -> Learner:
    name = config["name"]
    params = config.get("params", linear.DEFAULTS.get(name, {}))
    return linear.LinearLearner(name, params, standardise=config.get("standardise", True))


register("xgboost", _xgboost)
for _name in linear.KINDS:
    register(_name, _linear)
for _name in trees.KINDS:
    register(_name, _trees)
recognise(xgboost.XGBoostLearner.of)
recognise(trees.TreesLearner.of)
recognise(linear.LinearLearner.of)
