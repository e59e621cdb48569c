"""What is published: built, looked at, installed into an empty environment, and used there."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

import pacpredict
from pacpredict.core.compiled import cache_of
from pacpredict.core.release import answer_votes
from pacpredict.kernels import compile_once

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A source distribution, and a wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    (path,) = built.glob("*.whl")
    return path


def test_metadata_is_complete(built, wheel):
    """The index takes it, shows the README, and says who it is for and what it runs on."""
    run(sys.executable, "-m", "twine", "check", "--strict", *built.iterdir())
    with zipfile.ZipFile(wheel) as files:
        (name,) = [name for name in files.namelist() if name.endswith(".dist-info/METADATA")]
        about = message_from_string(files.read(name).decode())
    assert about["Version"] == PROJECT["version"]
    for field in (
        "Author",
        "Description-Content-Type",
        "Keywords",
        "License-Expression",
        "Requires-Python",
        "Summary",
    ):
        assert about[field], field
    assert about.get_payload().startswith("# pacpredict")


def test_wheel_has_the_package_and_nothing_else(wheel):
    """Every file of the package, the licence and the marker of types; no test, no cache."""
    source = ROOT / "src"
    ours = {
        str(path.relative_to(source))
        for path in (source / "pacpredict").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as files:
        names = {name for name in files.namelist() if ".dist-info/" not in name}
        assert any(name.endswith("licenses/LICENSE") for name in files.namelist())
    assert names == ours
    assert "pacpredict/py.typed" in names


def test_source_distribution_can_be_tested(built):
    """It has what `make test` needs."""
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    assert {
        "Makefile",
        "constraints.txt",
        "tests/test_package.py",
        "docs/README.md",
        "README.md",
        "LICENSE",
    } <= names


def test_changelog_tells_of_this_version():
    """The newest heading is the version that is built."""
    headings = [line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## [")]
    assert headings[0].startswith(f"## [{PROJECT['version']}]")


def test_installs_into_an_empty_environment_and_serves(wheel, tmp_path):
    """`pip install pacpredict[serve]` brings all that the demo needs: fit, serve, ask, guarantee."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    run(
        *(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile"),
        *("--constraint", ROOT / "constraints.txt", f"{wheel}[serve]"),
    )  # fmt: skip
    (installed,) = home.glob("lib/python*/site-packages/pacpredict")
    take_compiled(installed)
    apart = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = run(
        *(home / "bin" / "pacpredict", "demo", "--once", "--json", "--models", "16"), cwd=tmp_path, env=apart
    )
    said = json.loads(done)
    assert said["asked"] == said["queries"] > 100
    assert said["bounds"]["membership"]["success"] < 0.511
    assert (
        run(python, "-m", "pacpredict", "--version", cwd=tmp_path, env=apart)
        == f"pacpredict {PROJECT['version']}\n"
    )
    assert not (installed.parent / "pytest").exists()


def take_compiled(installed):
    """Give an installation the kernels that are compiled here: the same sources, so that it need not do it again."""
    compile_once()
    here = Path(pacpredict.__file__).parent
    assert cache_of(answer_votes) == here / "core" / "__pycache__"
    for part in ("core", "votes"):
        folder = installed / part / "__pycache__"
        folder.mkdir(exist_ok=True)
        for path in (here / part / "__pycache__").iterdir():
            if path.suffix in (".nbi", ".nbc", ".compiled"):
                shutil.copy2(path, folder)
