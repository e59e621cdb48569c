"""The documentation is executed: code runs, commands print what is written, links and files exist."""

import io
import os
import re
import shlex
import subprocess
import sys
from contextlib import ExitStack, redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
from programs import occupied

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE_SPAN = re.compile(r"`([^`\n]+)`")
ADDRESS = re.compile(r"(?<=http://127\.0\.0\.1:)(\d+)")
FILE = re.compile(r"[\w.-]+(?:/[\w.-]+)*\.(?:py|md|toml|txt|json|yml)|(?:[\w.-]+/)+")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


class Block(NamedTuple):
    language: str
    body: str
    line: int
    follows: bool  # directly after the block before it


def blocks(page):
    text = page.read_text()
    end = None
    for match in BLOCK.finditer(text):
        follows = end is not None and not text[end : match.start()].strip()
        end = match.end()
        yield Block(match[1], match[2], text[: match.start()].count("\n") + 2, follows)


def prose(page):
    return BLOCK.sub("", page.read_text())


def commands(block):
    """Yield each line after `$ ` in a console block, with the output that is written below it."""
    for part in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@each_page
def test_page_runs(page, tmp_path, monkeypatch):
    """From top to bottom in one folder, Python blocks run and commands print what is written below them."""
    monkeypatch.chdir(tmp_path)
    with ExitStack() as background:
        for port in set(ADDRESS.findall(page.read_text())):
            background.enter_context(occupied(int(port)))
        run_page(page, tmp_path, background)


def run_page(page, folder, background):
    namespace, printed, ports = {"__name__": "docs"}, None, {}
    for block in blocks(page):
        if block.language == "python":
            output = io.StringIO()
            with redirect_stdout(output):
                exec(compile("\n" * (block.line - 1) + block.body, str(page), "exec"), namespace)
            printed = output.getvalue()
        elif block.language == "text" and block.follows and printed is not None:
            assert_printed(printed, block.body)
            printed = None
        elif block.language == "console":
            for command, expected in commands(block):
                check_command(command, expected, folder, background, ports)


def check_command(command, expected, folder, background, ports):
    """Run a command and compare; `ports` has, of each that is written, the one that its server has really taken."""
    command = ADDRESS.sub(lambda found: ports.get(found[1], found[1]), command)
    program, *arguments = shlex.split(command.replace("$'", "'"))
    if program == "pacpredict" and arguments[-1] == "&":
        written = ADDRESS.search(expected)[1]
        arguments[-1:] = ["--port", "0"]  # the last one counts
        announced = start(Path(sys.executable).with_name("pacpredict"), *arguments, background=background)
        ports[written] = ADDRESS.search(announced)[1]
        assert_printed(announced, ADDRESS.sub(ports[written], expected))
    elif program == "curl":
        arguments = [argument.replace("\\n", "\n") for argument in arguments]  # as the shell reads $'...'
        assert_printed(run(program, *arguments, cwd=folder).stdout, expected)
    elif program == "pacpredict":
        done = run(Path(sys.executable).with_name("pacpredict"), *arguments, cwd=folder)
        assert_printed(done.stdout, expected)
        fails = any(line.startswith("pacpredict: error:") for line in lines(expected))
        assert (done.returncode == 0) is not fails
    elif program == "make":
        assert not expected
        assert set(arguments) <= make_targets()
    elif program == "python" and arguments[0] == "-m":
        assert find_spec(arguments[1]) is not None
    else:
        assert program == "python", f"teach this test to check {command!r}"
        assert (ROOT / arguments[0]).is_file()


def assert_printed(printed, expected):
    """Compare, leaving out that kernels are compiled, once per installation.

    Three dots stand for anything (a date, a hash, what chance decides), and on a line of their own for any lines.
    """
    printed = "".join(f"{line}\n" for line in lines(printed) if "compiling numerical kernels" not in line)
    patterns = [
        "(.*\n)*" if line == "..." else re.escape(line).replace(re.escape("..."), ".*") + "\n"
        for line in lines(expected)
    ]
    assert re.fullmatch("".join(patterns), printed), printed


@each_page
def test_links_lead_somewhere(page):
    """Every relative link names a file that exists, and its anchor a heading of it."""
    for target in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), target
        headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", file.read_text()), re.MULTILINE) if anchor else []
        assert not anchor or anchor in map(slug, headings), target


@each_page
def test_named_files_exist(page):
    """Every file or folder in a code span exists, seen from the project, the page or the package."""
    for span in CODE_SPAN.findall(prose(page)):
        if FILE.fullmatch(span):
            homes = (ROOT, page.parent, ROOT / "src" / "pacpredict")
            assert any((home / span).exists() for home in homes), span


@each_page
def test_no_machine_is_named(page):
    """Pages are about the project: no absolute path of somebody's machine."""
    assert not re.findall(r"(?<![\w.])/(?:home|root|tmp|work|Users|opt|mnt)\b", page.read_text())


def test_every_page_is_in_the_index():
    """docs/README.md links to every other page of the folder."""
    index = set(LINK.findall((ROOT / "docs" / "README.md").read_text()))
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"} <= index


def test_output_of_the_confidence_levels_is_quoted_as_it_is():
    """docs/theory.md shows the file that the example wrote."""
    output = (ROOT / "examples" / "confidence_levels.txt").read_text()
    assert output in (ROOT / "docs" / "theory.md").read_text()


def start(*command, background):
    """Start what goes on in the background, until the page ends, and return what it prints first."""
    process = background.enter_context(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
    background.callback(process.kill)
    announced = process.stderr.readline()
    if "compiling" in announced:
        announced = process.stderr.readline()
    return announced


def run(*command, cwd):
    return subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # as a terminal shows it
        text=True,
        check=False,
        timeout=120,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"},
    )


def make_targets():
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def lines(text):
    return [line.rstrip() for line in text.strip("\n").splitlines()]
