"""Records in files, as columns to choose from: tables, folders of images, and arrays.

| source | columns |
|---|---|
| CSV or Parquet | its own; a column of Parquet may hold the bytes of image files |
| folder with a folder of images for each class | `image`, `file`, and `label`: the name of its folder |
| folder of images | `image`, bytes and path as public image data sets have them, and `file`: the name |
| .npz of NumPy | its arrays |
| .npy of NumPy | `image` |
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from pacpredict.exceptions import InvalidTable

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
IMAGE, LABEL = "image", "label"  # columns of a folder


def read_records(source: str | Path, missing: Sequence[str] = (), texts: Sequence[str] = ()) -> Any:
    """Return a frame, or a mapping of names to columns; `missing` and `texts` mean what they mean in read_table."""
    path = Path(source)
    if holds_whole_values(path):
        return read_whole(path)
    from pacpredict.tables.read import read_table  # noqa: PLC0415  # pandas takes time to import

    return read_table(path, missing, texts)


def holds_whole_values(path: Path) -> bool:
    """Tell whether something is no table: a folder, or arrays."""
    return path.is_dir() or path.suffix.lower() in {".npy", ".npz"}


def read_whole(path: Path) -> Mapping[str, Any]:
    return _read_folder(path) if path.is_dir() else _read_arrays(path)


def _read_folder(path: Path) -> Mapping[str, Any]:
    folders = sorted(folder for folder in path.iterdir() if folder.is_dir())
    files = {folder: _image_files(folder) for folder in folders or [path]}
    if empty := [folder for folder, found in files.items() if not found]:
        raise InvalidTable(f"{empty[0]} has no images; their names end in {', '.join(IMAGE_SUFFIXES)}")
    every = [file for found in files.values() for file in found]
    names = [file.relative_to(path).as_posix() for file in every]
    columns: dict[str, Any] = {
        IMAGE: [{"bytes": file.read_bytes(), "path": name} for file, name in zip(every, names, strict=True)],
        "file": names,
    }
    if folders:
        if loose := _image_files(path):
            raise InvalidTable(f"{loose[0]} is in no folder of a class; move it into one")
        columns[LABEL] = [folder.name for folder, found in files.items() for _ in found]
    return columns


def _image_files(folder: Path) -> list[Path]:
    """Return the images of a folder by name, so that their order does not depend on the file system."""
    return sorted(
        file for file in folder.iterdir() if file.suffix.lower() in IMAGE_SUFFIXES and file.is_file()
    )


def _read_arrays(path: Path) -> Mapping[str, Any]:
    try:
        with path.open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                return {IMAGE: stored}
            with stored:
                return {name: stored[name] for name in stored.files}
    except FileNotFoundError as problem:
        raise InvalidTable(f"there is no file {path}") from problem
    except (ValueError, OSError, EOFError, BadZipFile) as problem:
        raise InvalidTable(f"{path} does not hold plain arrays of NumPy: {problem}") from problem
