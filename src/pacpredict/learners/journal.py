"""What a training that takes hours leaves on its way: how far it is, and a state from which it can go on.

A model is the same whatever journal is kept, and however often its training was interrupted.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol


class Stage(NamedTuple):
    """How far the training of one model is."""

    epoch: int  # the one that is being done, from 1
    n_epochs: int
    loss: float
    share: float  # of all steps, those that are done


class Journal(Protocol):
    """Takes functions, which it calls only when it is time to write again."""

    def kept(self) -> bytes | None:
        """Return the state that was kept last, if there is one and it is whole."""

    def keep(self, state: Callable[[], bytes]) -> None:
        """Keep a state in place of the one before."""

    def report(self, stage: Callable[[], Stage]) -> None:
        """Tell whoever watches."""


class NoJournal:
    """For trainings that are over soon, or whose owner bears to begin anew."""

    def kept(self) -> bytes | None:
        return None

    def keep(self, state: Callable[[], bytes]) -> None:
        pass

    def report(self, stage: Callable[[], Stage]) -> None:
        pass
