"""The tensors of a file that torch.save wrote in its first format, without torch, and nothing but tensors."""

import pickletools
import struct
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import InvalidModel

_TYPES: dict[str, Any] = {"FloatStorage": np.float32, "LongStorage": np.int64}
_HEADS = 3  # magic number, version, byte order


def read_tensors(path: Path) -> dict[str, npt.NDArray[Any]]:
    with path.open("rb") as file:
        for _ in range(_HEADS):
            _Values().read(file)
        entries, keys = _Values().read(file), _Values().read(file)
        kinds = {storage[2]: _TYPES[storage[1]] for storage, *_ in entries.values()}
        stored = {}
        for key in keys:
            (n,) = struct.unpack("<q", file.read(8))
            stored[key] = np.frombuffer(file.read(n * np.dtype(kinds[key]).itemsize), kinds[key])
    return {name: _tensor(stored[storage[2]], *place) for name, (storage, *place) in entries.items()}


class _Values:
    """Reads the values that such a file describes: numbers, texts, tuples, lists, dictionaries, places of tensors.

    The description is a program of a stack machine. It is walked through here and never run: what it names is a text,
    and what it would call is looked up by that text or refused.
    """

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[Any, Any] = {}

    def read(self, file: IO[bytes]) -> Any:
        steps: dict[str, Callable[[Any], None]] = {
            **dict.fromkeys(("PROTO", "BINPERSID"), lambda _: None),
            **dict.fromkeys(
                ("BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE", "NONE"), self._stack.append
            ),
            **dict.fromkeys(("BINPUT", "LONG_BINPUT"), self._remember),
            **dict.fromkeys(("BINGET", "LONG_BINGET"), lambda at: self._stack.append(self._memo[at])),
            "NEWTRUE": lambda _: self._stack.append(True),
            "NEWFALSE": lambda _: self._stack.append(False),
            "EMPTY_DICT": lambda _: self._stack.append({}),
            "EMPTY_LIST": lambda _: self._stack.append([]),
            "EMPTY_TUPLE": lambda _: self._stack.append(()),
            "MARK": lambda _: self._marks.append(len(self._stack)),
            "TUPLE": lambda _: self._stack.append(tuple(self._taken(self._marks.pop()))),
            "TUPLE1": lambda _: self._stack.append(tuple(self._taken(-1))),
            "TUPLE2": lambda _: self._stack.append(tuple(self._taken(-2))),
            "TUPLE3": lambda _: self._stack.append(tuple(self._taken(-3))),
            "APPEND": lambda _: self._extend(self._taken(-1)),
            "APPENDS": lambda _: self._extend(self._taken(self._marks.pop())),
            "SETITEM": lambda _: self._set(self._taken(-2)),
            "SETITEMS": lambda _: self._set(self._taken(self._marks.pop())),
            "GLOBAL": lambda name: self._stack.append(name.split(" ")[-1]),
            "REDUCE": lambda _: self._stack.append(_called(*self._taken(-2))),
            "BUILD": lambda _: self._stack.pop(),  # what is set beside the entries of a dictionary
        }
        for step, given, _ in pickletools.genops(file):
            if step.name == "STOP":
                return self._stack.pop()
            if step.name not in steps:
                raise InvalidModel(f"a file of tensors has no {step.name}")
            steps[step.name](given)
        raise InvalidModel("the file of tensors is cut off")

    def _remember(self, at: Any) -> None:
        self._memo[at] = self._stack[-1]

    def _taken(self, start: int) -> list[Any]:
        taken = self._stack[start:]
        del self._stack[start:]
        return taken

    def _extend(self, values: list[Any]) -> None:
        self._stack[-1].extend(values)

    def _set(self, values: list[Any]) -> None:
        self._stack[-1].update(zip(values[::2], values[1::2], strict=True))


def _called(name: Any, given: tuple[Any, ...]) -> Any:
    """Return what the only two functions that such a file may name would return."""
    if name == "OrderedDict":
        return dict(given)
    if str(name).startswith("_rebuild_tensor"):
        return given[:4]  # storage, offset, size, stride
    raise InvalidModel(f"a file of tensors calls {name!s:.50}")


def _tensor(
    stored: npt.NDArray[Any], offset: int, size: tuple[int, ...], stride: tuple[int, ...]
) -> npt.NDArray[Any]:
    places = np.full(size, offset, np.int64)
    for axis, (length, step) in enumerate(zip(size, stride, strict=True)):
        shape = [1] * len(size)
        shape[axis] = length
        places += (step * np.arange(length)).reshape(shape)
    return stored[places]
