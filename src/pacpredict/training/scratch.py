"""Where trainings that take hours leave their journals: a folder that does not stay.

training/000.state        from where the training of model 0 can go on, with its SHA-256 before it
training/000.stage.json   how far it is
"""

import hashlib
import json
import math
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from pacpredict.files import write_whole
from pacpredict.learners.journal import Stage

# A state of the largest network takes about a second to write: once a minute it costs little.
SECONDS_BETWEEN_STATES = 60.0
_SECONDS_BETWEEN_STAGES = 1.0
_DIGEST = 32  # bytes


class Desk(Protocol):
    """Takes down what journals of several models are given."""

    @property
    def seconds(self) -> float:
        """Return how long a model goes on before its state is written down again."""

    def kept(self, model: int) -> bytes | None: ...

    def keep(self, model: int, state: bytes) -> None: ...

    def report(self, model: int, stage: Stage) -> None: ...


class Scratch:
    """The journals of all models of one fit."""

    def __init__(self, folder: Path, seconds: float = SECONDS_BETWEEN_STATES) -> None:
        self.folder = folder
        self.seconds = seconds
        folder.mkdir(exist_ok=True)

    def kept(self, model: int) -> bytes | None:
        """Return the state of a model; one that was damaged counts for none, since it can be computed again."""
        with suppress(FileNotFoundError):
            stored = self._state(model).read_bytes()
            digest, state = stored[:_DIGEST], stored[_DIGEST:]
            return state if hashlib.sha256(state).digest() == digest else None
        return None

    def keep(self, model: int, state: bytes) -> None:
        write_whole(self._state(model), hashlib.sha256(state).digest() + state)

    def report(self, model: int, stage: Stage) -> None:
        path = self._stage(model)
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(stage))
        draft.replace(path)  # whoever reads finds one or the other; after a power cut it does not matter

    def stages(self) -> Mapping[int, Stage]:
        """Return how far models are that were begun and not finished."""
        found: dict[int, Stage] = {}
        for path in sorted(self.folder.glob("*.stage.json")):
            with suppress(
                FileNotFoundError, ValueError, TypeError
            ):  # finished just now, or torn by a power cut
                found[int(path.name.partition(".")[0])] = Stage(*json.loads(path.read_text()))
        return found

    def forget(self, model: int) -> None:
        """Remove what was left of a model that is finished."""
        for path in (self._state(model), self._stage(model)):
            path.unlink(missing_ok=True)

    def remove(self) -> None:
        shutil.rmtree(self.folder)

    def _state(self, model: int) -> Path:
        return self.folder / f"{model:03d}.state"

    def _stage(self, model: int) -> Path:
        return self.folder / f"{model:03d}.stage.json"


class Paced:
    """Calls what it is given not more often than every so many seconds, the first time after these or at once."""

    def __init__(self, seconds: float, *, at_once: bool = False) -> None:
        self._seconds = seconds
        self._last = -math.inf if at_once else time.monotonic()

    def __call__(self, act: Callable[[], None]) -> None:
        if time.monotonic() - self._last >= self._seconds:
            act()
            self._last = time.monotonic()


class PacedJournal:
    """The journal of one model, on a desk where each thing is written down every so many seconds."""

    def __init__(self, desk: Desk, model: int) -> None:
        self._desk, self._model = desk, model
        self._states, self._stages = Paced(desk.seconds), Paced(_SECONDS_BETWEEN_STAGES, at_once=True)

    def kept(self) -> bytes | None:
        return self._desk.kept(self._model)

    def keep(self, state: Callable[[], bytes]) -> None:
        self._states(lambda: self._desk.keep(self._model, state()))

    def report(self, stage: Callable[[], Stage]) -> None:
        self._stages(lambda: self._desk.report(self._model, stage()))
