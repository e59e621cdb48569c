"""How the outputs of several networks are computed: one by one or as one, some rows at once, as measured to be faster.

An output depends on its row alone, whatever else is asked at the same time. Sums of floating-point numbers depend on
the shape of what is computed, so the shape never changes: rows are computed in blocks of one size, and a block that is
not full is filled up. Before a size is used it is tried out that the place within a block makes no difference.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import nn
from torch.func import functional_call, vmap

from pacpredict.learners.torch.weights import Tensors

Inputs = tuple[torch.Tensor, ...]  # the first dimension of each are rows
Shape = tuple[int, ...]

_SIZES = (1, 2, 4, 8, 16, 32, 64)  # of blocks
# However fast many rows are in it, a block is too large if a row that comes alone waits this many times as long.
_LONGEST_WAIT = 3.0
_TRIALS = 3


class Way(NamedTuple):
    rows: int  # in a block
    is_stacked: bool = False  # all networks as one


class Stack(NamedTuple):
    """Networks of one shape; their parameters have a first dimension for the networks."""

    shape: Shape
    parameters: Tensors

    @classmethod
    def of(cls, shape: Shape, networks: Sequence[Tensors], device: str) -> "Stack":
        """Put networks together; the kernels of convolutions are laid out as images are, channels last."""
        stacked = {name: torch.stack([one[name] for one in networks]).to(device) for name in networks[0]}
        for name, values in stacked.items():
            if values.ndim == 5:
                stacked[name] = values.permute(0, 1, 3, 4, 2).contiguous().permute(0, 1, 4, 2, 3)
        return cls(shape, stacked)

    @property
    def size(self) -> int:
        return len(next(iter(self.parameters.values())))


class Ways:
    """Computes outputs. The way is chosen once for each shape of networks and inputs, unless it is given."""

    def __init__(self, skeleton: Callable[[Shape], nn.Module], given: Way | None = None) -> None:
        self._skeleton = skeleton
        self._given = given
        self._chosen: dict[object, Way] = {}
        self._choosing = threading.Lock()
        self._of_thread = threading.local()  # a skeleton takes the parameters of one call at a time

    def outputs(self, stack: Stack, inputs: Inputs) -> torch.Tensor:
        """Return the outputs (n_networks, n_rows, width)."""
        way = self._given or self._way(stack, inputs)
        n_rows = len(inputs[0])
        blocks = []
        for start in range(0, n_rows, way.rows):
            # A last block is filled up with its first row.
            rows = [i if i < n_rows else start for i in range(start, start + way.rows)]
            blocks.append(self._compute(stack, _block(inputs, rows), is_stacked=way.is_stacked))
        return torch.cat(blocks, dim=1)[:, :n_rows]

    def _way(self, stack: Stack, inputs: Inputs) -> Way:
        key = stack.shape, stack.size > 1, tuple(values.shape[1:] for values in inputs)
        with self._choosing:
            if key not in self._chosen:
                self._chosen[key] = self._choose(stack, inputs)
        return self._chosen[key]

    def _choose(self, stack: Stack, inputs: Inputs) -> Way:
        """Take the size that is least bad in the worst case, for one row or for many; then the faster way."""
        first = Stack(stack.shape, {name: values[:1] for name, values in stack.parameters.items()})
        seconds: dict[int, float] = {}
        for size in _SIZES:
            block = _block(inputs, [0] * size)
            if _is_same_everywhere(self._compute(first, block)):
                seconds[size] = _fastest(lambda block=block: self._compute(first, block))  # type: ignore[misc]
            if seconds.get(size, 0.0) > _LONGEST_WAIT * seconds[1]:
                break
        best = min(seconds[size] / size for size in seconds)
        rows = min(seconds, key=lambda size: max(seconds[size] / seconds[1], seconds[size] / size / best))
        block = _block(inputs, [0] * rows)
        if stack.size == 1 or not _is_same_everywhere(self._compute(stack, block, is_stacked=True)):
            return Way(rows)
        one_by_one = _fastest(lambda: self._compute(stack, block))
        return Way(rows, _fastest(lambda: self._compute(stack, block, is_stacked=True)) < one_by_one)

    def _compute(self, stack: Stack, block: Inputs, *, is_stacked: bool = False) -> torch.Tensor:
        skeleton = self._own_skeleton(stack.shape)

        def outputs(parameters: Tensors) -> torch.Tensor:
            return functional_call(skeleton, parameters, block)

        if is_stacked:
            return vmap(outputs)(stack.parameters)
        each = [{name: values[i] for name, values in stack.parameters.items()} for i in range(stack.size)]
        return torch.stack([outputs(parameters) for parameters in each])

    def _own_skeleton(self, shape: Shape) -> nn.Module:
        skeletons = self._of_thread.__dict__.setdefault("skeletons", {})
        if shape not in skeletons:
            skeletons[shape] = self._skeleton(shape)
        return skeletons[shape]


def _block(inputs: Inputs, rows: list[int]) -> Inputs:
    """Take rows, laid out in memory in one way whatever the inputs were cut from: the layout decides on sums, too."""
    block = []
    for values in inputs:
        layout = torch.channels_last if values.ndim == 4 else torch.contiguous_format
        shape = len(rows), *values.shape[1:]
        own = torch.empty(shape, dtype=values.dtype, device=values.device, memory_format=layout)
        block.append(own.copy_(values[rows]))
    return tuple(block)


def _is_same_everywhere(outputs: torch.Tensor) -> bool:
    """Tell whether all rows of a block, which are the same row, have the same outputs to the bit."""
    return torch.equal(outputs, outputs[:, :1].expand_as(outputs))


def _fastest(compute: Callable[[], torch.Tensor]) -> float:
    times = []
    for _ in range(_TRIALS):
        started = time.perf_counter()
        compute().cpu()  # waits for the GPU, if there is one
        times.append(time.perf_counter() - started)
    return min(times)
