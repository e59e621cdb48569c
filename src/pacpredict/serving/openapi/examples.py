"""One request of each form and its answer, as this deployment takes and gives them.

Of the training data they show what clients are told anyway. No label is named, and no category unless the owner
declared it: `<label>` and `other`, the category of all that are not listed, stand for them.
"""

import base64
import csv
import io
import struct
import zlib
from datetime import UTC, datetime
from typing import Any

from pacpredict.rows.images import ImageSchema
from pacpredict.rows.kind import AnySchema
from pacpredict.rows.texts import TextSchema
from pacpredict.serving.inference_protocol import OUTPUT, VERSION
from pacpredict.serving.inputs import inputs_of
from pacpredict.serving.labels import Labels
from pacpredict.serving.openapi.schemas import Json
from pacpredict.tables.column import OTHER, Column
from pacpredict.tables.schema import Schema

_DAY = datetime(2024, 12, 31, tzinfo=UTC)
# Of each datatype something that is one.
_LABEL = {"INT64": 0, "FP64": 0.0, "BOOL": False, "BYTES": "<label>"}


def examples_of_queries(model: str, schema: AnySchema, labels: Labels, step: float) -> Json:
    """Return examples by the name of their schema; of CSV by its type of content."""
    record = _record(schema)
    label = _LABEL[labels.datatype]
    releases = {"sequence": [1], "charge_nats": [step]}
    output = {"name": OUTPUT, "datatype": labels.datatype, "shape": [1], "data": [label]}
    return {
        "Scoring": {"dataframe_records": [record]},
        "text/csv": _csv(record),
        "Predictions": {"predictions": [label], "parameters": releases},
        "Inference": {"inputs": _tensors(schema, record)},
        "Inferred": {
            "model_name": model,
            "model_version": VERSION,
            "parameters": releases,
            "outputs": [output],
        },
    }


def _record(schema: AnySchema) -> Json:
    if isinstance(schema, ImageSchema):
        return {schema.column: base64.b64encode(_black(schema.height, schema.width)).decode()}
    if isinstance(schema, TextSchema):
        return {schema.column: "some text"[: schema.longest]}
    if isinstance(schema, Schema):
        return {column.name: _value(column) for column in schema.columns}
    raise TypeError(f"nobody has said how rows of kind {schema.kind!r} look")


def _value(column: Column) -> Any:
    if column.kind == "number":
        return 1.5
    if column.kind == "boolean":
        return True
    if column.kind == "date":
        return _DAY.strftime(column.form or "%Y-%m-%d")
    if column.kind == "text":
        return "some text"
    return column.categories[0] if column.is_declared else OTHER


def _tensors(schema: AnySchema, record: Json) -> list[Json]:
    described = inputs_of(schema).metadata()
    datatypes = {each["name"]: each["datatype"] for each in described}
    if isinstance(schema, ImageSchema):
        datatypes = dict.fromkeys(datatypes, "BYTES")  # a file; its numbers would fill pages
    return [
        {"name": name, "shape": [1], "datatype": datatypes[name], "data": [value]}
        for name, value in record.items()
    ]


def _csv(record: Json) -> str:
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(record)
    writer.writerow("" if value is None else value for value in record.values())
    return lines.getvalue()


def _black(height: int, width: int) -> bytes:
    """Return a black image as a PNG."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)  # eight bits of grey
    lines = zlib.compress((b"\0" + b"\0" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", lines) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
