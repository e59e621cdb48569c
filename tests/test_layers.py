"""Who may import whom, read from the source without running it."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "pacpredict"

# From the mathematics to the edges; a module imports from its own row and from the rows above it.
LAYERS = (
    {"core"},
    {"promise"},
    {"mechanism"},
    {"tables"},
    {"rows"},
    {"features"},
    {"votes"},
    {"learners"},
    {"training"},
    {"evaluation"},
    {"artifact"},
    {"ledger"},
    {"curator"},
    {"deployment"},
    {"estimator"},
    {"pages"},
    {"report"},
    {"audit", "distill", "baselines"},
    {"kernels"},
    {"serving", "demo", "cli", "experiments"},
    {"__init__", "__main__"},  # the public names; whoever imports them imports the whole package
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
# Leaves: they import nothing of the package but each other.
USABLE_BY_ALL = {"defaults", "exceptions", "files", "npz", "show", "types", "written"}

# What reads files, clocks, the environment or randomness that nobody passed in.
IMPURE = {
    *(
        "asyncio",
        "builtins",
        "datetime",
        "fileinput",
        "glob",
        "io",
        "logging",
        "multiprocessing",
        "os",
        "pathlib",
    ),
    *(
        "pickle",
        "platform",
        "random",
        "secrets",
        "shutil",
        "signal",
        "socket",
        "sqlite3",
        "subprocess",
        "sys",
    ),
    *("tempfile", "time", "urllib", "uuid", "joblib", "rich", "sklearn"),
}
# The compiler's cache depends on the sources and announces itself.
EXEMPT_IN_CORE = {"compiled.py": {"pathlib", "sys"}}
# Simulations ask for the number of cores, rounding for the largest float.
PURE_ATTRIBUTES = {"os": {"cpu_count"}, "sys": {"float_info"}}
IMPURE_CALLS = {"open", "print", "input", "exec", "eval"}


def modules():
    return sorted(SOURCE.rglob("*.py"))


def layer_of(path):
    part = path.relative_to(SOURCE).parts[0]
    return part.removesuffix(".py")


def imports(tree):
    """Yield each imported module as a dotted name and, for `from x import y`, also x.y."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            if node.module == "pacpredict":
                yield from ((f"pacpredict.{alias.name}", node.lineno) for alias in node.names)
            else:
                yield node.module, node.lineno


def upward_imports(layer, tree):
    for name, line in imports(tree):
        package, _, rest = name.partition(".")
        if package != "pacpredict":
            continue
        target = rest.split(".")[0]
        target = target if target in RANK or target in USABLE_BY_ALL else "__init__"
        if target not in USABLE_BY_ALL and (layer in USABLE_BY_ALL or RANK[target] > RANK[layer]):
            yield f"line {line}: {layer} imports {name}"


def impurities(tree, exempt):
    impure = IMPURE - exempt
    for name, line in imports(tree):
        if name.split(".")[0] in impure and name not in PURE_ATTRIBUTES:
            yield f"line {line}: imports {name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in impure:
            yield f"line {node.lineno}: imports from {node.module}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
            yield f"line {node.lineno}: calls {node.func.id}"
        if isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            if owner in impure and node.attr not in PURE_ATTRIBUTES.get(owner, ()):
                yield f"line {node.lineno}: uses {owner}.{node.attr}"
            # Classes such as np.random.Generator take a seed; functions use or make hidden state.
            if owner in {"np.random", "numpy.random"} and not node.attr[0].isupper():
                yield f"line {node.lineno}: uses {owner}.{node.attr}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_upward_import(path):
    """A module imports from its own layer and those below, never from its callers."""
    layer = layer_of(path)
    assert layer in RANK.keys() | USABLE_BY_ALL, f"give {layer} a place among the layers"
    assert not list(upward_imports(layer, ast.parse(path.read_text())))


@pytest.mark.parametrize("path", sorted((SOURCE / "core").rglob("*.py")), ids=lambda path: path.name)
def test_core_is_pure(path):
    """The mathematics does no I/O, looks at no clock and uses no random state but what it is given."""
    assert not list(impurities(ast.parse(path.read_text()), EXEMPT_IN_CORE.get(path.name, set())))


@pytest.mark.parametrize(
    ("layer", "line", "is_upward"),
    [
        ("core", "from pacpredict.mechanism.budget import Budget", True),
        ("core", "import pacpredict.cli", True),
        ("core", "from pacpredict import Session", True),
        ("core", "def f():\n    from pacpredict.ledger import sqlite", True),
        ("exceptions", "from pacpredict.core import bounds", True),
        ("mechanism", "from pacpredict.core.bounds import plan", False),
        ("mechanism", "from pacpredict import exceptions", False),
        ("cli", "from pacpredict.serving import app", False),
        ("core", "import numpy", False),
    ],
)
def test_upward_imports_are_noticed(layer, line, is_upward):
    """The walk sees every form of import, also inside functions."""
    assert bool(list(upward_imports(layer, ast.parse(line)))) is is_upward


@pytest.mark.parametrize(
    ("line", "is_impure"),
    [
        ("import time", True),
        ("from random import random", True),
        ("import os.path", True),
        ("import os; os.urandom(8)", True),
        ("from sys import stdout", True),
        ("import os; os.cpu_count()", False),
        ("import sys; sys.float_info.max", False),
        ("open('x')", True),
        ("np.random.default_rng()", True),
        ("np.random.seed(1)", True),
        ("np.random.Generator(np.random.SFC64(seed))", False),
        ("import math", False),
    ],
)
def test_impurities_are_noticed(line, is_impure):
    """The walk sees clocks, files and hidden random state."""
    assert bool(list(impurities(ast.parse(line), set()))) is is_impure


def test_exemptions_are_used():
    """An exemption that no module needs any more is deleted."""
    for name, exempt in EXEMPT_IN_CORE.items():
        used = {
            module.split(".")[0] for module, _ in imports(ast.parse((SOURCE / "core" / name).read_text()))
        }
        assert exempt <= used
