"""Reader of UBJSON as XGBoost writes it: float32 bits arrive as they are, and long arrays without a loop."""

import struct
from typing import Any

import numpy as np

from pacpredict.exceptions import InvalidModel

# Big-endian numbers by their marker.
_NUMBERS = {"i": "i1", "U": "u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
_CONSTANTS = {"T": True, "F": False, "Z": None}


def parse(data: bytes) -> Any:
    """Return the dicts, lists, strings and numbers of a document; arrays of one type become NumPy arrays."""
    try:
        return _Reader(data).value()
    except (IndexError, KeyError, ValueError, struct.error) as problem:
        raise InvalidModel(f"this is not UBJSON that we can read ({problem!r})") from problem


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def value(self, marker: str | None = None) -> Any:
        marker = marker or self.marker()
        if marker in _NUMBERS:
            return self.numbers(marker, 1)[0].item()
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        return {"S": self.string, "[": self.array, "{": self.object}[marker]()

    def array(self) -> Any:
        kind = None
        if self.peek() == "$":
            self.at += 1
            kind = self.marker()
        if self.peek() == "#":
            self.at += 1
            count = self.value()
            return [self.value() for _ in range(count)] if kind is None else self.numbers(kind, count)
        items = []
        while self.peek() != "]":
            items.append(self.value())
        self.at += 1
        return items

    def object(self) -> dict[str, Any]:
        items = {}
        while self.peek() != "}":
            name = self.string()
            items[name] = self.value()
        self.at += 1
        return items

    def string(self) -> str:
        length = self.value()
        self.at += length
        return self.data[self.at - length : self.at].decode()

    def numbers(self, kind: str, count: int) -> Any:
        dtype = np.dtype(_NUMBERS[kind])
        array = np.frombuffer(self.data, dtype, count, self.at)
        self.at += array.nbytes
        return array.astype(dtype.newbyteorder("="))

    def marker(self) -> str:
        self.at += 1
        return chr(self.data[self.at - 1])

    def peek(self) -> str:
        return chr(self.data[self.at])
