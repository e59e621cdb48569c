"""The votes of m networks, from memory as far as they fit and otherwise from their files."""

import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import nn

from pacpredict.exceptions import InvalidModel
from pacpredict.learners.learner import Prepared
from pacpredict.learners.torch import weights
from pacpredict.learners.torch.device import one_thread
from pacpredict.learners.torch.memory import total_memory
from pacpredict.learners.torch.ways import Inputs, Shape, Stack, Way, Ways
from pacpredict.learners.torch.weights import Tensors
from pacpredict.npz import Arrays
from pacpredict.types import IntArray, Votes
from pacpredict.votes.threads import run_together

_STACKED = 8  # networks that are tried as one; of the largest they take 1.2 GB


class Form(NamedTuple):
    """What tells networks apart before their parameters do."""

    shape: Shape
    reader: bytes = b""  # what is needed to read rows, such as a vocabulary


class Group(NamedTuple):
    """Rows whose inputs have the same shape."""

    rows: IntArray
    inputs: Inputs


class Architecture(Protocol):
    """What the voter must know of a kind of networks."""

    def split(self, stored: Tensors) -> tuple[Form, Tensors]:
        """Return the form and the parameters of a network that was stored."""

    def skeleton(self, shape: Shape) -> nn.Module:
        """Return a network, ready to answer, whose parameters have no values."""

    def groups(self, reader: bytes, prepared: Prepared) -> list[Group]:
        """Turn prepared rows into inputs."""


class _Party(NamedTuple):
    """Some networks of one form."""

    models: list[int]
    form: Form
    stack: Stack


class Networks:
    """m networks. As many as fit are kept in memory, the others are read whenever they vote."""

    def __init__(
        self,
        architecture: Architecture,
        models: Sequence[bytes | None],
        classes: Sequence[IntArray],
        *,
        device: str = "cpu",
        memory: int | None = None,
        way: Way | None = None,
    ) -> None:
        """By default half of the machine's memory is for networks, and the way is measured."""
        self._architecture, self._models, self._device = architecture, models, device
        self._classes = [np.asarray(own, np.int16) for own in classes]
        self._memory = total_memory() // 2 if memory is None else memory
        self._ways = Ways(architecture.skeleton, way)
        self._kept: list[_Party] | None = None
        self._others: list[int] = []
        self._loading = threading.Lock()
        self._expected: dict[Shape, dict[str, tuple[torch.Size, torch.dtype]]] = {}

    def __repr__(self) -> str:
        n_kept = sum(len(party.models) for party in self._kept or ())
        return f"Networks({len(self._models)} on {self._device}, {n_kept} of them in memory)"

    def votes(self, prepared: Prepared, n_threads: int = 1) -> Votes:
        """Return the label index of each network for each row (n_rows, n_models)."""
        votes = np.empty((len(prepared), len(self._models)), np.int16)
        for i, own in enumerate(self._classes):
            if len(own) == 1:  # no network: its subset has one class
                votes[:, i] = own[0]
        parties = self._parties() if len(prepared) else iter(())
        groups: dict[bytes, list[Group]] = {}
        turn = threading.Lock()

        def work() -> None:
            with one_thread(), torch.inference_mode():
                while True:
                    with turn:  # whoever is free takes the next
                        party = next(parties, None)
                        if party is None:
                            return
                        reader = party.form.reader
                        if reader not in groups:
                            groups[reader] = self._architecture.groups(reader, prepared)
                    for rows, inputs in groups[reader]:
                        self._ask(party, rows, inputs, votes)

        run_together([work] * max(1, n_threads))
        return votes

    def arrays(self) -> Arrays:
        return {}

    def _ask(self, party: _Party, rows: IntArray, inputs: Inputs, votes: Votes) -> None:
        inputs = tuple(values.to(self._device) for values in inputs)
        best = self._ways.outputs(party.stack, inputs).argmax(dim=2).cpu().numpy()
        for i, voted in zip(party.models, best, strict=True):
            votes[rows, i] = self._classes[i][voted]

    def _parties(self) -> Iterator[_Party]:
        with self._loading:
            if self._kept is None:
                asked = [i for i, own in enumerate(self._classes) if len(own) > 1]
                n_kept = self._memory // max([1, *(len(self._models[i] or b"") for i in asked[:1])])
                self._kept = list(self._gather(asked[:n_kept], _STACKED))
                self._others = asked[n_kept:]
                if not self._others:
                    self._models = [None] * len(self._models)  # their bytes are not needed any more
        yield from self._kept
        yield from self._gather(self._others, 1)

    def _gather(self, models: Sequence[int], most: int) -> Iterator[_Party]:
        """Put networks of the same form together, up to `most` at a time."""
        waiting: dict[Form, dict[int, Tensors]] = {}
        for i in models:
            form, parameters = self._read(i)
            mates = waiting.setdefault(form, {})
            mates[i] = parameters
            if len(mates) == most:
                yield self._party(form, waiting.pop(form))
        for form, mates in waiting.items():
            yield self._party(form, mates)

    def _party(self, form: Form, mates: dict[int, Tensors]) -> _Party:
        return _Party(list(mates), form, Stack.of(form.shape, list(mates.values()), self._device))

    def _read(self, i: int) -> tuple[Form, Tensors]:
        form, parameters = self._architecture.split(weights.from_bytes(self._models[i] or b"").tensors)
        if form.shape not in self._expected:
            self._expected[form.shape] = _outline(self._architecture.skeleton(form.shape).state_dict())
        if _outline(parameters) != self._expected[form.shape]:
            raise InvalidModel(
                "the parameters of a network do not fit its settings; the file is another's or damaged"
            )
        if form.shape[-1] != len(self._classes[i]):
            raise InvalidModel(
                "a network has not as many classes as its subset; the file is another's or damaged"
            )
        return form, parameters


def _outline(parameters: Tensors) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (values.shape, values.dtype) for name, values in parameters.items()}
