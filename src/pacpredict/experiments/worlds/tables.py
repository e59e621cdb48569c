"""The tables, learners and sizes of the experiments with retrained worlds."""

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd

from pacpredict.exceptions import InvalidTable
from pacpredict.experiments.datasets import load_bank, load_census
from pacpredict.experiments.public_files import find
from pacpredict.learners.learner import Learner
from pacpredict.learners.registry import learner_for, learner_named

TARGET = "target"
_COMPAS = "compas/compas-scores-two-years.csv"
_COMPAS_SHA256 = "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d"
_COMPAS_COLUMNS = (
    *("sex", "age", "race", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"),
    *("days_b_screening_arrest", "c_charge_degree", "c_charge_desc"),
)


class Setting(NamedTuple):
    """What is trained on what, and whom attackers are after."""

    load: Callable[[], pd.DataFrame]  # the column to predict is TARGET
    learner: Callable[[], Learner]
    n_pool: int  # records in the pool, targets included
    n_test: int
    n_targets: int  # of each kind, in each family
    n_families: int  # pools with targets of their own
    n_variants: int  # candidates per target, the record itself not counted


def census() -> pd.DataFrame:
    return load_census().rename(columns={"income": TARGET})


def bank() -> pd.DataFrame:
    return load_bank().rename(columns={"y": TARGET})


def compas() -> pd.DataFrame:
    """Return ProPublica's table of defendants and whether they were charged again within two years, 6,172 records.

    It comes with the package aif360, filtered here as its authors filter it.
    """
    path = find(_COMPAS)
    if path is None:
        raise InvalidTable(
            f"{_COMPAS} is missing: get it with `pip download --no-deps aif360==0.3.0rc0`, unpack "
            "aif360/data/raw/compas from the wheel, and put it into the directory that PACPREDICT_DATA names or into "
            "the user's cache"
        )
    if hashlib.sha256(path.read_bytes()).hexdigest() != _COMPAS_SHA256:
        raise InvalidTable(f"{path} is not the published file: its SHA-256 differs")
    table = pd.read_csv(path)
    table = table[
        table["days_b_screening_arrest"].between(-30, 30)
        & (table["is_recid"] != -1)
        & (table["c_charge_degree"] != "O")
        & (table["score_text"] != "N/A")
    ]
    chosen = table[list(_COMPAS_COLUMNS)].copy()
    texts = [name for name in chosen if not pd.api.types.is_numeric_dtype(chosen[name])]
    chosen = chosen.astype(dict.fromkeys(texts, "category"))
    return chosen.assign(**{TARGET: table["two_year_recid"].map({0: "no", 1: "yes"})}).reset_index(drop=True)


def digits() -> pd.DataFrame:
    from sklearn.datasets import load_digits  # noqa: PLC0415  # takes time to import

    pixels, labels = load_digits(return_X_y=True, as_frame=True)
    return pixels.astype(int).assign(**{TARGET: labels})


def cancer() -> pd.DataFrame:
    from sklearn.datasets import load_breast_cancer  # noqa: PLC0415  # takes time to import

    features, labels = load_breast_cancer(return_X_y=True, as_frame=True)
    return features.assign(**{TARGET: labels})


def named(name: str, **params: Any) -> Callable[[], Learner]:
    return lambda: learner_named(name, params or None)


def nearest() -> Learner:
    from sklearn.neighbors import KNeighborsClassifier  # noqa: PLC0415  # takes time to import

    return learner_for(KNeighborsClassifier(1))


_FOREST = named("random-forest", n_estimators=20)
SETTINGS = {
    "census": Setting(census, named("xgboost"), 12_000, 5_000, 200, 1, 300),
    "bank": Setting(bank, named("xgboost"), 12_000, 5_000, 200, 1, 300),
    "compas": Setting(compas, named("xgboost"), 5_000, 1_172, 200, 1, 300),
    "digits": Setting(digits, named("decision-tree"), 1_347, 450, 50, 4, 300),
    "cancer": Setting(cancer, named("xgboost"), 426, 143, 20, 10, 150),
    "census-forest": Setting(census, _FOREST, 12_000, 5_000, 200, 1, 300),
    "census-logistic": Setting(census, named("logistic"), 12_000, 5_000, 200, 1, 300),
    "digits-forest": Setting(digits, _FOREST, 1_347, 450, 50, 4, 300),
    "digits-logistic": Setting(digits, named("logistic"), 1_347, 450, 50, 4, 300),
    "digits-nearest": Setting(digits, nearest, 1_347, 450, 50, 4, 300),
}
