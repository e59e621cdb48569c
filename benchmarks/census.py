"""The census ensembles that benchmarks ask: 128 XGBoost models of 200 trees, fitted once and kept; and tuned ones."""

import os
from pathlib import Path

from pacpredict.artifact.artifact import Artifact
from pacpredict.experiments.tabular import fit

NAME, TUNED, N_MODELS = "census", "census, tuned", 128


def fitted(path: Path | None) -> Artifact:
    """Return the artifact at a path, by default in the user's cache; fit it if it is not there (a few minutes)."""
    return fit(NAME, path or _cache() / f"{NAME}.pac", "none", N_MODELS, os.cpu_count() or 1)


def tuned(path: Path | None) -> Artifact | None:
    """Return the artifact whose models each searched for settings of their own; None if nobody has fitted it.

    `python -m pacpredict.experiments.tabular census --artifact PATH` does, in half an hour of a core.
    """
    path = path or _cache() / f"{NAME}-tuned.pac"
    return Artifact.open(path) if path.exists() else None


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pacpredict"
