"""docs/python.md names every public name, with the parameters that it has."""

import inspect
import re
from itertools import pairwise
from pathlib import Path

import pytest

import pacpredict

PAGE = (Path(__file__).parents[1] / "docs" / "python.md").read_text()
# `name(parameter, ...)` or `.method(...)` or `name` alone.
ENTRY = re.compile(r"`(\.?)(\w+)(?:\(([\w, ]*)\))?`")
WITH_METHODS = ("PrivateClassifier", "Deployment", "Session")


def entries():
    """Return the parameters of each entry, None where there are none given, by owner and name."""
    found, owner, lines = {}, "", PAGE.splitlines()
    for line, below in pairwise(lines):
        if (line.startswith("`") and below.startswith(": ")) or line.startswith("- `."):
            for dot, name, given in ENTRY.findall(line.split("`: ")[0] + "`"):
                owner = owner if dot else name
                found[owner if dot else "", name] = [each for each in given.split(", ") if each]
    return found


def parameters(function):
    named = list(inspect.signature(function).parameters)
    return [name for name in named if name != "self"]


@pytest.mark.parametrize("name", sorted(pacpredict.__all__))
def test_public_names_are_on_the_page(name):
    """Each has an entry, and functions and classes have their parameters in order."""
    assert ("", name) in entries(), "add it to docs/python.md"
    thing = getattr(pacpredict, name)
    if name not in ("Ledger", "PacPredictError"):
        assert entries()["", name] == parameters(thing)


@pytest.mark.parametrize("owner", WITH_METHODS)
def test_methods_are_on_the_page(owner):
    """So are the methods of what users hold in their hands."""
    kind = getattr(pacpredict, owner)
    own = {
        name: method
        for name, method in inspect.getmembers(kind, callable)
        # Those of scikit-learn's metadata routing are made when the class is.
        if not re.match("_|set_.*_request", name)
        and getattr(method, "__module__", "").startswith("pacpredict")
    }
    listed = {name: given for (of, name), given in entries().items() if of == owner}
    assert listed == {name: parameters(method) for name, method in own.items()}


def test_nothing_else_is_on_the_page():
    """What is no longer there is no longer described."""
    assert {name for owner, name in entries() if not owner} <= set(pacpredict.__all__)
