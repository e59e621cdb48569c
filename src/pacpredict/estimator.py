"""PrivateClassifier: a scikit-learn classifier whose predictions come with a proof of how little they reveal."""

from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite, check_array, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from pacpredict.core.decode import Decoder
from pacpredict.curator import Curator, save_deployment
from pacpredict.ensemble.fit import Fit, fit, settle_seed
from pacpredict.ensemble.learners.learner import Learner
from pacpredict.ensemble.learners.registry import learner_for, learner_named
from pacpredict.ensemble.learners.search import Tune
from pacpredict.ensemble.pool import Pool
from pacpredict.ensemble.recipe import DEFAULT_MODELS, DEFAULT_STEP, Construction, Recipe, default_total
from pacpredict.ensemble.tables.schema import Unknown
from pacpredict.exceptions import InvalidArtifact, InvalidTable
from pacpredict.mechanism.budget import Budget, Charging, WhenExhausted
from pacpredict.mechanism.guarantee import Guarantee
from pacpredict.mechanism.ledger import MemoryLedger


class PrivateClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Trains classifiers on random halves of the data and answers as one of them, the secret one, with noise.

    Each prediction spends at most `step_budget` nats, all together at most `total_budget`; when that is spent,
    `predict` raises BudgetExhausted. A row that was asked before gets the same answer at no charge.

    Two fits on the same data draw two secrets and answer differently, and a fitted classifier does not pickle or copy:
    that is why scikit-learn's check_fit_idempotent, check_supervised_y_2d, check_classifier_data_not_an_array and
    check_estimators_pickle fail. Its other checks pass.

    Parameters
    ----------
    estimator
        Any classifier with scikit-learn's fit and predict, or the name of a learner: "xgboost", "logistic",
        "hist-gradient-boosting", "random-forest", ...
    n_models
        How many subsets and models, an even number.
    step_budget, total_budget
        Nats per answer and in all. By default 2**-32, and what matches the membership guarantee of (1, 1e-5)-DP.
    decode
        "argmax" (the paper's) or "map", which is more accurate; docs/threat-model.md says what it means.
    charging, when_exhausted
        See Budget.
    construction, rate
        How subsets are drawn: "balanced" puts each record into the share `rate` of them; "half-partitions" cuts the
        records into two halves, n_models / 2 times.
    tune
        For "xgboost": search settings on each subset, by "halving" or over the "full" grid.
    unknown
        What becomes of values in a query that training never saw: "refuse" them, or take them as "missing".
    n_jobs, backend
        Models trained at a time, and joblib's backend.
    random_state
        Makes subsets and models repeatable. The secret and the noise never depend on it: they come from the operating
        system.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.
    curator_
        What answers: ensemble, session and ledger.
    """

    def __init__(
        self,
        estimator: Any = "xgboost",
        *,
        n_models: int = DEFAULT_MODELS,
        step_budget: float = DEFAULT_STEP,
        total_budget: float | None = None,
        decode: Decoder = "argmax",
        charging: Charging = "adaptive",
        when_exhausted: WhenExhausted = "halt",
        construction: Construction = "balanced",
        rate: float = 0.5,
        tune: Tune = "none",
        unknown: Unknown = "refuse",
        n_jobs: int | None = None,
        backend: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_models = n_models
        self.step_budget = step_budget
        self.total_budget = total_budget
        self.decode = decode
        self.charging = charging
        self.when_exhausted = when_exhausted
        self.construction = construction
        self.rate = rate
        self.tune = tune
        self.unknown = unknown
        self.n_jobs = n_jobs
        self.backend = backend
        self.random_state = random_state

    def __getstate__(self) -> Any:
        if hasattr(self, "curator_"):
            raise TypeError(
                "a fitted PrivateClassifier has a secret and does not pickle or copy: save() it instead"
            )
        return super().__getstate__()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Train all models and draw the secret. Fitting again is a new deployment, with a new secret and ledger."""
        learner, recipe = self._learner(), self._recipe()
        pool = Pool.of(self._checked(X, reset=True), _checked_target(y), self.unknown)
        self._fit: Fit | None = fit(pool, learner, recipe, n_jobs=self.n_jobs, backend=self.backend)
        self.curator_ = Curator(self._fit.ensemble, recipe, MemoryLedger())
        self.classes_ = pool.classes.labels(np.arange(len(pool.classes)))
        self.path_: Path | None = None
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Answer all rows, or none: what is refused is not charged."""
        check_is_fitted(self)
        return self.curator_.ask(self._checked(X, reset=False)).labels

    def guarantee(self, prior: float | None = None) -> Guarantee:
        """Bound the success of any attack with this prior; by default of membership inference."""
        check_is_fitted(self)
        return self.curator_.guarantee(prior)

    def save(self, path: str | Path) -> None:
        """Write an artifact with the models, the secret and the ledger; from now on answers are recorded there."""
        check_is_fitted(self)
        if self._fit is None or self.path_ is not None:
            raise InvalidArtifact(
                f"this deployment lives in {self.path_}: a copy would be a second history of one secret, and void the "
                "guarantee; move the directory instead"
            )
        self.curator_ = save_deployment(path, self._fit, self.curator_)
        self.path_ = Path(path)

    @classmethod
    def load(cls, path: str | Path, *, trust: bool = False) -> Self:
        """Open an artifact that `save` or `pacpredict fit` wrote, and go on where it is.

        `trust` allows models in files that can name code to run: only for artifacts that are one's own.
        """
        curator = Curator.open(path, trust=trust)
        recipe, schema = curator.recipe, curator.ensemble.schema
        config = curator.ensemble.learner.config()
        self = cls(
            config["name"],
            n_models=recipe.n_models,
            step_budget=recipe.budget.step,
            total_budget=recipe.budget.total,
            decode=recipe.decode,
            charging=recipe.budget.charging,
            when_exhausted=recipe.budget.when_exhausted,
            construction=recipe.construction,
            rate=recipe.rate,
            tune=config.get("tune", "none"),
            unknown=schema.unknown,
            random_state=recipe.seed,
        )
        self.curator_, self.path_, self._fit = curator, Path(path), None
        self.classes_ = curator.ensemble.classes.labels(np.arange(len(curator.ensemble.classes)))
        self.n_features_in_ = len(schema.columns)
        if schema.is_named:
            self.feature_names_in_ = np.array([column.name for column in schema.columns], dtype=object)
        return self

    def _learner(self) -> Learner:
        if isinstance(self.estimator, str):
            return learner_named(self.estimator, tune=self.tune)
        learner = learner_for(self.estimator)
        if self.tune == "none":
            return learner
        return learner_named(learner.name, learner.config().get("params"), self.tune)

    def _recipe(self) -> Recipe:
        total = default_total() if self.total_budget is None else self.total_budget
        budget = Budget(self.step_budget, total, self.charging, self.when_exhausted)
        return Recipe(
            _seed(self.random_state), budget, self.n_models, self.construction, self.rate, self.decode
        )

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Let scikit-learn check names and shapes as its users expect; the schema checks values."""
        if _is_frame(X) and not X.columns.is_unique:
            return X  # the schema says which names occur more than once
        if _is_frame(X):
            if (
                not reset
                and hasattr(self, "feature_names_in_")
                and set(X.columns) == set(self.feature_names_in_)
            ):
                X = X[list(self.feature_names_in_)]
            validate_data(self, X, skip_check_array=True, reset=reset)
            return X
        if isinstance(X, list | tuple) and np.asarray(X).dtype.kind == "U":
            X = np.array(X, dtype=object)  # numbers beside text stay numbers
        checked = check_array(X, dtype=None, ensure_all_finite="allow-nan", estimator=self)
        validate_data(self, X, skip_check_array=True, reset=reset)
        return checked


def _checked_target(y: Any) -> Any:
    """Refuse what scikit-learn refuses as labels; other than it, take labels of any hashable type."""
    if y is None:
        raise InvalidTable("PrivateClassifier requires y to be passed, but the target y is None")
    labels = y if isinstance(y, list | tuple) or hasattr(y, "iloc") else np.asarray(y)
    if getattr(getattr(labels, "dtype", None), "kind", "O") in "biuf":
        labels = column_or_1d(labels, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
    return labels


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "iloc")


def _seed(random_state: Any) -> int:
    if random_state is None or isinstance(random_state, int | np.integer):
        return settle_seed(None, None if random_state is None else int(random_state))
    return int(check_random_state(random_state).randint(2**31 - 1))
