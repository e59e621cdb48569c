"""Files that are either whole or not there."""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pacpredict.exceptions import InvalidArtifact

PRIVATE = 0o600
_READ_AT_ONCE = 1 << 20


def write_whole(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file so that a crash leaves the old one or the new one, and the new one survives a power cut."""
    handle, name = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.name}."
    )  # mode 0600 from its first byte on
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make sure that names in a directory are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_READ_AT_ONCE):
            digest.update(block)
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
