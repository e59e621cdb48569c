"""Small artifacts, and what an attacker with a text editor could do to them, for tests."""

import hashlib
import json
import traceback

import numpy as np

from pacpredict.curator import fit_deployment
from pacpredict.ensemble.learners.registry import learner_named
from pacpredict.ensemble.pool import Pool
from records import mixed_pool, recipe, small_learner


def fit_small(path, pool=None, learner=None, how=None, **options):
    options = {"n_jobs": 1, **options}
    return fit_deployment(path, pool or mixed_pool(), learner or small_learner(), how or recipe(), **options)


def fit_noise(path, n_columns, step, steps):
    """Make an artifact whose models disagree on nearly every query, since they learned noise: 3 classes, 8 models."""
    rng = np.random.default_rng(0)
    records, labels = rng.normal(size=(60, n_columns)), rng.integers(3, size=60)
    how = recipe(n_models=8, step=step, total=steps * step)
    fit_small(path, Pool.of(records, labels), learner_named("logistic"), how)


def rehash(home):
    """Make the manifest vouch for the files as they are now."""
    manifest = json.loads((home / "manifest.json").read_text())
    for name, about in manifest["files"].items():
        data = (home / name).read_bytes()
        about.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    (home / "manifest.json").write_text(json.dumps(manifest))


def at_home(caught):
    """Return all that a user could see of an exception, its causes included."""
    return "".join(traceback.format_exception(caught.value))


def model_files(home):
    """Return the bytes of all models and of their votes; records also say how long training took."""
    names = [
        *home.glob("models/*.ubj"),
        *home.glob("models/*.npz"),
        *home.glob("models/*.skops"),
        home / "votes.npz",
    ]
    return {path.relative_to(home).as_posix(): path.read_bytes() for path in names if path.exists()}
