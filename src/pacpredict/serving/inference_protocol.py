"""The Open Inference Protocol (KServe V2): what the model takes and gives, requests in, answers out.

There is one input tensor for each column, of shape [n] or [n, 1]. A table of numbers only may also come as one tensor
of shape [n, number of columns], under any name that is not that of a column. The output is the tensor `label`.
"""

from typing import Any

import numpy as np
import orjson

from pacpredict.curator import Answers
from pacpredict.ensemble.tables.schema import Rows, Schema
from pacpredict.ensemble.tables.values import show, show_some
from pacpredict.exceptions import InvalidQuery
from pacpredict.serving.binary_tensors import LENGTH_HEADER, BinaryPart, decode, encode, split_body
from pacpredict.serving.inquiry import Inquiry, read_flag, read_id, read_object
from pacpredict.serving.labels import Labels, column_datatype, describe_releases
from pacpredict.serving.limits import Limits, parse_json
from pacpredict.serving.tensors import TEXTS, Tensor, read_head, read_json_values

VERSION = "1"  # an artifact never changes: another fit is another model
OUTPUT = "label"


class InferenceProtocol:
    def __init__(self, name: str, schema: Schema, labels: Labels, limits: Limits) -> None:
        self.name = name
        self._schema = schema
        self._limits = limits
        self._columns = {column.name for column in schema.columns}
        self._is_all_numbers = all(column.kind == "number" for column in schema.columns)
        self._labels = labels

    def metadata(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "versions": [VERSION],
            "platform": "pacpredict",
            "inputs": [
                {"name": column.name, "datatype": column_datatype(column), "shape": [-1]}
                for column in self._schema.columns
            ],
            "outputs": [{"name": OUTPUT, "datatype": self._labels.datatype, "shape": [-1]}],
        }

    def read(self, body: bytes, json_length: str | None) -> Inquiry:
        """Return what a body asks; InvalidQuery if that cannot be understood."""
        head, binary = split_body(body, json_length)
        request = parse_json(head)
        parameters = read_object(request, "parameters")
        rows = self._rows(_read_inputs(request.get("inputs"), binary))
        return Inquiry(
            rows,
            read_id(request.get("id")),
            read_flag(parameters, "partial"),
            _wants_binary(request.get("outputs"), parameters),
        )

    def write(self, inquiry: Inquiry, answers: Answers) -> tuple[bytes, dict[str, str]]:
        """Return the body and the headers of an answer."""
        labels = self._labels.plain(answers)
        output: dict[str, Any] = {"name": OUTPUT, "datatype": self._labels.datatype, "shape": [len(labels)]}
        reply: dict[str, Any] = {"model_name": self.name, "model_version": VERSION}
        if inquiry.id is not None:
            reply["id"] = inquiry.id
        reply["parameters"] = describe_releases(inquiry, answers)
        reply["outputs"] = [output]
        if not inquiry.is_binary:
            output["data"] = labels
            return orjson.dumps(reply), {"content-type": "application/json"}
        data = encode(self._labels.datatype, labels)
        output["parameters"] = {"binary_data_size": len(data)}
        head = orjson.dumps(reply)
        return head + data, {"content-type": "application/octet-stream", LENGTH_HEADER: str(len(head))}

    def _rows(self, tensors: list[Tensor]) -> Rows:
        first = tensors[0].head
        self._limits.check_rows(first.shape[0])
        if len(tensors) == 1 and len(first.shape) == 2 and first.name not in self._columns:
            return self._matrix_rows(tensors[0])
        columns = {head.name: values for head, values in tensors}
        if len(columns) < len(tensors):
            raise InvalidQuery("two inputs have the same name")
        for head, _ in tensors:
            if head.size != head.shape[0]:
                raise InvalidQuery(f"input {show(head.name)}: the shape of a column must be [n] or [n, 1]")
        return self._schema.rows_from_columns(columns)

    def _matrix_rows(self, tensor: Tensor) -> Rows:
        head, values = tensor
        if not self._is_all_numbers or head.datatype is TEXTS:
            raise InvalidQuery(
                f"{show(head.name)} is not a column; one matrix is taken for tables of numbers only, as numbers. "
                f"Send one tensor for each of {show_some(sorted(self._columns), 20)}"
            )
        numbers = np.array(values, np.float64)  # of a list, None becomes NaN
        return self._schema.rows(numbers.reshape(head.shape))


def _read_inputs(inputs: Any, binary: BinaryPart) -> list[Tensor]:
    if not isinstance(inputs, list) or not inputs:
        raise InvalidQuery("'inputs' must be a list of tensors")
    tensors = [_read_tensor(given, binary) for given in inputs]
    binary.check_all_taken()
    return tensors


def _read_tensor(given: Any, binary: BinaryPart) -> Tensor:
    head = read_head(given)
    size = read_object(given, "parameters").get("binary_data_size") if "parameters" in given else None
    if (size is None) is ("data" not in given):
        raise InvalidQuery(f"input {show(head.name)} needs either data or binary_data_size, and not both")
    return Tensor(
        head, read_json_values(head, given["data"]) if size is None else decode(head, binary.take(size))
    )


def _wants_binary(outputs: Any, parameters: dict[str, Any]) -> bool:
    if outputs is None or outputs == []:
        return read_flag(parameters, "binary_data_output")
    if not isinstance(outputs, list) or not all(isinstance(output, dict) for output in outputs):
        raise InvalidQuery("'outputs' must be a list of JSON objects")
    if len(outputs) > 1 or outputs[0].get("name") != OUTPUT:
        raise InvalidQuery(f"the only output is {OUTPUT!r}; leave 'outputs' out, or ask for that")
    own = read_object(outputs[0], "parameters")
    return (
        read_flag(own, "binary_data") if "binary_data" in own else read_flag(parameters, "binary_data_output")
    )
