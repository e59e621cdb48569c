"""Records that come with scikit-learn, taken as those of a clinic: a pool to train on, and patients who come later."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer

from pacpredict.estimator import PrivateClassifier

# Few enough to be typed; with all thirty the models would hardly ever disagree.
MEASURES = ("radius", "texture", "smoothness", "concavity", "symmetry")
N_POOL = 400

# So many answers on which models disagree are paid for: at the pace of the demo they last for about an hour, so that
# the budget can be seen to shrink. The promise is the default one, 51.08 %.
PAID_ANSWERS = 1000

_SEED = 0  # of the split into pool and later patients, which is nobody's secret
# Measured a second time, a patient differs by this share of what patients differ by.
_SECOND_MEASUREMENT = 0.2
_ASKED_AGAIN = 0.2  # of the questions

Row = dict[str, float]


class Patient(NamedTuple):
    row: Row
    diagnosis: str


def load() -> tuple[list[Patient], list[Patient]]:
    """Return the patients whose records are the pool, and those who come later."""
    found = load_breast_cancer(as_frame=True)
    table = found.data[[f"mean {name}" for name in MEASURES]].set_axis(list(MEASURES), axis="columns")
    diagnoses = found.target_names[found.target]
    patients = [
        Patient(row, str(name)) for row, name in zip(table.to_dict("records"), diagnoses, strict=True)
    ]
    order = np.random.default_rng(_SEED).permutation(len(patients))
    shuffled = [patients[i] for i in order]
    return shuffled[:N_POOL], shuffled[N_POOL:]


def fit(pool: list[Patient], path: Path, n_models: int) -> None:
    """Train the models, draw the secret, and write the artifact."""
    import pandas as pd  # noqa: PLC0415

    classifier: Any = PrivateClassifier("logistic", n_models=n_models, queries=PAID_ANSWERS, decode="sample")
    classifier.fit(pd.DataFrame([patient.row for patient in pool]), [patient.diagnosis for patient in pool])
    classifier.save(path)


def questions(patients: list[Patient]) -> Iterator[Patient]:
    """Yield for ever what a clinic asks: first each patient once, then measured again, now and then word for word."""
    yield from patients
    generator = np.random.default_rng()
    spread = np.std([list(patient.row.values()) for patient in patients], axis=0)
    asked = list(patients)
    while True:
        patient = asked[generator.integers(len(asked))]
        if generator.random() >= _ASKED_AGAIN:
            moved = np.array(list(patient.row.values())) + generator.normal(0, _SECOND_MEASUREMENT * spread)
            values = np.maximum(moved, 0).round(4).tolist()
            patient = Patient(dict(zip(MEASURES, values, strict=True)), patient.diagnosis)
            asked.append(patient)
        yield patient
