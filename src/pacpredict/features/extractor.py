"""What an extractor is: from one value, by itself, to a vector."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import InvalidFeatures, PacPredictError
from pacpredict.files import as_json, sha256_of
from pacpredict.rows.kind import RowKind

Vector = npt.NDArray[np.float32]


class Extractor(ABC):
    """Gets one value at a time, so that features cannot depend on what else is asked about in the same request."""

    kind: str  # by which a config names the class
    takes: tuple[RowKind, ...]
    name: str  # for people
    needs_trust: bool = False  # whether a config can name code to run
    libraries: tuple[str, ...] = ()  # distributions whose versions can make a difference to features

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """Describe it in JSON, so that it can be built again from this and its files."""

    @classmethod
    @abstractmethod
    def from_config(cls, config: Mapping[str, Any], folder: Path) -> Self:
        """Build it again; its files are in a folder, under the names that `files` gave them."""

    def files(self) -> Mapping[str, Path]:
        """Return the files that it needs, by the names under which an artifact keeps them."""
        return {}

    @cached_property
    def identity(self) -> str | None:
        """What its features are cached by: a hash of all that decides them. None if they cannot be cached."""
        whole = hashlib.sha256(as_json(self.config()))
        for name, path in sorted(self.files().items()):
            whole.update(f"{name} {sha256_of(path)}\n".encode())
        for library in ("numpy", *self.libraries):
            with suppress(metadata.PackageNotFoundError):
                whole.update(f"{library} {metadata.version(library)}\n".encode())
        return whole.hexdigest()

    @abstractmethod
    def extract(self, value: Any) -> npt.NDArray[Any]:
        """Return the features of one image (height, width, 3) or of one text."""

    def __call__(self, value: Any, row: int = 0) -> Vector:
        """Return features that have been checked; the row is for the error."""
        try:
            found = np.asarray(self.extract(value))
            vector = found.astype(np.float64).ravel()
        except PacPredictError:
            raise
        except Exception as problem:  # whatever a function raises, and ONNX Runtime has no common class
            raise InvalidFeatures(f"row {row} (from 0): {self.name} failed: {problem}") from problem
        with np.errstate(over="ignore"):
            single = vector.astype(np.float32)
        if not np.isfinite(single).all():
            raise InvalidFeatures(
                f"row {row} (from 0): {self.name} returned a feature that is not a finite number"
            )
        if single.size == 0 or found.ndim > 2 or (found.ndim == 2 and len(found) != 1):
            raise InvalidFeatures(
                f"row {row} (from 0): {self.name} must return one vector for one value; got shape {found.shape}"
            )
        return single

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was opened: it is opened again in another process."""
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}
