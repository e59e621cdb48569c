"""Models in ONNX, run by ONNX Runtime in one thread: the same input gives the same numbers."""

import os
from pathlib import Path
from typing import Any

from pacpredict.exceptions import InvalidModel, MissingExtra

# Where a model that is read from memory looks for weights that it keeps elsewhere: nowhere. A model is one file, by
# whose hash features are cached and artifacts are checked.
_WEIGHTS_ELSEWHERE = ("session.model_external_initializers_file_folder_path", os.devnull)


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
    options.add_session_config_entry(*_WEIGHTS_ELSEWHERE)
    try:
        return onnxruntime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])
    except Exception as problem:  # its errors have no common class
        raise InvalidModel(
            f"{path} is not a model that ONNX Runtime can run, in one file with all of its weights: {problem}"
        ) from problem
