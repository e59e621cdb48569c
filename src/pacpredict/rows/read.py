"""Records in files, as columns to choose from: tables, folders of images, and arrays.

| source | columns |
|---|---|
| CSV or Parquet | its own; a column of Parquet may hold the bytes of image files |
| folder with a folder of images for each class | `image`, `file`, `label`: its class; `folder`: of those in the class |
| folder of images | `image`, bytes and path as public image data sets have them, and `file`: the name |
| image | the same, of one |
| .npz of NumPy | its arrays |
| .npy of NumPy | `image` |
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from pacpredict.exceptions import InvalidTable
from pacpredict.rows.folders import IMAGE, IMAGE_SUFFIXES, read_folder, read_images


def read_records(source: str | Path, missing: Sequence[str] = (), texts: Sequence[str] = ()) -> Any:
    """Return a frame, or a mapping of names to columns; `missing` and `texts` mean what they mean in read_table."""
    path = Path(source)
    if holds_whole_values(path):
        return read_whole(path)
    from pacpredict.tables.read import read_table  # noqa: PLC0415  # pandas takes time to import

    return read_table(path, missing, texts)


def holds_whole_values(path: Path) -> bool:
    """Tell whether something is no table: a folder, an image, or arrays."""
    return path.is_dir() or path.suffix.lower() in {".npy", ".npz", *IMAGE_SUFFIXES}


def read_whole(path: Path) -> Mapping[str, Any]:
    if path.is_dir():
        return read_folder(path)
    if not path.exists():
        raise InvalidTable(f"there is no file {path}")
    return read_images([path], path.parent) if path.suffix.lower() in IMAGE_SUFFIXES else _read_arrays(path)


def _read_arrays(path: Path) -> Mapping[str, Any]:
    try:
        with path.open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                return {IMAGE: stored}
            with stored:
                return {name: stored[name] for name in stored.files}
    except (ValueError, OSError, EOFError, BadZipFile) as problem:
        raise InvalidTable(f"{path} does not hold plain arrays of NumPy: {problem}") from problem
