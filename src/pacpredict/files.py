"""Files that are either whole or not there."""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from pacpredict.exceptions import InvalidArtifact

PRIVATE = 0o600
DRAFT_SUFFIX = ".new"
_READ_AT_ONCE = 1 << 20


def user_cache() -> Path:
    """Return the folder where this program may keep what can be had again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pacpredict"


def write_whole(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file so that a reader, a crash or a power cut finds the old one or the new one."""
    with whole_file(path, mode) as stream:
        stream.write(data)


@contextmanager
def whole_file(path: Path, mode: int = 0o644) -> Iterator[IO[bytes]]:
    """Give a stream for a file that appears, or replaces the old one, when all of it is on disk."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}{DRAFT_SUFFIX}")
    try:
        handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE)
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    sync_directory(path.parent)


def remove_drafts(path: Path) -> None:
    """Remove what killed processes left; one that is still at work fails, and writes again later."""
    for draft in path.parent.glob(f"{path.name}.*{DRAFT_SUFFIX}"):
        draft.unlink(missing_ok=True)


def sync_directory(path: Path) -> None:
    """Make new names in a directory survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while block := stream.read(_READ_AT_ONCE):
                digest.update(block)
    except PermissionError as problem:
        raise InvalidArtifact(f"{path} cannot be read: only its owner may open this artifact") from problem
    return digest.hexdigest()


def as_json(values: Mapping[str, Any]) -> bytes:
    """Return JSON whose floats read back as the same floats; the same values give the same bytes."""
    return (json.dumps(values, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def read_json(path: Path) -> dict[str, Any]:
    """Return the object of a JSON file, or say which file is not one."""
    try:
        values = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as problem:
        raise InvalidArtifact(f"{path.name} is not JSON: it is damaged or was edited") from problem
    if not isinstance(values, dict):
        raise InvalidArtifact(f"{path.name} does not hold a JSON object: it is damaged or was edited")
    return values
