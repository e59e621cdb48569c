"""Tensors with names as bytes: safetensors, which hold numbers and nothing that could run."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import safetensors
import safetensors.torch
import torch

from pacpredict.exceptions import InvalidModel

Tensors = dict[str, torch.Tensor]
# One entry, since the order of several is left to chance.
_ABOUT = "about"


class Stored(NamedTuple):
    tensors: Tensors
    about: dict[str, Any]


def to_bytes(tensors: Mapping[str, torch.Tensor], about: Mapping[str, Any] | None = None) -> bytes:
    """Return the same bytes for the same tensors, wherever they were computed."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    metadata = None if about is None else {_ABOUT: json.dumps(about, sort_keys=True)}
    return safetensors.torch.save(plain, metadata)


def from_bytes(data: bytes) -> Stored:
    try:
        tensors = safetensors.torch.load(data)
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        about = json.loads(header.get("__metadata__", {}).get(_ABOUT, "{}"))
    except (safetensors.SafetensorError, ValueError, KeyError) as problem:
        raise InvalidModel(f"this is not a file of safetensors: {problem}") from problem
    return Stored(tensors, about)
