"""Public data sets as files: where they are, or from where they are fetched once."""

import hashlib
import os
import tarfile
import urllib.request
from pathlib import Path

from pacpredict.exceptions import InvalidTable
from pacpredict.files import user_cache, write_whole

_SECONDS = 600


def find(*names: str) -> Path | None:
    """Return the first of some files or folders in the directory that PACPREDICT_DATA names, or in the user's cache."""
    given = os.environ.get("PACPREDICT_DATA")
    homes = [Path(given), user_cache()] if given else [user_cache()]
    paths = (home / name for home in homes for name in names)
    return next((path for path in paths if path.exists()), None)


def fetch(url: str, md5: str, name: str) -> Path:
    """Fetch a file, or what is in an archive, into the user's cache; its MD5 must be the published one."""
    path = user_cache() / name
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as reply:  # noqa: S310  # https, from constants
            data = reply.read()
    except OSError as problem:
        raise InvalidTable(
            f"{name} could not be fetched from {url} ({problem}); put it into the directory that PACPREDICT_DATA names"
        ) from problem
    if hashlib.md5(data, usedforsecurity=False).hexdigest() != md5:
        raise InvalidTable(f"what {url} sent is not the published file: its MD5 differs")
    path.parent.mkdir(parents=True, exist_ok=True)
    if url.endswith(".tar.gz"):
        archive = path.with_suffix(".tar.gz")
        write_whole(archive, data)
        with tarfile.open(archive) as members:
            members.extractall(path.parent, filter="data")
        archive.unlink()
    else:
        write_whole(path, data)
    return path
