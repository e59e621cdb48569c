"""Tables with every kind of column, and fits that are quick, for tests."""

import numpy as np
import pandas as pd

from pacpredict.learners.registry import learner_named, learner_names
from pacpredict.mechanism.budget import Budget
from pacpredict.training.fit import fit
from pacpredict.training.pool import Pool
from pacpredict.training.recipe import Recipe

WORDS = ("late", "early", "broken", "fine", "blue", "red")


def mixed_table(n=120, seed=0):
    """Return records with numbers, booleans, categories, free text, and values that are missing in each."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(17, 90, n),
            "hours": rng.normal(40, 9, n),
            "job": rng.choice(["clerk", "nurse", "smith"], n),
            "married": pd.array(rng.random(n) < 0.5, dtype="boolean"),
            "grade": pd.Categorical(rng.choice(["low", "high"], n), categories=["low", "mid", "high"]),
            # Longer than the name of a category may be, so that it is taken for free text.
            "note": [" ".join(rng.choice(WORDS, 30)) for _ in range(n)],
        }
    )
    for name in ("hours", "job", "married", "note"):
        table.loc[rng.random(n) < 0.1, name] = None
    return table


def labels_of(table, n_classes=2, seed=0):
    """Return labels that the columns say something about, without deciding them."""
    noise = np.random.default_rng(seed).normal(0, 12, len(table))
    score = table["age"] + 12 * (table["job"] == "nurse") + 12 * (table["grade"] == "high") + noise
    names = np.array(["a", "b", "c", "d"][:n_classes])
    return names[np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)]


def mixed_pool(n=120, n_classes=2, seed=0, **options):
    """Return a pool of such records; the grades are declared, and the jobs are not."""
    table = mixed_table(n, seed)
    options = {"types": {"grade": ["low", "mid", "high"]}, **options}
    return Pool.of(table, labels_of(table, n_classes, seed), **options)


def recipe(
    seed=1,
    n_models=4,
    step=2.0**-8,
    total=1.0,
    odds_limit=None,
    charging="adaptive",
    when_exhausted="halt",
    **options,
):
    budget = Budget(step, total, charging, when_exhausted, odds_limit)
    return Recipe(seed, budget, n_models, **options)


# What else there is takes images or texts.
TABLE_LEARNERS = [name for name in learner_names() if name not in {"heads", "wide-resnet", "bert-small"}]


def small_learner(name="xgboost"):
    """Return a learner by name that trains in milliseconds."""
    few = {
        "xgboost": {"n_estimators": 5, "max_depth": 3},
        "random-forest": {"n_estimators": 5, "min_samples_leaf": 2},
        "extra-trees": {"n_estimators": 5},
        "hist-gradient-boosting": {"max_iter": 5, "min_samples_leaf": 5, "early_stopping": False},
    }
    return learner_named(name, few.get(name))


def quick_fit(pool=None, learner=None, how=None):
    return fit(pool or mixed_pool(), learner or small_learner(), how or recipe(), n_jobs=1)
