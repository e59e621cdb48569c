"""A graph in ONNX, written node by node."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import MissingExtra

_OPSET, _IR_VERSION = 17, 8  # of 2022: what runs today's models runs these


class Graph:
    """Takes `x` (n, 3, height, width) of float32."""

    def __init__(self) -> None:
        try:
            import onnx  # noqa: PLC0415  # an extra
        except ImportError as problem:
            raise MissingExtra("heads", "writing a model in ONNX") from problem
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._weights: list[Any] = []

    def constant(self, array: npt.ArrayLike) -> str:
        name = f"w{len(self._weights)}"
        self._weights.append(self._onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"t{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def norm(self, x: str, *parts: npt.ArrayLike, epsilon: float) -> str:
        """Normalise by scale, shift, mean and variance."""
        constants = [self.constant(np.asarray(part, np.float32)) for part in parts]
        return self.add("BatchNormalization", x, *constants, epsilon=epsilon)

    def save(self, output: str, path: Path) -> None:
        helper, single = self._onnx.helper, self._onnx.TensorProto.FLOAT
        x = helper.make_tensor_value_info("x", single, ["n", 3, "h", "w"])
        end = helper.make_tensor_value_info(output, single, None)
        graph = helper.make_graph(self._nodes, path.parent.name, [x], [end], self._weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)])
        model.ir_version = _IR_VERSION
        self._onnx.save(model, path)
