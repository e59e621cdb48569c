"""Tensors of the Open Inference Protocol: datatypes, shapes, and values as JSON writes them.

A tensor has as many dimensions as it needs here: one, or two. JSON's null is a missing value in any datatype.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pacpredict.ensemble.tables.values import show
from pacpredict.exceptions import InvalidQuery

Values = Sequence[Any] | npt.NDArray[Any]

# Little-endian, as the binary extension has them.
DTYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype("?"),
    **{f"UINT{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
    **{f"INT{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
    **{f"FP{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
}
DATATYPES = (*DTYPES, "BYTES")
_MISSING = type(None)
_JSON_TYPES: dict[str, set[type]] = {
    "BYTES": {str, _MISSING},
    **{
        name: {bool, _MISSING} if dtype.kind == "b" else {int, _MISSING}
        for name, dtype in DTYPES.items()
        if dtype.kind != "f"
    },
    **{name: {int, float, _MISSING} for name, dtype in DTYPES.items() if dtype.kind == "f"},
}


class Tensor(NamedTuple):
    name: str
    datatype: str
    shape: list[int]
    values: Values  # flat


class TensorHead(NamedTuple):
    """All of a tensor but its values."""

    name: str
    datatype: str
    shape: list[int]
    size: int


def read_head(given: Any) -> TensorHead:
    if not isinstance(given, dict):
        raise InvalidQuery(f"each of the inputs must be a JSON object, got {show(given)}")
    name, datatype, shape = given.get("name"), given.get("datatype"), given.get("shape")
    if not isinstance(name, str):
        raise InvalidQuery(f"each of the inputs needs a name, got {show(name)}")
    if datatype not in DATATYPES:
        raise InvalidQuery(f"input {show(name)}: datatype {show(datatype)} is none of {', '.join(DATATYPES)}")
    if not isinstance(shape, list) or not 1 <= len(shape) <= 2 or not all(map(_is_length, shape)):
        raise InvalidQuery(f"input {show(name)}: the shape must be [n] or [n, width]")
    return TensorHead(name, datatype, shape, math.prod(shape))


def _is_length(length: Any) -> bool:
    return type(length) is int and length >= 0


def read_json_values(head: TensorHead, data: Any) -> Values:
    """Return the values, flat; they may come nested or flat, and must be what the datatype says."""
    if not isinstance(data, list):
        raise InvalidQuery(f"input {show(head.name)}: data must be a list, got {show(data)}")
    values = _flatten(head, data) if len(head.shape) == 2 else data
    if len(values) != head.size:
        raise InvalidQuery(
            f"input {show(head.name)}: shape {head.shape} needs {head.size:,} values, got {len(values):,}"
        )
    if not set(map(type, values)) <= _JSON_TYPES[head.datatype]:
        wrong = next(value for value in values if type(value) not in _JSON_TYPES[head.datatype])
        raise InvalidQuery(f"input {show(head.name)}: {show(wrong)} is not a value of {head.datatype}")
    return _narrow(head, values)


def _flatten(head: TensorHead, data: list[Any]) -> list[Any]:
    if not data or not isinstance(data[0], list):
        return data
    for row in data:
        if not isinstance(row, list) or len(row) != head.shape[1]:
            raise InvalidQuery(f"input {show(head.name)}: nested data must be rows of {head.shape[1]} values")
    return [value for row in data for value in row]


def _narrow(head: TensorHead, values: list[Any]) -> Values:
    """Make of JSON's numbers what the datatype holds, so that the same tensor in binary is the same query."""
    if head.datatype in {"FP32", "FP16"}:
        numbers = np.array([math.nan if value is None else value for value in values], np.float64)
        with np.errstate(over="ignore"):  # becomes an infinity, which the schema refuses
            return numbers.astype(DTYPES[head.datatype])
    if "INT" in head.datatype:
        allowed = np.iinfo(DTYPES[head.datatype])
        least, most = int(allowed.min), int(allowed.max)
        for value in values:
            if value is not None and not least <= value <= most:
                raise InvalidQuery(
                    f"input {show(head.name)}: {show(value)} is not a value of {head.datatype}"
                )
    return values
