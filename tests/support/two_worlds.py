"""The same table with and without one patient, who alone has something, for tests of what a schema tells."""

import numpy as np
import pandas as pd

# What she alone has, as (column, cell of the CSV file); with it, what a client asks, as JSON has it.
HERS = {
    "category": ("diagnosis", "Gaucher"),
    "missing number": ("creatinine", ""),
    "missing category": ("diagnosis", ""),
    "missing boolean": ("smoker", ""),
    "missing text": ("note", ""),
    "missing date": ("seen", ""),
    "no number": ("creatinine", "haemolytic"),
    "limit": ("creatinine", "<0.2"),
    "no boolean": ("smoker", "shisha"),
    "long text": ("diagnosis", "a disease that has no name and no code " * 4),
    "number of a category": ("ward", "7"),
}
TYPES = ("seen=date", "note=text", "ward=category")


def clinic(n_patients=120, seed=0):
    """Return two stays of each patient, as texts: nothing is rare, and nothing is missing."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(n_patients), 2)
    n = len(patient)
    age = rng.integers(20, 90, n)
    return pd.DataFrame(
        {
            "patient": [f"P{i:03d}" for i in patient],
            "age": age.astype(str),
            "creatinine": rng.normal(1, 0.2, n).round(2).astype(str),
            "diagnosis": rng.choice(["asthma", "flu", "gout"], n),
            "smoker": rng.choice(["True", "False"], n),
            "seen": [f"2024-{month:02d}-15" for month in rng.integers(1, 13, n)],
            "note": [" ".join(rng.choice(["pale", "well", "tired", "cough"], 3)) for _ in range(n)],
            "ward": rng.choice(["1", "2", "3"], n),
            "outcome": np.where(age + rng.normal(0, 10, n) > 55, "care", "home"),
        }
    )


def write_worlds(folder, what):
    """Write the table with her and without her; she is the last patient, and alone has what is named."""
    column, cell = HERS[what]
    table = clinic()
    table.loc[table.index[-2:], column] = cell
    folder.mkdir(exist_ok=True)
    table.to_csv(folder / "with.csv", index=False)
    table[:-2].to_csv(folder / "without.csv", index=False)
    return {world: folder / f"{world}.csv" for world in ("with", "without")}


def query(**changes):
    """Return a row that nobody has, as JSON."""
    usual = {
        "age": 51,
        "creatinine": 1.03,
        "diagnosis": "flu",
        "smoker": True,
        "seen": "2024-03-03",
        "note": "pale",
        "ward": 2,
    }
    return {**usual, **changes}


def queries():
    """Return rows with each value that one of the worlds may not have, and others that no table has."""
    hers = [query(**{column: cell or None}) for column, cell in HERS.values()]
    return [
        query(),
        *hers,
        *(query(**{name: None}) for name in query()),
        query(diagnosis=3.5, ward="x", note=""),
    ]
