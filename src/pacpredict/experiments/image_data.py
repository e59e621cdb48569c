"""CIFAR-10 and CIFAR-100 (Krizhevsky, 2009), from the official binary files."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import InvalidTable
from pacpredict.experiments.public_files import fetch, find

_SIDE = 32
_PIXELS = 3 * _SIDE * _SIDE


class Split(NamedTuple):
    """The records to train on and those to ask about, as they were published."""

    records: Any
    labels: npt.NDArray[Any]
    asked: Any
    truth: npt.NDArray[Any]


class _Cifar(NamedTuple):
    folder: str
    archive: str
    md5: str
    train: tuple[str, ...]
    test: str
    names: str
    n_labels: int  # bytes before the pixels; the last of them counts


_SOURCE = "https://www.cs.toronto.edu/~kriz"
CIFAR10 = _Cifar(
    "cifar-10-batches-bin",
    "cifar-10-binary.tar.gz",
    "c32a1d4ab5d03f1284b67883e8d87530",
    tuple(f"data_batch_{i}.bin" for i in range(1, 6)),
    "test_batch.bin",
    "batches.meta.txt",
    1,
)
CIFAR100 = _Cifar(
    "cifar-100-binary",
    "cifar-100-binary.tar.gz",
    "03b5dce01913d631647c71ecec9e9cb8",
    ("train.bin",),
    "test.bin",
    "fine_label_names.txt",
    2,  # of a superclass, and of the class
)


def load_cifar(which: _Cifar) -> Split:
    home = find(which.folder) or fetch(f"{_SOURCE}/{which.archive}", which.md5, which.folder)
    names = np.array((home / which.names).read_text().split())
    parts = [_read(home / name, which.n_labels, len(names)) for name in (*which.train, which.test)]
    images, labels = (
        np.concatenate([part[0] for part in parts[:-1]]),
        np.concatenate([part[1] for part in parts[:-1]]),
    )
    return Split(images, names[labels], parts[-1][0], names[parts[-1][1]])


def _read(path: Path, n_labels: int, n_classes: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Return images (n, 32, 32, 3) and labels of a file, which has labels first and then planes of red, green, blue."""
    try:
        data = np.frombuffer(path.read_bytes(), np.uint8)
    except FileNotFoundError as problem:
        raise InvalidTable(f"there is no file {path}: get the binary version of the data set") from problem
    if not data.size or data.size % (n_labels + _PIXELS):
        raise InvalidTable(
            f"{path} is cut off or of another format: images have {n_labels + _PIXELS:,} bytes"
        )
    rows = data.reshape(-1, n_labels + _PIXELS)
    labels = rows[:, n_labels - 1]
    if labels.max() >= n_classes:
        raise InvalidTable(f"{path} has a label {labels.max()}, and there are {n_classes} classes")
    planes = rows[:, n_labels:].reshape(-1, 3, _SIDE, _SIDE)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels
