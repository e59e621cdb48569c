"""Commands that are used every day start quickly: what they do not need they do not import."""

import os
import subprocess
import sys

import pytest
from artifacts import fit_small
from records import labels_of, mixed_table, small_learner

from pacpredict.training.pool import Pool

# Slow to import, and needed by training, tables in other formats or pages only.
HEAVY = {"joblib", "matplotlib", "pandas", "pyarrow", "sklearn", "threadpoolctl", "torch", "xgboost"}
RUN = (
    "import sys; from pacpredict.cli import main; code = main(sys.argv[1:]); "
    f"print(code, sorted({HEAVY} & set(sys.modules)), file=sys.stderr)"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("start")
    table = mixed_table().drop(columns="note")  # words of free text are hashed by scikit-learn
    for name in ("logistic", "xgboost", "random-forest"):
        pool = Pool.of(table, labels_of(mixed_table()))
        fit_small(folder / f"{name}.pac", pool, small_learner(name))
    for i in range(8):
        mixed_table(3, seed=10 + i).drop(columns="note").to_csv(folder / f"q{i}.csv", index=False)
    return folder


def seconds_of(code, *arguments, cwd=None):
    """Return what a program said last on standard error, and the processor time that it took."""
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=cwd, capture_output=True, text=True, check=True
    )
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    return done.stderr.splitlines()[-1:], seconds


@pytest.mark.parametrize(
    "line",
    [
        "show logistic.pac",
        "predict logistic.pac q0.csv",
        "predict xgboost.pac q0.csv",
        "predict random-forest.pac q0.csv",
    ],
)
def test_nothing_heavy_is_imported(folder, line):
    """Neither pandas nor scikit-learn, nor what comes with them, is needed to show an artifact or to ask it."""
    (said,), _ = seconds_of(RUN, *line.split(), cwd=folder)
    assert said in ("0 []", "0 ['threadpoolctl']")  # which is quick, and which simulations use


@pytest.mark.parametrize(("command", "most"), [("show", 3.0), ("predict", 5.0)])
def test_commands_start_within_a_second_and_a_half(folder, command, most):
    """The best of four takes at most so many times what importing numba takes: 0.3 s where nobody else computes.

    Questions are new ones, so that kernels are loaded. On a busy machine both take longer, by the same factor.
    """
    asked = [["show", "xgboost.pac"], *(["predict", "xgboost.pac", f"q{i}.csv"] for i in range(1, 5))]
    times = [seconds_of(RUN, *arguments, cwd=folder)[1] for arguments in asked if arguments[0] == command]
    imports = [seconds_of("import numba")[1] for _ in range(4)]
    assert min(times) < most * min(imports)
