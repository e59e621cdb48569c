"""The protocol's binary extension: tensors as bytes behind the JSON of a body.

The header Inference-Header-Content-Length says where the JSON ends; `binary_data_size` in the parameters of a tensor
how many of the bytes behind it are its own, in order. A text is its length in four bytes, little-endian, and UTF-8.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pacpredict.exceptions import InvalidQuery
from pacpredict.serving.tensors import DATATYPES, TEXTS, Head, Values
from pacpredict.show import show

LENGTH_HEADER = "Inference-Header-Content-Length"
_LENGTH_BYTES = 4


def split_body(body: bytes, json_length: str | None) -> tuple[bytes, "BinaryPart"]:
    """Return the JSON of a body and what is behind it."""
    if json_length is None:
        return body, BinaryPart(b"")
    if not (json_length.isascii() and json_length.isdigit() and len(json_length) < 20):
        raise InvalidQuery(f"{LENGTH_HEADER} must be a number of bytes, got {show(json_length)}")
    length = int(json_length)
    if length > len(body):
        raise InvalidQuery(f"{LENGTH_HEADER} is {length:,}, but the body has {len(body):,} bytes")
    return body[:length], BinaryPart(body[length:])


class BinaryPart:
    """Bytes that tensors take their share of, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._taken = 0

    def take(self, size: Any) -> bytes:
        if type(size) is not int or size < 0:
            raise InvalidQuery(f"binary_data_size must be a number of bytes, got {show(size)}")
        if size > len(self._data) - self._taken:
            raise InvalidQuery(f"binary_data_size is {size:,}, but fewer bytes are left of the body")
        self._taken += size
        return self._data[self._taken - size : self._taken]

    def check_all_taken(self) -> None:
        if self._taken != len(self._data):
            raise InvalidQuery(
                f"{len(self._data) - self._taken:,} bytes at the end of the body belong to no input"
            )


def decode(head: Head, data: bytes, *, as_text: bool = True) -> Values:
    """Return the values of a tensor, flat; BYTES as texts or as they are."""
    if head.datatype is TEXTS:
        elements = _cut(head, data)
        return _as_texts(head, elements) if as_text else elements
    dtype = head.datatype.dtype
    if len(data) != head.size * dtype.itemsize:
        raise InvalidQuery(
            f"input {show(head.name)}: shape {head.shape} of {head.datatype.name} needs {head.size * dtype.itemsize:,} "
            f"bytes, got {len(data):,}"
        )
    if dtype.kind == "b" and data.translate(None, b"\0\1"):
        raise InvalidQuery(f"input {show(head.name)}: a byte of BOOL must be 0 or 1")
    return np.frombuffer(data, dtype)


def _cut(head: Head, data: bytes) -> list[bytes]:
    elements, position = [], 0
    while position < len(data):
        start = position + _LENGTH_BYTES
        position = start + int.from_bytes(data[position:start], "little")
        if position > len(data):
            raise InvalidQuery(f"input {show(head.name)}: an element of BYTES is cut off")
        elements.append(data[start:position])
    if len(elements) != head.size:
        raise InvalidQuery(
            f"input {show(head.name)}: shape {head.shape} needs {head.size:,} elements, got {len(elements):,}"
        )
    return elements


def _as_texts(head: Head, elements: list[bytes]) -> list[str]:
    try:
        return [element.decode() for element in elements]
    except UnicodeDecodeError:
        raise InvalidQuery(f"input {show(head.name)}: a text of BYTES is not UTF-8") from None


def encode(datatype: str, values: Sequence[Any]) -> bytes:
    """Return the bytes of a tensor of an answer."""
    if datatype != TEXTS.name:
        return np.asarray(values, DATATYPES[datatype].dtype).tobytes()
    texts = [text.encode() for text in values]
    return b"".join(part for text in texts for part in (len(text).to_bytes(_LENGTH_BYTES, "little"), text))
