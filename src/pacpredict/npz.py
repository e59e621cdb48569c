"""Named arrays as bytes: NumPy's npz without pickles. The same arrays give the same bytes."""

import io
from collections.abc import Mapping
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import InvalidModel

Arrays = dict[str, npt.NDArray[Any]]


def to_bytes(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]  # its last parameter is a boolean, never one of ours
    return stream.getvalue()


def from_bytes(data: bytes) -> Arrays:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (ValueError, OSError, EOFError, KeyError, BadZipFile) as problem:
        raise InvalidModel(f"this is not an npz file of plain arrays: {problem}") from problem
