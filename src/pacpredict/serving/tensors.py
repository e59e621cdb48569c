"""Tensors of the Open Inference Protocol: datatypes, shapes, and values as JSON writes them.

A tensor has as many dimensions as it needs here: one or two, or up to four for images. JSON's null is a missing value
in any datatype.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import InvalidQuery
from pacpredict.show import show

Values = Sequence[Any] | npt.NDArray[Any]


class Datatype(NamedTuple):
    """What the protocol calls a datatype: how it is stored, and which of JSON's values it has."""

    name: str
    dtype: np.dtype[Any]  # little-endian, as the binary extension has them; of texts, what NumPy would use
    json_types: frozenset[type]
    least: int | None = None  # of integers
    most: int | None = None


def _integer(name: str, dtype: str) -> Datatype:
    allowed = np.iinfo(dtype)
    return Datatype(name, np.dtype(dtype), frozenset({int, type(None)}), int(allowed.min), int(allowed.max))


DATATYPES: dict[str, Datatype] = {
    datatype.name: datatype
    for datatype in (
        Datatype("BOOL", np.dtype("?"), frozenset({bool, type(None)})),
        *(_integer(f"UINT{8 * size}", f"<u{size}") for size in (1, 2, 4, 8)),
        *(_integer(f"INT{8 * size}", f"<i{size}") for size in (1, 2, 4, 8)),
        *(
            Datatype(f"FP{8 * size}", np.dtype(f"<f{size}"), frozenset({int, float, type(None)}))
            for size in (2, 4, 8)
        ),
        Datatype("BYTES", np.dtype(object), frozenset({str, type(None)})),
    )
}
TEXTS, DOUBLES = DATATYPES["BYTES"], DATATYPES["FP64"]


class Head(NamedTuple):
    """All of a tensor but its values."""

    name: str
    datatype: Datatype
    shape: list[int]
    size: int


class Tensor(NamedTuple):
    head: Head
    values: Values  # flat


def read_head(given: Any, most_dimensions: int = 2) -> Head:
    """Return what stands beside the values; a server reads this once for every column, so it is short."""
    try:
        name, datatype, shape = given["name"], DATATYPES[given["datatype"]], given["shape"]
    except (KeyError, TypeError):
        raise _explain(given) from None
    if type(name) is not str:
        raise _explain(given)
    if type(shape) is list and all(map(_is_length, shape)):
        if len(shape) == 1:
            return Head(name, datatype, shape, shape[0])
        if len(shape) == 2:
            return Head(name, datatype, shape, shape[0] * shape[1])
        if 2 < len(shape) <= most_dimensions:
            return Head(name, datatype, shape, math.prod(shape))
    most = "[n] or [n, width]" if most_dimensions == 2 else f"a list of 1 to {most_dimensions} lengths"
    raise InvalidQuery(f"input {show(name)}: the shape must be {most}")


def _is_length(length: Any) -> bool:
    return type(length) is int and length >= 0


def _explain(given: Any) -> InvalidQuery:
    if not isinstance(given, dict):
        return InvalidQuery(f"each of the inputs must be a JSON object, got {show(given)}")
    name, datatype = given.get("name"), given.get("datatype")
    if not isinstance(name, str):
        return InvalidQuery(f"each of the inputs needs a name, got {show(name)}")
    if not isinstance(datatype, str) or datatype not in DATATYPES:
        known = ", ".join(DATATYPES)
        return InvalidQuery(f"input {show(name)}: the datatype {show(datatype)} is none of {known}")
    return InvalidQuery(f"input {show(name)} needs a shape")


def read_json_values(head: Head, data: Any) -> Values:
    """Return the values, flat; they may come nested or flat, and must be what the datatype says."""
    if type(data) is not list:
        raise InvalidQuery(f"input {show(head.name)}: data must be a list, got {show(data)}")
    values = data if len(head.shape) == 1 else _flatten(head, data, head.shape[1:])
    if len(values) != head.size:
        raise InvalidQuery(
            f"input {show(head.name)}: shape {head.shape} needs {head.size:,} values, got {len(values):,}"
        )
    datatype = head.datatype
    if not datatype.json_types.issuperset(map(type, values)):
        wrong = next(value for value in values if type(value) not in datatype.json_types)
        raise _wrong_value(head, wrong)
    if datatype is TEXTS or datatype is DOUBLES:
        return values
    return _narrow(head, values)


def _flatten(head: Head, data: list[Any], shape: Sequence[int]) -> list[Any]:
    """Return the values of lists that are nested all the way down, or not at all."""
    if not data or not isinstance(data[0], list):
        return data
    for width in shape:
        for row in data:
            if not isinstance(row, list) or len(row) != width:
                raise InvalidQuery(f"input {show(head.name)}: nested data must be rows of {width} values")
        data = [value for row in data for value in row]
    return data


def _narrow(head: Head, values: list[Any]) -> Values:
    """Make of JSON's numbers what the datatype holds, so that the same tensor in binary is the same query."""
    _, dtype, _, least, most = head.datatype
    if least is not None and most is not None:
        for value in values:
            if value is not None and not least <= value <= most:
                raise _wrong_value(head, value)
    if dtype.kind == "f":
        numbers = np.array([math.nan if value is None else value for value in values], np.float64)
        with np.errstate(over="ignore"):  # becomes an infinity, which the schema refuses
            return numbers.astype(dtype)
    return values


def _wrong_value(head: Head, value: Any) -> InvalidQuery:
    return InvalidQuery(f"input {show(head.name)}: {show(value)} is not a value of {head.datatype.name}")
