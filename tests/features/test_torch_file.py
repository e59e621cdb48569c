"""Weights as torch.save wrote them for years, read without torch and without running anything."""

import pickle

import numpy as np
import pytest
import torch

from pacpredict.exceptions import InvalidModel
from pacpredict.features.weights.torch_file import read_tensors


def save(path, tensors):
    torch.save(tensors, path, _use_new_zipfile_serialization=False)
    return path


def test_tensors_are_read(tmp_path):
    """Every tensor has its values, also if it is a part or a transposition of another, in any number of dimensions."""
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
    whole = torch.arange(24.0).reshape(2, 3, 4)
    tensors = {
        **network.state_dict(),
        "part": whole[:, 1:, ::2],
        "turned": whole.permute(2, 0, 1),
        "whole": whole,
    }
    found = read_tensors(save(tmp_path / "a.pth", tensors))
    assert set(found) == set(tensors)
    for name, tensor in tensors.items():
        assert np.array_equal(found[name], tensor.numpy()), name
        assert found[name].dtype == tensor.numpy().dtype
    ordered = read_tensors(save(tmp_path / "b.pth", network.state_dict()))  # an OrderedDict with an attribute
    assert np.array_equal(ordered["0.weight"], network[0].weight.detach().numpy())


class Code:
    def __reduce__(self):
        return print, ("this was run",)


def test_nothing_is_run(tmp_path, capsys):
    """A file that would call something else when it is unpickled is refused, and nothing is called."""
    path = tmp_path / "bad.pth"
    path.write_bytes(pickle.dumps(Code(), protocol=2))
    with pytest.raises(InvalidModel, match="calls print"):
        read_tensors(path)
    path.write_bytes(pickle.dumps({"a": 1.5}, protocol=2))
    with pytest.raises(InvalidModel, match="has no BINFLOAT"):
        read_tensors(path)
    assert capsys.readouterr().out == ""
