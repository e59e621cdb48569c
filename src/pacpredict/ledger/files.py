"""Small files that are there whole or not at all, whatever happens while they are written."""

import os
import secrets
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Write a file, mode 0600, so that a reader or a power cut finds the old content or the new."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
    try:
        handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            os.write(handle, content)
            os.fsync(handle)
        finally:
            os.close(handle)
        draft.replace(path)
        sync_directory(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def remove_drafts(path: Path) -> None:
    """Remove what killed processes left; one that is still at work fails, and writes again later."""
    for draft in path.parent.glob(f"{path.name}.*.new"):
        draft.unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    """Make a new name in a directory survive a power cut."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
