"""Shells complete commands, options and files, by the script that the program prints."""

import subprocess
import sys

import pytest

# What bash does when somebody presses Tab, without a terminal.
PRESS_TAB = """
source /dev/stdin
cd "$1" && shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
complete_with=$(complete -p pacpredict | sed 's/.* -F \\([^ ]*\\).*/\\1/')
"$complete_with" pacpredict "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def script(shell):
    done = subprocess.run(
        [sys.executable, "-m", "pacpredict", "completion", shell],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return done.stdout


@pytest.fixture(scope="module")
def bash():
    return script("bash")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("pacpredict le", {"ledger"}),
        ("pacpredict ledger ver", {"verify"}),
        ("pacpredict serve --allow", {"--allow-host", "--allow-origin"}),
        ("pacpredict fit --construction ", {"balanced", "half-partitions"}),
        ("pacpredict show cen", {"census.pac"}),
        ("pacpredict completion z", {"zsh"}),
    ],
)
def test_tab_in_bash(bash, tmp_path, line, found):
    """Commands, commands of groups, options, their values and files, as bash itself finds them."""
    (tmp_path / "census.pac").mkdir()
    done = subprocess.run(
        ["bash", "-c", PRESS_TAB, "bash", tmp_path, *line.split(" ")],
        input=bash, capture_output=True, text=True, check=True, timeout=30,
    )  # fmt: skip
    assert set(done.stdout.split()) == found


@pytest.mark.parametrize("shell", ["zsh", "fish", "tcsh"])
def test_other_shells_get_a_script_that_knows_the_commands(shell):
    """Each names the program and its commands."""
    said = script(shell)
    for name in ("pacpredict", "serve", "predict", "ledger"):
        assert name in said
