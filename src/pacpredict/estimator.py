"""PrivateClassifier: a scikit-learn classifier with a proof that predictions hide who was in the training set."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite, check_array, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from pacpredict import defaults
from pacpredict.artifact.make import settle_seed
from pacpredict.core.decode import Decoder, NoiseRule
from pacpredict.core.roc import DEFAULT_FPR
from pacpredict.core.vote_rule import VoteRule
from pacpredict.curator import Curator
from pacpredict.deployment import Deployment
from pacpredict.evaluation.choose import choose
from pacpredict.exceptions import InvalidArtifact, InvalidTable, PrivacyWarning
from pacpredict.learners.learner import Learner
from pacpredict.learners.registry import Goal, Tune, default_params, learner_from
from pacpredict.mechanism.budget import Charging, WhenExhausted
from pacpredict.mechanism.guarantee import Guarantee
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.mechanism.limit import limit_warning
from pacpredict.mechanism.planned_budget import OddsLimit, plan_budget
from pacpredict.rows.images import ImageSchema
from pacpredict.rows.kind import AnySchema
from pacpredict.rows.sizes import ImageSize
from pacpredict.tables.declared import declared_types
from pacpredict.tables.schema import Schema, Types
from pacpredict.training.fit import Fit, fit
from pacpredict.training.pool import Pool
from pacpredict.training.recipe import Construction, Recipe, membership_prior
from pacpredict.training.reuse import count_deployments, reuse_warning
from pacpredict.training.train import Backend
from pacpredict.training.weights import check_weights, where


class PrivateClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Trains classifiers on random halves of the data and answers as one of them, the secret one, with noise.

    What is protected is which half was drawn: `guarantee().promise()` says in four sentences what is promised about it
    and what is not. By default a million predictions on which the models disagree are answered, at 2**-32 nats each;
    when the total is spent, `predict` raises BudgetExhausted. A row that was asked before gets the same answer at no
    charge.

    Each fit is a deployment: two fits on the same data draw two secrets, answer differently, and reveal more together.
    Searches and cross-validation fit and ask many times: use `pacpredict.evaluate` for that. A fitted classifier does
    not pickle or copy. That is why scikit-learn's check_fit_idempotent, check_supervised_y_2d, check_estimators_pickle,
    check_classifier_data_not_an_array and check_sample_weight_equivalence_on_dense_data fail. Its other checks pass
    with person_per_row=True; they fit tables of a few different rows, which are too few units otherwise.

    Parameters
    ----------
    estimator
        Any classifier with scikit-learn's fit and predict, or the name of a learner: "xgboost", "logistic",
        "hist-gradient-boosting", "random-forest", ...
    n_models
        How many subsets and models, an even number.
    queries, success, tpr, fpr
        What is wanted: how many predictions on which the models disagree, and the highest success rate of attacks on
        membership; or the highest rate `tpr` of true positives at the rate `fpr` of false ones.
    step_budget, total_budget
        The same in nats: per answer and in all. Give at most two of queries, step_budget and a target (success, tpr
        or total_budget); `plan_budget` says what stands in for those that are not given.
    decode
        "argmax" (the paper's), "map", which is more accurate, or "sample", a label released through a finite channel;
        docs/threat-model.md says what they mean.
    votes
        "plain", or "leave-one-out": where one unit explains the votes better than chance allows, answer as the models
        that were not trained on it do; "leave-two-out" removes up to two. This reduces what answers tell about a single
        unit of the pool; it proves nothing about the pool.
    noise
        "least", the paper's, or "fair": how the noise of "argmax" and "map" is shared out among the voted labels.
    charging, when_exhausted
        See Budget.
    odds_limit
        How far answers may move the log-odds of any statement about the training set, in every history: a number,
        "auto" for what goes with the total (0.25 for the default one), or None for no limit.
    construction, rate
        How subsets are drawn: "balanced" puts each unit into the share `rate` of them; "half-partitions" cuts the
        units into two halves, n_models / 2 times.
    person_per_row
        Each row is of another person, also if rows are identical. By default identical rows are protected together,
        as one; `groups` in `fit` says more.
    tune
        Search settings, by "halving" or over the "full" grid.
    tune_for
        "accuracy": of a model; "xgboost" searches on each subset by itself, others cannot. "private": of private
        answers at this budget and with this decoder; one setting for all models, for every learner by name.
    params
        Parameters of a learner that is given by its name, beside its defaults: those of the library's classifier, and
        for all of them class_weight, "balanced" or by label.
    types
        What some columns are, by name: "number", "boolean", "category", "text", "date", "date:FORMAT", or
        "number:EXAMPLE" that shows how 1234.5 is written there, such as "number:1.234,5"; or a list of the categories
        that a column has.
    min_category
        How many units must have a category for it to be listed; all other values, those of queries that training never
        had included, are one category, "other". A list that `types` declares is taken as it is.
    image_size
        The size to which all images are scaled, those of queries too: 64, or (64, 48) for height and width. By default
        all must be of one size.
    n_jobs, backend
        Models trained at a time, and joblib's backend, "ray", or a `Cluster`.
    random_state
        Makes subsets and models repeatable. The secret and the noise never depend on it: they come from the operating
        system.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.
    n_deployments_
        How many deployments over some of the same records this process knows of, this one included: each fit is one.
    units_
        The unit of each record that was trained on: `membership_posterior()[units_]` has a figure for each record.
    curator_
        What answers: ensemble, session and ledger.
    """

    def __init__(
        self,
        estimator: Any = defaults.LEARNER,
        *,
        n_models: int = defaults.MODELS,
        queries: float | None = None,
        success: float | None = None,
        tpr: float | None = None,
        fpr: float = DEFAULT_FPR,
        step_budget: float | None = None,
        total_budget: float | None = None,
        decode: Decoder = defaults.DECODE,
        votes: VoteRule = defaults.VOTES,
        noise: NoiseRule = defaults.NOISE,
        charging: Charging = defaults.CHARGING,
        when_exhausted: WhenExhausted = defaults.WHEN_EXHAUSTED,
        odds_limit: OddsLimit = "auto",
        construction: Construction = defaults.CONSTRUCTION,
        rate: float = defaults.RATE,
        person_per_row: bool = False,
        tune: Tune = defaults.TUNE,
        tune_for: Goal = defaults.TUNE_FOR,
        params: Mapping[str, Any] | None = None,
        types: Types | None = None,
        min_category: int = defaults.MIN_CATEGORY,
        image_size: ImageSize | None = None,
        n_jobs: int | None = None,
        backend: Backend = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_models = n_models
        self.queries = queries
        self.success = success
        self.tpr = tpr
        self.fpr = fpr
        self.step_budget = step_budget
        self.total_budget = total_budget
        self.decode = decode
        self.votes = votes
        self.noise = noise
        self.charging = charging
        self.when_exhausted = when_exhausted
        self.odds_limit = odds_limit
        self.construction = construction
        self.rate = rate
        self.person_per_row = person_per_row
        self.tune = tune
        self.tune_for = tune_for
        self.params = params
        self.types = types
        self.min_category = min_category
        self.image_size = image_size
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Train all models and draw the secret. Fitting again is a new deployment, with a new secret and ledger.

        Parameters
        ----------
        X, y
            Records and their labels.
        sample_weight
            What each record counts in training, by default all alike; one of weight 0 is left out.
        groups
            Of each record whose it is, such as a patient's number. All records of a person are in the same subsets,
            and what is promised is promised of persons. Without it identical records are taken as one, unless
            `person_per_row` says that each is of another person.
        """
        recipe = self._recipe()
        learner = self._learner()  # what cannot be is said before the data is looked at
        records = self._checked(X, reset=True) if "table" in learner.takes else X
        labels, weights = _checked_target(y), None
        if sample_weight is not None:
            every = check_weights(sample_weight, len(records), zero=True)
            records, labels, weights = (where(every > 0, part) for part in (records, labels, every))
            groups = None if groups is None else where(every > 0, groups)
        pool = Pool.of(
            records,
            labels,
            types=self.types,
            min_category=self.min_category,
            weights=weights,
            persons=groups,
            person_per_row=self.person_per_row,
            kinds=learner.takes,
            image_size=self.image_size,
        )
        limit = limit_warning(recipe.budget, recipe.decode, recipe.n_models)
        for hint in (*pool.hints(X), *([] if limit is None else [limit])):
            warnings.warn(hint, PrivacyWarning, stacklevel=2)
        if self.tune_for == "private":
            candidates = learner.candidates(self.tune, recipe.seed)
            learner = choose(
                pool, candidates, recipe, "private", n_jobs=self.n_jobs, backend=self.backend
            ).learner
        self._fit: Fit | None = fit(pool, learner, recipe, n_jobs=self.n_jobs, backend=self.backend)
        self.n_deployments_ = count_deployments(pool)
        if (warning := reuse_warning(self.n_deployments_)) is not None:
            warnings.warn(warning, PrivacyWarning, stacklevel=2)
        self.curator_ = Curator(self._fit.ensemble, recipe, MemoryLedger())
        self.classes_ = pool.classes.labels(np.arange(len(pool.classes)))
        self.units_ = pool.units.of_record
        self.path_: Path | None = None
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Answer all rows, or none: what is refused is not charged."""
        check_is_fitted(self)
        is_table = isinstance(self.curator_.ensemble.schema, Schema)
        return self.curator_.ask(self._checked(X, reset=False) if is_table else X).labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of answers to X. They are charged as any: `pacpredict.evaluate` costs nothing."""
        before = self.guarantee().spent_nats
        accuracy = float(super().score(X, y, sample_weight))
        if self.guarantee().spent_nats > before:
            warnings.warn(
                "score() asked the deployment, and answers on which models disagree were charged; "
                "pacpredict.evaluate measures accuracy before there is a deployment, and spends nothing",
                PrivacyWarning,
                stacklevel=2,
            )
        return accuracy

    def guarantee(self, prior: float | None = None) -> Guarantee:
        """Bound the success of any attack with this prior; by default of membership inference.

        `guarantee().promise()` words it: on average, at a low false-positive rate, in every history, and what is not
        promised.
        """
        check_is_fitted(self)
        return self.curator_.guarantee(prior)

    def membership_posterior(self) -> npt.NDArray[np.float64]:
        """Return each unit's posterior probability of membership, given all answers so far.

        1/2 means that they revealed nothing. For the owner only: it reveals who is in the pool.
        """
        check_is_fitted(self)
        return self.curator_.membership_posterior()

    def save(self, path: str | Path) -> None:
        """Write an artifact with the models, the secret and the ledger; from now on answers are recorded there."""
        check_is_fitted(self)
        if self._fit is None or self.path_ is not None:
            raise InvalidArtifact(
                f"this deployment lives in {self.path_}: a copy would be a second history of one secret, and void the "
                "guarantee; move the directory instead"
            )
        self._deployment = Deployment.save(path, self._fit, self.curator_)
        self.curator_ = self._deployment.curator
        self.path_ = Path(path)

    @classmethod
    def load(cls, path: str | Path, *, trust: bool = False) -> Self:
        """Open an artifact that `save` or `pacpredict fit` wrote, and go on where it is.

        `trust` allows models in files that can name code to run: only for artifacts that are one's own.
        """
        deployment = Deployment.open(path, trust=trust)
        curator = deployment.curator
        recipe, schema = curator.recipe, curator.ensemble.schema
        learner, units = deployment.artifact.trainer(), curator.ensemble.space.units
        estimator, params = learner.origin()
        self = cls(
            estimator,
            n_models=recipe.n_models,
            step_budget=recipe.budget.step,
            total_budget=recipe.budget.total,
            decode=recipe.decode,
            votes=recipe.votes,
            noise=recipe.budget.noise,
            charging=recipe.budget.charging,
            when_exhausted=recipe.budget.when_exhausted,
            odds_limit=recipe.budget.odds_limit,
            construction=recipe.construction,
            rate=recipe.rate,
            person_per_row=units.kind == "person" and units.count == len(units.of_record),
            tune=learner.config().get("tune", defaults.TUNE),
            params=_beside_defaults(estimator, params),
            types=(declared_types(schema.columns) or None) if isinstance(schema, Schema) else None,
            min_category=schema.min_category if isinstance(schema, Schema) else defaults.MIN_CATEGORY,
            image_size=_image_size(schema),
            random_state=recipe.seed,
        )
        self.curator_, self.path_, self._fit = curator, Path(path), None
        self.units_ = units.of_record
        self._deployment = deployment
        self.classes_ = curator.ensemble.classes.labels(np.arange(len(curator.ensemble.classes)))
        if isinstance(schema, Schema):
            self.n_features_in_ = len(schema.columns)
        if isinstance(schema, Schema) and schema.is_named:
            self.feature_names_in_ = np.array([column.name for column in schema.columns], dtype=object)
        return self

    def _learner(self) -> Learner:
        on_each_subset = self.tune if self.tune_for == "accuracy" else "none"
        return learner_from(self.estimator, self.params, on_each_subset)

    def _recipe(self) -> Recipe:
        budget = plan_budget(
            queries=self.queries,
            success=self.success,
            tpr=self.tpr,
            fpr=self.fpr,
            total=self.total_budget,
            step=self.step_budget,
            prior=membership_prior(self.rate, self.n_models),
            charging=self.charging,
            when_exhausted=self.when_exhausted,
            odds_limit=self.odds_limit,
            noise=self.noise,
        )
        how = self.construction, self.rate, self.decode, self.votes
        return Recipe(_seed(self.random_state), budget, self.n_models, *how)

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


def _beside_defaults(estimator: Any, params: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the parameters of a learner by name that are not its defaults, None if there are none."""
    usual = {} if params is None else default_params(estimator)
    return {name: value for name, value in (params or {}).items() if usual.get(name) != value} or None


def _image_size(schema: AnySchema) -> tuple[int, int] | None:
    return (schema.height, schema.width) if isinstance(schema, ImageSchema) and schema.is_scaled else None


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "iloc")


def _seed(random_state: Any) -> int:
    if random_state is None or isinstance(random_state, int | np.integer):
        return settle_seed(None, None if random_state is None else int(random_state))
    return int(check_random_state(random_state).randint(2**31 - 1))
