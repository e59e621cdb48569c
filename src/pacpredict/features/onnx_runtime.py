"""Models in ONNX, run by ONNX Runtime in one thread: the same input gives the same numbers."""

from pathlib import Path
from typing import Any

from pacpredict.exceptions import InvalidModel, MissingExtra


def open_model(path: Path) -> Any:
    """Return a session of ONNX Runtime; any number of threads may run it."""
    try:
        import onnxruntime  # noqa: PLC0415  # an extra
    except ImportError as problem:
        raise MissingExtra("heads", "running an ONNX model") from problem
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.use_deterministic_compute = True
    options.log_severity_level = 3  # errors only
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as problem:  # its errors have no common class
        raise InvalidModel(f"{path} is not a model that ONNX Runtime can run: {problem}") from problem
