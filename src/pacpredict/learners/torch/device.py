"""Where networks are computed, and how to make that repeatable."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from pacpredict.exceptions import DeviceUnavailable

# Training sets switches and draws random numbers that belong to the whole process: one training at a time in each.
_training = threading.Lock()


def default_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def check_device(name: str) -> None:
    if name == "cuda" and not torch.cuda.is_available():
        raise DeviceUnavailable(
            "the networks shall be trained on a GPU (device=cuda), and PyTorch finds none here: train with device=cpu, "
            "or where there is one"
        )


@contextmanager
def repeatable_training() -> Iterator[None]:
    """Compute in one thread, with algorithms that give the same bits every time, and leave no trace.

    The number of threads decides in which order sums are formed, so it has to be the same wherever a model is trained.
    """
    # cuBLAS reads this when it is first used; without it PyTorch refuses its deterministic mode.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    with _training, one_thread(), torch.random.fork_rng():
        was_strict = torch.are_deterministic_algorithms_enabled()
        was_searching = torch.backends.cudnn.benchmark
        torch.use_deterministic_algorithms(mode=True)
        torch.backends.cudnn.benchmark = False
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(mode=was_strict)
            torch.backends.cudnn.benchmark = was_searching


@contextmanager
def one_thread() -> Iterator[None]:
    """Let PyTorch compute in the calling thread alone; each thread has its own number."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
