"""The documentation as a site: every page, link, anchor and picture of it, and nothing from elsewhere."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[1]


class Page(HTMLParser):
    """What a page of the site has to jump to, links to, and loads."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loaded = set(), set(), set()
        self.lists = 0
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        self.lists += tag in ("ul", "ol")
        if tag == "a" and given.get("href"):
            self.links.add(given["href"])
        elif tag in ("img", "script", "link", "source", "iframe"):
            self.loaded |= {given[name] for name in ("src", "href") if given.get(name)}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` does: whatever the generator warns of is an error."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return {path.relative_to(folder).as_posix(): Page(path) for path in folder.rglob("*.html")}, folder


def test_every_page_is_there(site):
    """Each file of docs/ is a page, and each is in the navigation of the first."""
    pages, _ = site
    names = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"README"}
    assert {f"{name}.html" for name in names} <= pages.keys()
    assert {f"{name}.html" for name in names} <= pages["index.html"].links


def test_links_lead_somewhere(site):
    """Every link within the site names a file of it, and an anchor of that file."""
    pages, folder = site
    for name, page in pages.items():
        if name == "404.html":  # its addresses are seen from the root of a host
            continue
        for link in page.links | page.loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (folder / name).parent / unquote(parts.path) if parts.path else folder / name
            target = target.resolve()
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), f"{name}: {link}"
            if parts.fragment and target.suffix == ".html":
                anchors = pages[target.relative_to(folder.resolve()).as_posix()].anchors
                assert unquote(parts.fragment) in anchors, f"{name}: {link}"


def test_nothing_comes_from_elsewhere(site):
    """No page loads anything from another host: no font, no script, no picture."""
    pages, _ = site
    for name, page in pages.items():
        assert not [link for link in page.loaded if urlsplit(link).netloc], name


def test_lists_are_lists(site):
    """Lists that follow a line of text, as these pages write them, are lists on the site, too."""
    _, folder = site
    for path in folder.glob("*.html"):
        text = re.sub(r"<(pre|code)\b.*?</\1>", "", path.read_text(), flags=re.DOTALL)
        assert not re.search(r"<p>[^<]*\n- ", text), path.name


def test_pictures_say_what_they_show():
    """Drawings have a title, a description, and colours for light and dark."""
    for path in (ROOT / "docs" / "images").glob("*.svg"):
        text = path.read_text()
        for part in ("<title", "<desc", "prefers-color-scheme:dark", 'role="img"'):
            assert part in text, path.name
