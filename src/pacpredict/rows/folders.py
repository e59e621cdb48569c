"""Folders of images: with a folder for each class, and perhaps one for each person in it.

Whatever begins with a dot is of the system, not of the owner: macOS leaves `._NAME.jpg` beside NAME.jpg.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pacpredict.exceptions import InvalidTable
from pacpredict.show import show_some

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
IMAGE, LABEL, FOLDER = "image", "label", "folder"  # columns of a folder
# Of Windows, in folders that were looked at.
_OF_THE_SYSTEM = {"thumbs.db", "ehthumbs.db", "desktop.ini"}


def read_folder(path: Path) -> Mapping[str, Any]:
    classes = sorted(entry for entry in path.iterdir() if entry.is_dir() and not _is_hidden(entry))
    files = {folder: _image_files(folder) for folder in classes or [path]}
    if empty := [folder for folder, found in files.items() if not found]:
        raise InvalidTable(
            f"{empty[0]} has no images; their names end in {', '.join(IMAGE_SUFFIXES)}. "
            "Remove it if it is no class"
        )
    columns = read_images([file for found in files.values() for file in found], path)
    if not classes:
        return columns
    if loose := [entry for entry in sorted(path.iterdir()) if _is_image(entry)]:
        raise InvalidTable(f"{loose[0]} is in no folder of a class; move it into one")
    within = [file.relative_to(folder).parts[:-1] for folder, found in files.items() for file in found]
    if any(within):
        columns[FOLDER] = [parts[0] if parts else None for parts in within]
    columns[LABEL] = [folder.name for folder, found in files.items() for _ in found]
    return columns


def read_images(files: Sequence[Path], home: Path) -> dict[str, Any]:
    """Return the columns `image` and `file` of some files, which are named as seen from a folder."""
    names = [file.relative_to(home).as_posix() for file in files]
    images = [{"bytes": file.read_bytes(), "path": name} for file, name in zip(files, names, strict=True)]
    return {IMAGE: images, "file": names}


def left_out(path: Path) -> list[str]:
    """Say which files of a folder are not taken as images, and why; those of the system are nobody's records."""
    others = [
        file.relative_to(path).as_posix()
        for file in _files(path)
        if not _is_image(file) and file.name.lower() not in _OF_THE_SYSTEM
    ]
    if not others:
        return []
    files = "1 file is" if len(others) == 1 else f"{len(others):,} files are"
    return [
        f"{files} left out of {path}, with names that do not end in {', '.join(IMAGE_SUFFIXES)}: {show_some(others)}"
    ]


def _image_files(folder: Path) -> list[Path]:
    return [file for file in _files(folder) if _is_image(file)]


def _files(folder: Path) -> Iterator[Path]:
    """Return all files within by name, so that their order does not depend on the file system."""
    for entry in sorted(folder.iterdir()):
        if _is_hidden(entry):
            continue
        if entry.is_dir() and not entry.is_symlink():  # a link may lead back
            yield from _files(entry)
        else:
            yield entry


def _is_image(file: Path) -> bool:
    return file.suffix.lower() in IMAGE_SUFFIXES and not _is_hidden(file) and file.is_file()


def _is_hidden(entry: Path) -> bool:
    return entry.name.startswith(".")
