"""Where commands write: nothing is replaced unasked, and what cannot be written is said before anything is done."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from pacpredict.exceptions import InvalidInput

# What every artifact has, of any version, and nothing else has together.
_OF_ARTIFACTS = ("manifest.json", "subsets.npy")


@contextmanager
def output_file(path: Path, *, force: bool) -> Iterator[IO[bytes]]:
    """Give a stream whose content becomes the file at the end, whole, or not at all.

    A terminal, a pipe or another device is written to as it is. Of a symbolic link, what it leads to is replaced.
    """
    from pacpredict.files import whole_file  # noqa: PLC0415  # hashes and JSON, which help does not need

    is_device = _is_device(path)
    target = path if is_device else check_file(path, force=force)
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(target.open("wb") if is_device else whole_file(target))
        except OSError as problem:
            raise InvalidInput(f"{path} cannot be written: {problem.strerror}") from problem
        yield stream
        try:
            stack.close()
        except OSError as problem:
            problem.filename = str(path)  # a full disk does not say which
            raise


def check_file(path: Path, *, force: bool) -> Path:
    """Return where a file would really be, unless it cannot be there, or is there already and nobody said `force`."""
    target = path.resolve()
    if target.is_dir():
        raise InvalidInput(f"{path} is a folder: name a file in it")
    if not target.parent.is_dir():
        raise InvalidInput(f"{path} cannot be written: there is no folder {path.parent}")
    check_outside(path)
    if target.is_file() and not force:
        raise InvalidInput(f"{path} exists already: choose another name, or say --force to replace it")
    return target


def _is_device(path: Path) -> bool:
    """Tell what must never be renamed over; /dev/stdout is a link to a file where the output is redirected to one."""
    is_own_output = path.is_symlink() and path.absolute().parts[1] in {"dev", "proc"}
    return is_own_output or (path.exists() and not path.is_file() and not path.is_dir())


def check_new_folder(path: Path) -> None:
    """Refuse a place where no folder can be made, before hours are spent on what shall be in it."""
    if os.path.lexists(path):
        raise InvalidInput(
            f"{path} exists already: choose another name. If it is a deployment, go on with it by `pacpredict serve`: "
            "another fit is a further deployment, with a secret and a budget of its own"
        )
    check_outside(path)
    above = next(folder for folder in path.absolute().parents if os.path.lexists(folder))
    try:
        os.rmdir(tempfile.mkdtemp(prefix=".pacpredict-", dir=above))  # noqa: PTH106  # made by mkdtemp
    except OSError as problem:
        raise InvalidInput(f"{path} cannot be made: {above}: {problem.strerror}") from problem


def check_outside(path: Path) -> None:
    """Refuse a place in any artifact: with a file of somebody else in it, it would not open any more."""
    for folder in path.resolve().parents:
        if all((folder / name).is_file() for name in _OF_ARTIFACTS):
            raise InvalidInput(
                f"{path} is in the artifact {folder.name}, which holds nothing but its own files; choose another place"
            )
