"""Compiled kernels: announced when they are made, cached, and made anew when any source has changed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pacpredict

CALLEE = """
from pacpredict.core.compiled import compiled

@compiled
def constant(x):
    return x + 1.0
"""
CALLER = """
from pacpredict.core.callee import constant
from pacpredict.core.compiled import compiled

@compiled
def doubled(x):
    return 2.0 * constant(x)
"""
RUN = "from pacpredict.core.caller import doubled; print(doubled(10.0))"


@pytest.fixture
def package(tmp_path):
    """A copy of the package with two small kernels, of which one calls the other, and an empty cache."""
    copied = tmp_path / "src" / "pacpredict"
    shutil.copytree(Path(pacpredict.__file__).parent, copied, ignore=shutil.ignore_patterns("__pycache__"))
    (copied / "core" / "callee.py").write_text(CALLEE)
    (copied / "core" / "caller.py").write_text(CALLER)
    return copied


@pytest.fixture
def run(package, tmp_path):
    def run(code=RUN):
        environment = os.environ | {
            "PYTHONPATH": str(package.parent),
            "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )

    return run


def test_compilation_is_announced_once(run):
    """The first run says what takes so long, on stderr and in one line; a run from the cache says nothing."""
    first, second = run(), run()
    assert first.stdout == second.stdout == "22.0\n"
    assert first.stderr.count("\n") == 1
    assert first.stderr.startswith("pacpredict: compiling")
    assert second.stderr == ""


@pytest.mark.parametrize("changed", ["callee", "caller"])
def test_changed_sources_are_compiled_anew(run, package, changed):
    """A kernel contains those that it calls, so a change in any of their files counts, and is announced."""
    assert run().stdout == "22.0\n"
    source = package / "core" / f"{changed}.py"
    stamp = source.stat()
    old, new = ("x + 1.0", "x + 5.0") if changed == "callee" else ("2.0 *", "4.0 *")
    source.write_text(source.read_text().replace(old, new))
    os.utime(source, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # not even the time gives it away
    again = run()
    assert again.stdout == ("30.0\n" if changed == "callee" else "44.0\n")
    assert again.stderr.startswith("pacpredict: compiling")


def test_other_peoples_kernels_are_not_announced(run):
    """Only the compilation of this package's kernels is spoken of."""
    code = "import numba, pacpredict.core.compiled\nprint(numba.njit(lambda x: x + 1)(1))"
    assert run(code).stderr == ""


def test_importing_compiles_nothing(run):
    """A program that needs no kernel does not wait for one."""
    assert run("import pacpredict.core.release, pacpredict.core.calibrate").stderr == ""


@pytest.mark.parametrize("value", ["1.0 / x", "math.sqrt(-x - 1.0)"])
def test_arithmetic_does_not_raise(run, package, value):
    """Kernels have IEEE arithmetic: a division by zero is infinity, the root of a negative number NaN."""
    caller = package / "core" / "caller.py"
    caller.write_text("import math\n" + CALLER.replace("2.0 * constant(x)", value))
    assert run(RUN.replace("10.0", "0.0")).stdout in {"inf\n", "nan\n"}
