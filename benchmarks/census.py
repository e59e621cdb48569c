"""The census ensemble that several benchmarks ask: 128 XGBoost models of 200 trees, fitted once and kept."""

import os
from pathlib import Path

from pacpredict.artifact.artifact import Artifact
from pacpredict.experiments.tabular import fit

NAME, N_MODELS = "census", 128


def fitted(path: Path | None) -> Artifact:
    """Return the artifact at a path, by default in the user's cache; fit it if it is not there (a few minutes)."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pacpredict" / f"{NAME}.pac"
    return fit(NAME, path or cache, "none", N_MODELS, os.cpu_count() or 1)
