"""Which learners there are: by name, and for an estimator that a user brings.

A learner's module is imported when it is asked for: the terminal lists names at once, and an artifact brings in only
the libraries of its own models.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, get_args

from pacpredict import defaults
from pacpredict.exceptions import InvalidInput

if TYPE_CHECKING:
    from pacpredict.learners.learner import Learner

# How settings can be searched on a subset.
Tune = Literal["none", "halving", "full"]
TUNES: tuple[Tune, ...] = get_args(Tune)

# By what learners and settings are chosen: the accuracy of a model, or that of private answers.
Goal = Literal["accuracy", "private"]
GOALS: tuple[Goal, ...] = get_args(Goal)

# The class of each learner, as module:name below this folder, or the class itself.
_HOMES: "dict[str, str | type[Learner]]" = {
    "xgboost": "xgboost:XGBoostLearner",
    "heads": "heads.learner:Heads",
    **dict.fromkeys(("logistic", "linear-svc", "perceptron", "ridge", "sgd"), "linear:LinearLearner"),
    **dict.fromkeys(
        ("random-forest", "hist-gradient-boosting", "extra-trees", "decision-tree"), "trees:TreesLearner"
    ),
    "wide-resnet": "torch.learner:WideResNetLearner",
    "bert-small": "torch.learner:BertLearner",
}
# Takes every estimator that no other learner takes; artifacts name it, users cannot.
_STORED_ONLY = {"estimator": "anything:EstimatorLearner"}


def register(name: str, kind: "type[Learner]") -> None:
    """Make a further learner known by its name."""
    _HOMES[name] = kind


def learner_names() -> list[str]:
    return list(_HOMES)


def learner_from(
    estimator: Any, params: Mapping[str, Any] | None = None, tune: Tune = defaults.TUNE
) -> "Learner":
    """Return the learner for what a user gives: a name, and parameters beside its defaults, or an estimator."""
    if isinstance(estimator, str):
        beside = None if params is None else {**default_params(estimator), **params}
        return learner_named(estimator, beside, tune)
    if params is not None:
        raise InvalidInput("params are for a learner that is given by its name; an estimator has its own")
    learner = learner_for(estimator)
    return learner if tune == "none" else learner_of_config({**learner.config(), "tune": tune})


def learner_named(
    name: str, params: Mapping[str, Any] | None = None, tune: Tune = defaults.TUNE
) -> "Learner":
    """Build a learner to train with from its name, with its default parameters unless others are given."""
    if name in _STORED_ONLY:
        raise _no_learner(name)
    learner = learner_of_config({"name": name, "tune": tune} | ({} if params is None else {"params": params}))
    learner.require()  # a missing package is reported before anything else is done
    return learner


def learner_of_config(config: Mapping[str, Any]) -> "Learner":
    """Build the learner that an artifact names."""
    tune = config.get("tune", defaults.TUNE)
    if tune not in TUNES:
        raise InvalidInput(f"tune must be one of {', '.join(TUNES)}, got {tune!r}")
    kind = _kind(config.get("name"))
    if tune not in kind.tunes:
        raise InvalidInput(
            f"{config['name']} has no settings that could be searched on each subset; fit it without "
            "tuning, or with settings that are chosen for all (--tune-for private)"
        )
    return kind.from_config(config)


def default_params(name: str) -> dict[str, Any]:
    """Return the parameters of a learner that is asked for by its name alone."""
    return _kind(name).defaults(name)


def learner_for(estimator: Any) -> "Learner":
    """Return the fastest learner for an estimator: packed, stacked, or a loop over any fit and predict."""
    from pacpredict.learners.learner import Learner  # noqa: PLC0415  # which imports this module

    if isinstance(estimator, Learner):
        return estimator
    from sklearn.base import is_clusterer, is_regressor  # noqa: PLC0415  # whoever brings an estimator has it already

    missing = [name for name in ("fit", "predict", "get_params") if not hasattr(estimator, name)]
    if missing or isinstance(estimator, type):
        raise InvalidInput(
            f"{estimator!r:.100} is not an estimator of scikit-learn's kind"
            + (f": it has no {', '.join(missing)}" if missing else ", but a class of them: call it")
        )
    if is_regressor(estimator) or is_clusterer(estimator):
        raise InvalidInput(f"{estimator!r:.100} does not predict classes: give a classifier")
    # The latest first: whoever registers a learner may claim what an earlier one would take.
    for home in dict.fromkeys(reversed(_HOMES.values())):
        if (learner := _load(home).of(estimator)) is not None:
            return learner
    from pacpredict.learners.anything import EstimatorLearner  # noqa: PLC0415  # scikit-learn, as above

    return EstimatorLearner(estimator)


def _kind(name: Any) -> "type[Learner]":
    home = {**_STORED_ONLY, **_HOMES}.get(name)
    if home is None:
        raise _no_learner(name)
    return _load(home)


def _load(home: "str | type[Learner]") -> "type[Learner]":
    if not isinstance(home, str):
        return home
    module, _, name = home.partition(":")
    kind: type[Learner] = getattr(import_module(f"pacpredict.learners.{module}"), name)
    return kind


def _no_learner(name: Any) -> InvalidInput:
    return InvalidInput(f"there is no learner {name!r}; choose among {', '.join(_HOMES)}")
