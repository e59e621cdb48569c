"""Kernels are compiled once: all of them, in every variant that is ever called, by one process."""

import os
import subprocess
import sys
import threading
import time

# Everything that answers, in a process of its own: which variants of which kernels were there before, and which after?
USE = """
import gc, sys, tempfile
from pathlib import Path
from numba.core.dispatcher import Dispatcher
sys.path[:0] = sys.argv[1:]
from artifacts import fit_noise, fit_small
from records import mixed_pool, mixed_table, recipe, small_learner
from whole_values import image_pool, mean_colours, small_heads, text_pool
from pacpredict.cli import main
from pacpredict.kernels import compile_all
from pacpredict.serving.run import warm_up
from pacpredict.deployment import Deployment
from pacpredict.training.pool import Pool

def variants():
    kernels = [one for one in gc.get_objects() if isinstance(one, Dispatcher)]
    return {
        (one.py_func.__qualname__, str(signature))
        for one in kernels if one.py_func.__module__.startswith("pacpredict")
        for signature in one.signatures
    }

compile_all()
before = variants()
folder = Path(tempfile.mkdtemp())
mixed_table(30, seed=3).to_csv(folder / "q.csv", index=False)
numbers = mixed_table(120)[["age"]], ["a", "b"] * 60
for name in ("xgboost", "random-forest", "hist-gradient-boosting", "logistic"):
    for i, pool in enumerate((mixed_pool(), Pool.of(*numbers))):
        path = folder / f"{name}-{i}.pac"
        fit_small(path, pool, small_learner(name))
        if i == 0:
            assert main(["predict", str(path), str(folder / "q.csv"), "--out", "/dev/null"]) == 0
        deployment = Deployment.open(path)
        curator = deployment.curator
        curator.ask(mixed_table(20, seed=4)[["age"]] if i else mixed_table(20, seed=4))
        curator.ensemble.votes(curator.ensemble.schema.rows(numbers[0] if i else mixed_table(300)), 2)
        warm_up(curator)
        last = deployment.link().sequence
        deployment.weigh(range(1, last + 1), [last])
        deployment.close()
        assert main(["ledger", "verify", str(path), "--json"]) == 0
for name, pool, features in (("images", image_pool(), mean_colours), ("texts", text_pool(), "tfidf")):
    fit_small(folder / f"{name}.pac", pool, small_heads(features), recipe(n_models=8))
table = mixed_table(80).drop(columns="note").assign(label=["a", "b"] * 40)
table.to_csv(folder / "audited.csv", index=False)
path, few = str(folder / "audited.pac"), ["--trials", "2", "--queries", "20", "--targets", "1", "--runs", "2"]
how = ["--target", "label", "--learner", "decision-tree", "--models", "16", "--jobs", "1", "--out", path]
assert main(["fit", str(folder / "audited.csv"), *how]) == 0
for decoder in ("argmax", "sample"):
    assert main(["audit", path, *few, "--jobs", "1", "--decode", decoder]) == 0
assert main(["predict", path, str(folder / "audited.csv"), "--out", "/dev/null"]) == 0
assert main(["audit", path, "--ledger"]) == 0
print(sorted(variants() - before), file=sys.stderr)
"""

RACE = """
import sys, time
from pacpredict import kernels

def pretend():
    with open(sys.argv[1], "a") as file:
        file.write("compiled\\n")
    time.sleep(0.5)

kernels.compile_all = pretend
print(kernels.compile_once())
"""


def run(code, *arguments, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def test_nothing_is_left_to_compile():
    """After compile_all no learner, request, server, verification or audit calls a kernel with new types."""
    process = run(USE, *(path for path in sys.path if path.endswith("support")))
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert errors.splitlines()[-1] == "[]"


def test_several_processes_compile_once(tmp_path):
    """Of processes that start together one compiles, the others wait for it, and later ones find that it was done."""
    log, cache = tmp_path / "log", {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    together = [run(RACE, log, **cache) for _ in range(3)]
    said = [process.communicate(timeout=120)[0].strip() for process in together]
    assert sorted(said) == ["False", "False", "True"]
    assert run(RACE, log, **cache).communicate(timeout=120)[0].strip() == "False"
    assert log.read_text() == "compiled\n"


def test_whoever_waits_for_another_is_told(tmp_path, capsys):
    """A process that finds another one compiling says so before it waits; one that finds nobody says nothing."""
    from pacpredict import kernels  # noqa: PLC0415

    def wait():
        with kernels._locked(tmp_path):
            pass

    with kernels._locked(tmp_path):
        assert capsys.readouterr().err == ""
        waiting = threading.Thread(target=wait)
        waiting.start()
        deadline = time.monotonic() + 30
        while not (said := capsys.readouterr().err) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert "waiting for another pacpredict that is compiling" in said
        assert waiting.is_alive()
    waiting.join(30)
    assert not waiting.is_alive()


def test_another_compiler_or_source_compiles_anew(monkeypatch):
    """What was compiled counts for the sources, the libraries and the processor that it was compiled for."""
    from pacpredict import kernels  # noqa: PLC0415

    seen = {kernels._version()}
    monkeypatch.setattr("numba.__version__", "0.0")
    seen.add(kernels._version())
    monkeypatch.setattr(kernels, "get_host_cpu_name", lambda: "abacus")
    seen.add(kernels._version())
    monkeypatch.setattr(kernels, "digest_of_sources", lambda _: "edited")
    assert len({*seen, kernels._version()}) == 4


def test_kernels_work_where_nothing_can_be_written():
    """Without any place for a cache kernels are compiled for the process, and nothing is pretended to be kept."""
    code = (
        "import numpy as np\n"
        "from pacpredict.core.validate import check_votes\n"
        "from pacpredict.core.compiled import cache_of\n"
        "from pacpredict.core.release import answer_votes\n"
        "print(check_votes(np.zeros((1, 2), np.int16), 2).tolist(), cache_of(answer_votes))"
    )
    nowhere = {
        "NUMBA_CACHE_DIR": "/proc/nowhere",
        "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator",
    }
    output, errors = run(code, **nowhere).communicate(timeout=120)
    assert output == "[[0, 0]] None\n", errors
