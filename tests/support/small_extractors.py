"""Small public extractors: of images a model in ONNX, of texts a folder with one or with static vectors."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

WIDTH = 6


def write_tokenizer(folder, texts):
    """Write a tokenizer that knows the words of these texts; returns how many tokens it has."""
    words = sorted({word for text in texts for word in text.split()})
    vocabulary = {token: i for i, token in enumerate(["[UNK]", *words])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return len(vocabulary)


def vectors(n):
    return np.random.default_rng(0).normal(size=(n, WIDTH)).astype(np.float32)


def onnx_folder(folder, texts):
    """Write a model whose tokens have a vector each, and the tokenizer beside it."""
    table = numpy_helper.from_array(vectors(write_tokenizer(folder, texts)), "table")
    node = helper.make_node("Gather", ["table", "input_ids"], ["tokens"])
    taken = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ("n", "length"))
    given = helper.make_tensor_value_info("tokens", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "tokens", [taken], [given], [table])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    return folder


def static_folder(folder, texts):
    """Write the same as a static model has it."""
    save_file({"vectors": vectors(write_tokenizer(folder, texts))}, folder / "model.safetensors")
    return folder


def averages(path, tile=4):
    """Write a model in ONNX that averages tiles of an image."""
    nodes = [helper.make_node("AveragePool", ["x"], ["p"], kernel_shape=[tile, tile], strides=[tile, tile])]
    nodes += [helper.make_node("Flatten", ["p"], ["y"])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n", 3, "height", "width"))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "averages", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path
