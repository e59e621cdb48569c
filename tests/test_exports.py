"""The public names, and what it costs to import them."""

import ast
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

import pacpredict

TREE = ast.parse(Path(pacpredict.__file__).read_text())


def type_checking_names():
    """Return {name: module below pacpredict} of the imports that type checkers see."""
    (block,) = [node for node in TREE.body if isinstance(node, ast.If)]
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    return {
        alias.name: node.module.removeprefix("pacpredict.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def loaded_after(code):
    """Return the modules that a fresh interpreter has after running some code."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"{code}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("name", pacpredict.__all__)
def test_public_name_is_importable(name):
    """Every name of __all__ is there, and is the very object of the module that it lives in."""
    home = import_module(f"pacpredict.{pacpredict._HOME[name]}")
    assert getattr(pacpredict, name) is getattr(home, name)


def test_lists_agree():
    """What is exported, what is found at run time and what type checkers see are the same names."""
    assert list(pacpredict._HOME) == pacpredict.__all__
    assert type_checking_names() == pacpredict._HOME
    assert pacpredict.__all__ == sorted(set(pacpredict.__all__))
    assert dir(pacpredict) == sorted([*pacpredict.__all__, "__version__"])


def test_version_is_the_installed_one():
    """The version is read from the installed package, so that it is written once."""
    assert pacpredict.__version__ == version("pacpredict")


def test_unknown_name_is_an_attribute_error():
    """A misspelt name fails as it does with any module."""
    with pytest.raises(AttributeError, match="has no attribute 'Sesion'"):
        pacpredict.Sesion  # noqa: B018


def test_import_is_light():
    """Importing the package loads neither NumPy nor the compiler."""
    assert not {"numpy", "numba", "scipy", "sklearn", "rich"} & loaded_after("import pacpredict")


def test_bounds_are_light():
    """Bounds and plans are computed without NumPy."""
    code = "import pacpredict; pacpredict.success_bound(0.1); pacpredict.plan(queries=10, step_budget=0.01)"
    assert not {"numpy", "numba"} & loaded_after(code)
