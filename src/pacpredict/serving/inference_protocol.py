"""The Open Inference Protocol (KServe V2): what the model takes and gives, requests in, answers out.

inputs.py says which tensors a request has. The output is the tensor `label`.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from pacpredict.curator import Answers, Inquiry
from pacpredict.exceptions import InvalidQuery
from pacpredict.serving.binary_tensors import LENGTH_HEADER, BinaryPart, decode, encode, split_body
from pacpredict.serving.inputs import Inputs
from pacpredict.serving.labels import Labels, describe_releases
from pacpredict.serving.limits import Limits
from pacpredict.serving.tensors import Tensor, read_head, read_json_values
from pacpredict.serving.wire import Message, Reply, parse_json, read_flag, read_id, read_object
from pacpredict.show import show

VERSION = "1"  # an artifact never changes: another fit is another model
OUTPUT = "label"


class InferenceProtocol:
    def __init__(self, name: str, inputs: Inputs, labels: Labels) -> None:
        self.name = name
        self._inputs = inputs
        self._labels = labels

    def metadata(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "versions": [VERSION],
            "platform": "pacpredict",
            "inputs": self._inputs.metadata(),
            "outputs": [{"name": OUTPUT, "datatype": self._labels.datatype, "shape": [-1]}],
        }

    def read(self, body: bytes, headers: Mapping[str, str], limits: Limits) -> Message:
        head, binary = split_body(body, headers.get(LENGTH_HEADER))
        request = parse_json(head)
        parameters = read_object(request, "parameters")
        tensors = _read_inputs(request.get("inputs"), binary, self._inputs)
        limits.check_rows(tensors[0].head.shape[0], self._inputs.pixel_bytes)
        rows = self._inputs.of_tensors(tensors)
        inquiry = Inquiry(rows, read_id(request.get("id")), partial=read_flag(parameters, "partial"))
        return Message(inquiry, _wants_binary(request.get("outputs"), parameters))

    def write(self, message: Message, answers: Answers) -> Reply:
        inquiry = message.inquiry
        labels = self._labels.plain(answers)
        output: dict[str, Any] = {"name": OUTPUT, "datatype": self._labels.datatype, "shape": [len(labels)]}
        reply: dict[str, Any] = {"model_name": self.name, "model_version": VERSION}
        if inquiry.id is not None:
            reply["id"] = inquiry.id
        reply["parameters"] = describe_releases(inquiry, answers)
        reply["outputs"] = [output]
        if not message.is_binary:
            output["data"] = labels
            return Reply(orjson.dumps(reply), {"content-type": "application/json"})
        data = encode(self._labels.datatype, labels)
        output["parameters"] = {"binary_data_size": len(data)}
        head = orjson.dumps(reply)
        return Reply(head + data, {"content-type": "application/octet-stream", LENGTH_HEADER: str(len(head))})


def _read_inputs(given: Any, binary: BinaryPart, inputs: Inputs) -> list[Tensor]:
    if not isinstance(given, list) or not given:
        raise InvalidQuery("'inputs' must be a list of tensors")
    tensors = [_read_tensor(one, binary, inputs) for one in given]
    binary.check_all_taken()
    return tensors


def _read_tensor(given: Any, binary: BinaryPart, inputs: Inputs) -> Tensor:
    head = read_head(given, inputs.dimensions)
    size = read_object(given, "parameters").get("binary_data_size") if "parameters" in given else None
    if (size is None) is ("data" not in given):
        raise InvalidQuery(f"input {show(head.name)} needs either data or binary_data_size, and not both")
    if size is None:
        return Tensor(head, read_json_values(head, given["data"]))
    return Tensor(head, decode(head, binary.take(size), as_text=not inputs.takes_files))


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
