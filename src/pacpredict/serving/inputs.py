"""What clients send, by the kind of row: one tensor for each column of a table, or one of images or texts.

| kind | tensor | in JSON |
|---|---|---|
| table | one for each column, [n] or [n, 1]; of numbers only also one of [n, number of columns] | the values |
| image | numbers from 0 to 255, [n, height, width, 3], or [n, height, width] if grey | the numbers, nested or flat |
| image | BYTES [n]: files in PNG, JPEG, WebP or BMP | base64 |
| text | BYTES [n]: UTF-8 | the texts |

Where images are scaled, numbers are, too, whatever their height and width.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import InvalidQuery
from pacpredict.rows.images import ImageSchema
from pacpredict.rows.kind import AnyRows, AnySchema
from pacpredict.rows.pixels import size_of
from pacpredict.rows.texts import TextSchema
from pacpredict.serving.labels import column_datatype
from pacpredict.serving.limits import Limits
from pacpredict.serving.tensors import TEXTS, Head, Tensor
from pacpredict.show import show, show_some
from pacpredict.tables.schema import Schema

_CHANNELS = 3  # of a pixel, a byte each


class Inputs(Protocol):
    """Makes rows of what a client sends; InvalidQuery if that cannot be done."""

    dimensions: int  # that a tensor can have
    takes_files: bool  # whether BYTES are files, not texts
    pixel_bytes: int  # of one row once it is decoded; 0 where there is nothing to decode

    def metadata(self) -> list[dict[str, Any]]:
        """Describe the tensors."""

    def of_tensors(self, tensors: list[Tensor]) -> AnyRows: ...

    def rows(self, given: Any) -> AnyRows:
        """Return the rows of a list, as JSON has it."""

    def rows_from_columns(self, columns: Mapping[str, Any]) -> AnyRows: ...


def inputs_of(schema: AnySchema, limits: Limits | None = None) -> Inputs:
    if isinstance(schema, ImageSchema):
        return ImageInputs(schema, limits or Limits())
    if isinstance(schema, TextSchema):
        return TextInputs(schema)
    if isinstance(schema, Schema):
        return TableInputs(schema)
    raise TypeError(f"nobody has said how rows of kind {schema.kind!r} are sent")


class TableInputs:
    dimensions = 2
    takes_files = False
    pixel_bytes = 0

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._columns = {column.name for column in schema.columns}
        self._is_all_numbers = all(column.kind == "number" for column in schema.columns)
        self.rows = schema.rows
        self.rows_from_columns = schema.rows_from_columns

    def metadata(self) -> list[dict[str, Any]]:
        return [
            {"name": column.name, "datatype": column_datatype(column), "shape": [-1]}
            for column in self._schema.columns
        ]

    def of_tensors(self, tensors: list[Tensor]) -> AnyRows:
        first = tensors[0].head
        if len(tensors) == 1 and len(first.shape) == 2 and first.name not in self._columns:
            return self._of_matrix(tensors[0])
        columns = {head.name: values for head, values in tensors}
        if len(columns) < len(tensors):
            raise InvalidQuery("two inputs have the same name")
        for head, _ in tensors:
            if head.size != head.shape[0]:
                raise InvalidQuery(f"input {show(head.name)}: the shape of a column must be [n] or [n, 1]")
        return self._schema.rows_from_columns(columns)

    def _of_matrix(self, tensor: Tensor) -> AnyRows:
        head, values = tensor
        if not self._is_all_numbers or head.datatype is TEXTS:
            raise InvalidQuery(
                f"{show(head.name)} is not a column; one matrix is taken for tables of numbers only, as numbers. "
                f"Send one tensor for each of {show_some(sorted(self._columns), 20)}"
            )
        numbers = np.array(values, np.float64)  # of a list, None becomes NaN
        return self._schema.rows(_shaped(head, numbers))


class TextInputs:
    dimensions = 2
    takes_files = False
    pixel_bytes = 0

    def __init__(self, schema: TextSchema) -> None:
        self._schema = schema

    def metadata(self) -> list[dict[str, Any]]:
        return [{"name": self._schema.column, "datatype": "BYTES", "shape": [-1]}]

    def of_tensors(self, tensors: list[Tensor]) -> AnyRows:
        head, values = _only(tensors)
        if head.datatype is not TEXTS or head.size != head.shape[0]:
            raise InvalidQuery(f"input {show(head.name)}: texts come as BYTES of shape [n] or [n, 1]")
        return self._schema.rows(values)

    def rows(self, given: Any) -> AnyRows:
        return self._schema.rows(_unwrap(given))

    def rows_from_columns(self, columns: Mapping[str, Any]) -> AnyRows:
        return self._schema.rows(columns)


class ImageInputs:
    dimensions = 4
    takes_files = True

    def __init__(self, schema: ImageSchema, limits: Limits) -> None:
        self._schema = schema
        self.pixel_bytes = _CHANNELS * schema.height * schema.width
        self._most_decoded = max(limits.pixel_bytes, self.pixel_bytes)

    def metadata(self) -> list[dict[str, Any]]:
        size = [-1, -1] if self._schema.is_scaled else [self._schema.height, self._schema.width]
        return [{"name": self._schema.column, "datatype": "UINT8", "shape": [-1, *size, _CHANNELS]}]

    def of_tensors(self, tensors: list[Tensor]) -> AnyRows:
        head, values = _only(tensors)
        if head.datatype is not TEXTS:
            numbers = np.array(values, np.float64) if isinstance(values, list) else np.asarray(values)
            return self._schema.rows(_shaped(head, numbers))
        if head.size != head.shape[0]:
            raise InvalidQuery(
                f"input {show(head.name)}: files of images come as BYTES of shape [n] or [n, 1]"
            )
        return self._schema.rows(self._files(list(values)))

    def rows(self, given: Any) -> AnyRows:
        given = _unwrap(given)
        if given and isinstance(given[0], Mapping):
            names = given[0].keys()
            if any(not isinstance(row, Mapping) or row.keys() != names for row in given):
                raise InvalidQuery("all rows must have the same columns as the first row")
            return self.rows_from_columns({name: [row[name] for row in given] for name in names})
        return self._schema.rows(self._files(given))

    def rows_from_columns(self, columns: Mapping[str, Any]) -> AnyRows:
        # Others, such as a patient's number, are not looked at.
        images = {self._schema.column} if self._schema.column in columns else columns.keys()
        return self._schema.rows(
            {name: self._files(values) for name, values in columns.items() if name in images}
        )

    def _files(self, values: Any) -> Any:
        """Return files and arrays as the schema takes them; refuse too many pixels before one is decoded.

        What all images have once they are scaled says nothing about what they have before: a file of 34 bytes may
        have 33 million pixels. Numbers are there already, and no more than a body holds.
        """
        files = _as_files(values)
        if not self._schema.is_scaled or not isinstance(files, list):
            return files
        sizes = (size_of(file) for file in files if isinstance(file, bytes))
        n_bytes = sum(_CHANNELS * size[0] * size[1] for size in sizes if size is not None)
        if n_bytes > self._most_decoded:
            raise InvalidQuery(
                f"the images of one request have {n_bytes:,} bytes of pixels, more than {self._most_decoded:,}: send "
                "fewer at a time, or smaller ones"
            )
        return files


def _shaped(head: Head, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if not head.size:  # the other lengths may be beyond all arrays
        raise InvalidQuery(f"input {show(head.name)}: shape {head.shape} holds no numbers")
    return numbers.reshape(head.shape)


def _only(tensors: list[Tensor]) -> Tensor:
    if len(tensors) != 1:
        raise InvalidQuery(f"expected one input, got {len(tensors)}")
    return tensors[0]


def _unwrap(given: Any) -> Any:
    """Return the values of rows that are lists of one value each, as tables of one column come."""
    if not isinstance(given, list) or not all(isinstance(row, list) and len(row) == 1 for row in given):
        return given
    values = [value for (value,) in given]
    return given if any(isinstance(value, list) for value in values) else values  # an image may have one line


def _as_files(values: Any) -> Any:
    """Decode base64, as JSON and CSV have files; leave arrays as they are."""
    if not isinstance(values, list) or not any(isinstance(value, str) for value in values):
        return values
    files = []
    for row, value in enumerate(values):
        try:
            # In lines, if a program has written it so.
            files.append(base64.b64decode("".join(value.split()), validate=True))
        except (binascii.Error, AttributeError, ValueError):
            after = ", without what stands before the comma" if str(value).startswith("data:") else ""
            raise InvalidQuery(
                f"row {row} (from 0): the file of an image must come as base64{after}"
            ) from None
    return files
