"""Features on disk, by content: an input is looked at once, whatever is trained on it and however often.

There is a file of SQLite for each extractor. Its rows are keyed by the digest of the input, so that records and their
order may change. What is in it was computed from your records and is as confidential as they are: only you can read it.
A file that others may read or write, or a folder in which they may put one, is not used.
"""

import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pacpredict.exceptions import InvalidInput
from pacpredict.features.extractor import Vector
from pacpredict.files import user_cache

# Rows that are looked up at a time: SQLite takes no more parameters than this in older versions.
_KEYS_AT_ONCE = 900


def default_folder() -> Path:
    """Return where features are kept unless the user says otherwise."""
    return user_cache() / "features"


class _Foreign(Exception):
    """Says why features may not be one's own."""


@dataclass(frozen=True)
class FeatureCache:
    folder: Path

    def get(self, extractor: str, digests: Sequence[bytes]) -> dict[bytes, Vector]:
        """Return the features of those inputs that are known."""
        if not self._path(extractor).exists():
            return {}
        found: dict[bytes, Vector] = {}
        with self._open(extractor) as connection:
            for start in range(0, len(digests), _KEYS_AT_ONCE):
                keys = digests[start : start + _KEYS_AT_ONCE]
                places = ",".join("?" * len(keys))
                query = f"SELECT digest, features FROM features WHERE digest IN ({places})"  # noqa: S608  # only ?
                for digest, data in connection.execute(query, keys):
                    found[digest] = _vector(data)
        return found

    def put(self, extractor: str, features: Mapping[bytes, Vector]) -> None:
        """Keep features; those that are there already stay."""
        rows = [(digest, np.asarray(vector, "<f4").tobytes()) for digest, vector in features.items()]
        with self._open(extractor) as connection, connection:
            connection.executemany("INSERT OR IGNORE INTO features VALUES (?, ?)", rows)

    def _path(self, extractor: str) -> Path:
        return self.folder / f"{extractor}.sqlite"

    @contextmanager
    def _open(self, extractor: str) -> Iterator[sqlite3.Connection]:
        path = self._path(extractor)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Whoever can write into the folder can put a journal there, which SQLite would play.
            _check_owner(self.folder.stat(), stat.S_IWGRP | stat.S_IWOTH)
            handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)  # SQLite would let others read it
            try:
                _check_owner(os.fstat(handle), stat.S_IRWXG | stat.S_IRWXO)
            finally:
                os.close(handle)
            with closing(sqlite3.connect(path, timeout=60)) as connection:
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS features (digest BLOB PRIMARY KEY, features BLOB)"
                )
                yield connection
        except (sqlite3.DatabaseError, OSError, _Foreign) as problem:
            raise InvalidInput(
                f"the cached features in {path} cannot be used ({problem}): remove the file, or choose another folder"
            ) from problem


def _check_owner(found: os.stat_result, forbidden: int) -> None:
    what = "folder" if stat.S_ISDIR(found.st_mode) else "file"
    if found.st_uid != os.geteuid():
        raise _Foreign(f"the {what} belongs to somebody else")
    if found.st_mode & forbidden:
        may = "write into" if what == "folder" else "read or change"
        raise _Foreign(f"others may {may} the {what}: its mode is {stat.S_IMODE(found.st_mode):o}")


def _vector(data: object) -> Vector:
    """Return what an extractor can have returned."""
    if not isinstance(data, bytes) or not data or len(data) % 4:
        raise _Foreign("it holds something else than features")
    vector = np.frombuffer(data, "<f4").astype(np.float32)
    if not np.isfinite(vector).all():
        raise _Foreign("it holds features that are not finite numbers")
    return vector
