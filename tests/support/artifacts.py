"""Small artifacts, and what an attacker with a text editor could do to them, for tests."""

import hashlib
import json
import shutil
import traceback

import numpy as np
from records import mixed_pool, recipe, small_learner

from pacpredict.artifact.artifact import WITNESS, Artifact
from pacpredict.curator import Curator
from pacpredict.deployment import Deployment, home_of
from pacpredict.learners.registry import learner_named
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.mechanism.secret import Secret
from pacpredict.training.pool import Pool


def fit_small(path, pool=None, learner=None, how=None, **options):
    """Make a deployment, close it, and return its artifact."""
    options = {"n_jobs": 1, **options}
    with Deployment.fit(
        path, pool or mixed_pool(), learner or small_learner(), how or recipe(), **options
    ) as deployment:
        return deployment.artifact


def fit_noise(path, n_columns, step, steps, **options):
    """Make an artifact whose models disagree on nearly every query, since they learned noise: 3 classes, 8 models."""
    rng = np.random.default_rng(0)
    records, labels = rng.normal(size=(60, n_columns)), rng.integers(3, size=60)
    how = recipe(n_models=8, step=step, total=steps * step, **options)
    fit_small(path, Pool.of(records, labels), learner_named("logistic"), how)


def copy_artifact(source, target):
    """Copy an artifact that has answered nothing, and let the copy be served: its owner says what it is."""
    shutil.copytree(source, target)
    (target / WITNESS).unlink()
    home_of(Artifact.open(target)).moved(None, None, 0)
    return target


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
        *home.glob("models/*.safetensors"),
        home / "votes.npz",
    ]
    return {path.relative_to(home).as_posix(): path.read_bytes() for path in names if path.exists()}


def save_with(path, fitted, index):
    """Save models in memory with a secret that is known, and return the deployment, closed."""
    secret = Secret(index, fitted.recipe.n_models)
    curator = Curator(fitted.ensemble, fitted.recipe, MemoryLedger(), secret=secret)
    with Deployment.save(path, fitted, curator) as deployment:
        return deployment
