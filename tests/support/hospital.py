"""A table as hospitals have them: several rows per patient, ids, dates, limits of detection, free text, outcomes."""

import numpy as np
import pandas as pd

TARGET = "outcome"
WARDS = (10, 11, 12, 20, 21, 30)
DIAGNOSES = tuple(f"{letter}{number}" for letter in "IJKE" for number in range(10, 16))
FINDINGS = ("fever", "cough", "pain", "oedema", "stable", "alert", "frail", "dyspnoea", "nausea", "wound")

# What makes the table fit to be learned from, as TOML and on the command line.
OPTIONS = {
    "target": TARGET,
    "drop": ["record_id", "site", "died", "length_of_stay"],
    "types": {"admitted": "date", "born": "date:%d.%m.%Y", "crp": "number", "ward": "category"},
    "missing": ["n/a"],
}


def hospital(n_patients=500, seed=0):
    """Return a stay per row, one to five of each patient; what happened after it is told by the columns, badly."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(
        np.arange(n_patients), rng.choice([1, 2, 3, 4, 5], n_patients, p=[0.3, 0.25, 0.25, 0.15, 0.05])
    )
    n, rng = len(patient), np.random.default_rng([seed, 1])
    frailty = rng.normal(size=n_patients)[patient]
    age = np.clip(rng.normal(62, 16, n_patients)[patient] + rng.normal(0, 1, n), 18, 99).round()
    admitted = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 1000, n), unit="D")
    crp = np.exp(rng.normal(1.0 + 0.5 * frailty, 1.2))
    risk = 0.6 * frailty + 0.05 * (age - 62) + 0.5 * np.log(crp) + rng.normal(0, 1.3, n)
    outcome = np.array(["home", "care", "readmitted"])[np.digitize(risk, [0.7, 2.0])]
    table = pd.DataFrame(
        {
            "record_id": [f"R{i:05d}" for i in rng.permutation(n)],
            "patient_id": [f"P{i:04d}" for i in patient],
            "admitted": admitted.strftime("%Y-%m-%d"),
            "born": (admitted - pd.to_timedelta(age * 365.25, unit="D")).strftime("%d.%m.%Y"),
            "age": age.astype(int),
            "sex": rng.choice(["f", "m"], n),
            "ward": rng.choice(WARDS, n),
            "diagnosis": rng.choice(DIAGNOSES, n),
            "crp": np.where(crp < 0.5, "<0.5", np.round(crp, 1).astype(str)),
            "creatinine": np.round(np.exp(rng.normal(0.1 + 0.1 * frailty, 0.3)), 2),
            "sodium": rng.normal(139, 4, n).round(),
            "smoker": rng.choice(["yes", "no"], n),
            "note": [". ".join(" ".join(rng.choice(FINDINGS, 4)) for _ in range(5)) for _ in range(n)],
            "site": "main",
            TARGET: outcome,
            "died": rng.random(n) < np.where(outcome == "readmitted", 0.2, 0.02),
            "length_of_stay": np.round(np.exp(rng.normal(1.5 + 0.3 * frailty, 0.5)), 2),
        }
    )
    table.loc[rng.random(n) < 0.15, "creatinine"] = np.nan
    table.loc[rng.random(n) < 0.05, "crp"] = "n/a"
    return table
