"""ResNet-50 (He et al., 2015) from the weights that a package for browsers carries, in Keras's description (ISC)."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pacpredict.features.weights.graph import Graph

Weights = dict[str, npt.NDArray[np.float32]]


def build_resnet(files: Sequence[Path], path: Path) -> None:
    """Write the network up to the average over positions: 2,048 features; input BGR less the means of ImageNet."""
    described, folder = json.loads(files[0].read_text()), files[0].parent
    weights = _read_weights(described["weightsManifest"], folder)
    graph = Graph()
    tensors: dict[str, str] = {}
    for layer in described["modelTopology"]["model_config"]["config"]["layers"]:
        inputs = [tensors[given[0]] for given in (layer["inbound_nodes"] or [[]])[0]]
        name = layer["config"]["name"]
        tensors[name] = _add(graph, layer["class_name"], layer["config"], inputs, weights)
        if layer["class_name"] == "GlobalAveragePooling2D":
            graph.save(tensors[name], path)
            return
    raise ValueError("the network has no average over positions")


def _read_weights(manifest: list[Any], folder: Path) -> Weights:
    weights: Weights = {}
    for group in manifest:
        data, offset = b"".join((folder / name).read_bytes() for name in group["paths"]), 0
        for one in group["weights"]:
            size = int(np.prod(one["shape"], dtype=int))
            weights[one["name"]] = np.frombuffer(data, np.float32, size, offset).reshape(one["shape"])
            offset += 4 * size
    return weights


def _add(graph: Graph, kind: str, config: dict[str, Any], x: list[str], weights: Weights) -> str:
    name = config["name"]
    pad = "SAME_UPPER" if config.get("padding") == "same" else "VALID"

    def conv() -> str:
        kernel = graph.constant(weights[f"{name}/kernel"].transpose(3, 2, 0, 1))
        bias = [graph.constant(weights[f"{name}/bias"])] if config["use_bias"] else []
        return graph.add("Conv", *x, kernel, *bias, strides=list(config["strides"]), auto_pad=pad)

    def norm() -> str:
        parts = (weights[f"{name}/{part}"] for part in ("gamma", "beta", "moving_mean", "moving_variance"))
        return graph.norm(*x, *parts, epsilon=float(config["epsilon"]))

    def zeros() -> str:
        (top, bottom), (left, right) = config["padding"]
        return graph.add(
            "Pad", *x, graph.constant(np.array([0, 0, top, left, 0, 0, bottom, right], np.int64))
        )

    def largest() -> str:
        shape, strides = list(config["pool_size"]), list(config["strides"])
        return graph.add("MaxPool", *x, kernel_shape=shape, strides=strides, auto_pad=pad)

    layers: dict[str, Callable[[], str]] = {
        "InputLayer": lambda: "x",
        "ZeroPadding2D": zeros,
        "Conv2D": conv,
        "BatchNormalization": norm,
        "Activation": lambda: graph.add({"relu": "Relu"}[config["activation"]], *x),
        "MaxPooling2D": largest,
        "Add": lambda: graph.add("Add", *x),
        "GlobalAveragePooling2D": lambda: graph.add("Flatten", graph.add("GlobalAveragePool", *x)),
    }
    return layers[kind]()
