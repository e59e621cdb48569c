"""Small deployments with public rows beside them, and students made of them, for tests."""

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pandas as pd
from artifacts import fit_small
from records import labels_of, mixed_table, recipe

from pacpredict.deployment import Deployment
from pacpredict.distill.columns import PublicRows
from pacpredict.distill.run import Options, distill
from pacpredict.training.pool import Pool

STEP = 2.0**-20

# A program that runs another one where this package cannot be imported.
_WITHOUT = (
    "import runpy, sys; sys.modules.update(dict.fromkeys(sys.argv[1].split(','))); sys.argv = sys.argv[2:]; "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


def silent(stage):
    """Say nothing of how far work is."""
    return nullcontext(lambda done, total: None)


def fit_teacher(path, steps=1000, n_classes=3, n_models=8, **options):
    """Make a deployment whose models differ on some public rows; returns the table of these, without labels."""
    table = mixed_table(400, seed=3).drop(columns="note")
    labels = labels_of(table, n_classes, seed=3)
    pool = Pool.of(table[:200], labels[:200])
    fit_small(path, pool, how=recipe(n_models=n_models, step=STEP, total=steps * STEP, **options))
    return table[200:].reset_index(drop=True), labels[200:]


def make_student(artifact, table, out, tested=None, decode=None, **options):
    """Distil in this process; returns what distil returns."""
    options = {"learner": "xgboost", "params": {"n_estimators": 5, "max_depth": 3}, **options}
    with Deployment.open(artifact, decode=decode) as deployment:
        public = PublicRows.of(deployment.artifact.schema, table)
        return distill(deployment, public, Options(**options), out, silent, tested)


def as_csv(table, path):
    """Write a table as people have it: missing values are empty cells."""
    pd.DataFrame(table).to_csv(path, index=False)
    return path


def run_program(student, *arguments):
    """Run the program of a student's folder where pacpredict is not installed; returns what it printed, in lines."""
    done = _run(student, arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def program_refuses(student, *arguments, absent=()):
    """Return the one line that the program says of what it cannot use, without some libraries; it prints no label."""
    done = _run(student, arguments, absent)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    return line


def _run(student, arguments, absent=()):
    program = str(Path(student) / "predict.py")
    without = ",".join(("pacpredict", *absent))
    command = [sys.executable, "-W", "ignore", "-c", _WITHOUT, without, program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
