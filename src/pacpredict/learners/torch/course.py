"""The training of one network, step by step: repeatable to the bit, wherever it was interrupted.

Whatever a step draws at random (the order of records, augmentation, dropout) follows from the seed and the number of
the step alone. So a state is the parameters, what the optimizer remembers and how many steps are done; the rest of the
training is a function of it.
"""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import nn

from pacpredict.exceptions import TrainingDiverged
from pacpredict.learners.journal import Journal, Stage
from pacpredict.learners.torch import weights
from pacpredict.learners.torch.schedule import Rate
from pacpredict.learners.torch.weights import Tensors
from pacpredict.types import IntArray

# What random numbers are drawn for: each use has a stream of its own.
_ORDER, _STEP = 0, 1


class Problem(Protocol):
    """What is learned."""

    @property
    def n_records(self) -> int:
        """How many records are trained on."""

    def loss(self, batch: IntArray, generator: np.random.Generator) -> torch.Tensor:
        """Return the mean loss of some records, by their numbers."""

    def accuracy(self) -> float | None:
        """Return the share of held-out records that the network gets right; None if none were held out."""


class Plan(NamedTuple):
    """How long and in which steps."""

    n_epochs: int
    batch: int
    rate: Rate
    clip: float = math.inf  # the largest norm of a gradient
    patience: int | None = None  # stop after so many epochs without a better accuracy, and return to the best
    mixed: bool = False  # compute in half precision where that is safe


class Outcome(NamedTuple):
    state: Tensors
    notes: dict[str, Any]


@dataclass
class _Best:
    """The most accurate state so far; the first among equals."""

    accuracy: float = -1.0
    epoch: int = 0
    state: Tensors = field(default_factory=dict)


class Course:
    def __init__(
        self, network: nn.Module, optimizer: torch.optim.Optimizer, problem: Problem, plan: Plan, seed: int
    ) -> None:
        self._network, self._optimizer, self._problem, self._plan, self._seed = (
            network,
            optimizer,
            problem,
            plan,
            seed,
        )
        self._device = next(network.parameters()).device.type
        # Half precision on a GPU loses small gradients unless the loss is scaled; bfloat16 on a CPU does not.
        self._scaler = torch.amp.GradScaler(self._device, enabled=plan.mixed and self._device == "cuda")
        self._steps_per_epoch = steps_per_epoch(problem.n_records, plan.batch)
        self._n_steps = plan.n_epochs * self._steps_per_epoch
        self._step = 0
        self._best = _Best()

    def run(self, journal: Journal) -> Outcome:
        """Train from the beginning, or from the state that the journal has kept."""
        if (kept := journal.kept()) is not None:
            self._go_on_from(kept)
        while self._step < self._n_steps and not self._is_over():
            loss = self._take_step()
            if self._step % self._steps_per_epoch == 0:
                self._end_epoch(loss)
            journal.keep(self._state)
            journal.report(lambda loss=loss: self._stage(loss))  # type: ignore[misc]
        notes = {"epochs": self._step // self._steps_per_epoch}
        if self._best.epoch:
            notes |= {"best_epoch": self._best.epoch}
            return Outcome(self._best.state, notes)
        return Outcome(_copy(self._network), notes)

    def _take_step(self) -> torch.Tensor:
        epoch, at = divmod(self._step, self._steps_per_epoch)
        order = self._generator(_ORDER, epoch).permutation(self._problem.n_records)
        batch = order[at * self._plan.batch : (at + 1) * self._plan.batch]
        generator = self._generator(_STEP, self._step)
        torch.manual_seed(int(generator.integers(2**63)))  # of dropout
        for group in self._optimizer.param_groups:
            group["lr"] = self._plan.rate(self._step)
        self._network.train()
        self._optimizer.zero_grad()
        half = torch.float16 if self._device == "cuda" else torch.bfloat16
        with torch.autocast(self._device, dtype=half, enabled=self._plan.mixed):
            loss = self._problem.loss(batch, generator)
        self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        self._scaler.unscale_(self._optimizer)
        if self._plan.clip < math.inf:
            nn.utils.clip_grad_norm_(self._network.parameters(), self._plan.clip)
        self._scaler.step(self._optimizer)
        self._scaler.update()
        self._step += 1
        return loss.detach()

    def _end_epoch(self, loss: torch.Tensor) -> None:
        if not torch.isfinite(loss):
            raise TrainingDiverged(
                f"the loss of a network became {loss.item()} by epoch {self._step // self._steps_per_epoch}: "
                "lower the learning rate"
            )
        if (accuracy := self._problem.accuracy()) is not None and accuracy > self._best.accuracy:
            self._best = _Best(accuracy, self._step // self._steps_per_epoch, _copy(self._network))

    def _is_over(self) -> bool:
        if self._plan.patience is None or not self._best.epoch:
            return False
        return self._step // self._steps_per_epoch - self._best.epoch >= self._plan.patience

    def _generator(self, purpose: int, number: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, purpose, number])

    def _stage(self, loss: torch.Tensor) -> Stage:
        epoch = (self._step - 1) // self._steps_per_epoch + 1
        return Stage(epoch, self._plan.n_epochs, float(loss), self._step / self._n_steps)

    def _state(self) -> bytes:
        memories = self._optimizer.state_dict()["state"]
        tensors = {
            **_prefixed("network", self._network.state_dict()),
            **_prefixed("best", self._best.state),
            **{
                f"optimizer/{i}/{name}": value
                for i, memory in memories.items()
                for name, value in memory.items()
                if value is not None
            },
        }
        best = {"accuracy": self._best.accuracy, "epoch": self._best.epoch}
        about = {"step": self._step, "best": best, "scaler": self._scaler.state_dict()}
        return weights.to_bytes(tensors, about)

    def _go_on_from(self, state: bytes) -> None:
        tensors, about = weights.from_bytes(state)
        self._network.load_state_dict(_below("network", tensors))
        memories: dict[int, dict[str, torch.Tensor]] = {}
        for name, tensor in _below("optimizer", tensors).items():
            i, _, what = name.partition("/")
            memories.setdefault(int(i), {})[what] = tensor
        self._optimizer.load_state_dict({**self._optimizer.state_dict(), "state": memories})
        if about["scaler"]:
            self._scaler.load_state_dict(about["scaler"])
        self._step = about["step"]
        self._best = _Best(**about["best"], state=_below("best", tensors))


def steps_per_epoch(n_records: int, batch: int) -> int:
    return -(-n_records // batch)


def _copy(network: nn.Module) -> Tensors:
    return {name: tensor.detach().cpu().clone() for name, tensor in network.state_dict().items()}


def _prefixed(prefix: str, tensors: Tensors) -> Tensors:
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}


def _below(prefix: str, tensors: Tensors) -> Tensors:
    start = f"{prefix}/"
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}
