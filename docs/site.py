"""What the generator of the site needs beside the pages, which are written to be read where they are.

Pages link to files of the project beside this folder. These become pages of the site, too, so that it is complete and
needs no other address; links are bent to them. And a list that follows a line of text gets the empty line that this
generator, other than those of code hosts, wants before it.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(\]\()([^)\s:#]+)((?:#[^)\s]*)?\))")  # relative ones, without and with an anchor
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
TIGHT_LIST = re.compile(r"^(?![-*\s#|]|\d+\. )(.+)\n(?=[-*] |1\. )", re.MULTILINE)
LANGUAGES = {
    ".py": "python",
    ".yml": "yaml",
    ".yaml": "yaml",
    ".toml": "toml",
    ".json": "json",
    ".service": "ini",
}


def on_files(files: Files, config: Any) -> Files:
    """Add every file of the project that a page links to, and those that these link to."""
    waiting = [Path(file.abs_src_path) for file in files.documentation_pages()]
    added: set[Path] = set()
    while waiting:
        for found in _linked(waiting.pop()) - added:
            added.add(found)
            content = found.read_text()
            if found.suffix == ".md":
                waiting.append(found)
            else:
                content = f"# {found.name}\n\n```{LANGUAGES.get(found.suffix, 'text')}\n{content}```\n"
            files.append(File.generated(config, _place(found), content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    here = page.file.src_uri

    def bend(link: "re.Match[str]") -> str:
        target = _resolve(_source(here), link[2])
        return f"{link[1]}{posixpath.relpath(_place(target), posixpath.dirname(here) or '.')}{link[3]}"

    return _outside_fences(lambda text: TIGHT_LIST.sub(r"\1\n\n", LINK.sub(bend, text)), markdown)


def _linked(page: Path) -> set[Path]:
    """Return the files outside this folder that a page links to."""
    targets = {_resolve(page, target) for _, target, _ in LINK.findall(FENCE.sub("", page.read_text()))}
    return {target for target in targets if not target.is_relative_to(ROOT / "docs") and target.is_file()}


def _resolve(page: Path, target: str) -> Path:
    return Path(posixpath.normpath(page.parent / target))


def _place(path: Path) -> str:
    """Return where a file of the project is among the sources of the site."""
    if path.is_relative_to(ROOT / "docs"):
        return path.relative_to(ROOT / "docs").as_posix()
    name = path.relative_to(ROOT).as_posix()
    return f"project/{name}" if path.suffix == ".md" else f"project/{name}.md"


def _source(place: str) -> Path:
    """Return the file that is at a place among the sources of the site."""
    if not place.startswith("project/"):
        return ROOT / "docs" / place
    source = ROOT / place.removeprefix("project/")
    return source if source.exists() else source.with_suffix("")


def _outside_fences(change: Any, text: str) -> str:
    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts += [change(text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(text[end:])])
