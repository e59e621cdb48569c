"""docs/cli.md has every command and every option; tests/test_docs.py runs its examples."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pacpredict.cli import COMMANDS

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```console\n\$ pacpredict (.*)\n((?:.*\n)*?)```", PAGE)
PROGRAM = shutil.which("pacpredict", path=Path(sys.executable).parent) or "pacpredict"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_command_is_documented(command):
    """Each registered command has a section and an example."""
    assert f"## pacpredict {command.name}\n" in PAGE
    assert any(line.startswith(f"{command.name} ") for line, _ in EXAMPLES)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_options_are_documented(command):
    """Each option of a command is in its section."""
    section = PAGE.split(f"## pacpredict {command.name}\n")[1].split("\n## ")[0]
    usage = subprocess.run(
        [PROGRAM, *command.name.split(), "--help"], capture_output=True, text=True, check=True
    ).stdout
    for option in set(re.findall(r"--[a-z-]+", usage)) - {"--help"}:
        assert f"`{option}" in section, option
