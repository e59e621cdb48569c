"""The votes of m models that are spread over the actors of a Ray cluster, when one machine cannot hold them.

A vote needs all of them. If an actor is lost, or says nothing any more, it is replaced and gets its models again, from
the files of the artifact; meanwhile whoever asks waits, and is refused after a while. There is no vote of fewer models.

Actors know the models, not the secret: ledger, belief and noise stay in the process that answers.
"""

import threading
import time
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from pacpredict.exceptions import PacPredictError, VotersUnavailable
from pacpredict.learners.learner import Prepared
from pacpredict.learners.registry import learner_of_config
from pacpredict.npz import Arrays
from pacpredict.rows.kind import AnySchema
from pacpredict.training.cluster import Cluster, connect, library
from pacpredict.types import IntArray, Votes

_BETWEEN_LOOKS = 0.05
# Ray puts an actor where there is room: for the files of its models, and once more for what is made of them.
_MEMORY_PER_BYTE = 2
_BETWEEN_ATTEMPTS = 1.0
# An actor that was asked and has voted on nothing for this share of the patience hangs: one that is only busy, with the
# questions of other threads, votes on one after another. It is not all of it, since whoever asks may first have waited.
_SILENCE = 0.5
# Ray itself may hang, and some of its calls take no limit. What it holds up is left to a thread of its own, of which
# there are no more at a time; whoever asks waits this much longer, for actors to be named that did not vote.
_MOST_QUESTIONS = 256
_GRACE = 1.0


class Stored(NamedTuple):
    """What actors must know: the learner's configuration, each model as its file has it, and what it votes for."""

    config: dict[str, Any]
    files: Sequence[bytes | None]
    sizes: Sequence[int]  # of these, in bytes
    classes: Sequence[IntArray]
    n_classes: int
    schema: AnySchema


class Spread:
    """A voter whose models are elsewhere. Close it when it is not needed any more."""

    # Seconds that a question waits for votes, or for an actor to be replaced, and a start for the next model to be
    # loaded.
    patience = 60.0

    def __init__(self, cluster: Cluster, stored: Stored) -> None:
        self._had_connection = library().is_initialized()
        self._ray = library() if self._had_connection else connect(cluster)
        self._n_models = len(stored.files)
        self._questions = threading.BoundedSemaphore(_MOST_QUESTIONS)
        n_actors = cluster.actors or int(self._ray.cluster_resources().get("CPU", 1))
        n_parts = max(1, min(self._n_models, n_actors))
        shares = np.array_split(np.arange(self._n_models), n_parts)
        self._parts = [_Part(self._ray, cluster, stored, share.tolist()) for share in shares]
        try:
            self._await_all()
        except PacPredictError:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"Spread({self._n_models} models over {len(self._parts)} actors)"

    def votes(self, prepared: Prepared, n_threads: int = 1) -> Votes:  # noqa: ARG002  # actors have their own
        """Return the label index of each model for each row (n_rows, n_models)."""
        deadline = time.monotonic() + self.patience
        outcome: SimpleQueue[Votes | BaseException] = SimpleQueue()
        if not self._questions.acquire(blocking=False):
            raise _silent()

        def ask() -> None:
            try:
                outcome.put(self._ask(prepared, deadline))
            except BaseException as problem:  # noqa: BLE001  # whoever waits is told
                outcome.put(problem)
            finally:
                self._questions.release()

        threading.Thread(target=ask, daemon=True).start()
        try:
            found = outcome.get(timeout=max(0.0, deadline - time.monotonic()) + _GRACE)
        except Empty:
            raise _silent() from None
        if isinstance(found, BaseException):
            raise found
        return found

    def _ask(self, prepared: Prepared, deadline: float) -> Votes:
        shared = self._ray.put(prepared)
        votes = np.empty((prepared.shape[0], self._n_models), np.int16)  # sparse rows have no length
        missing = self._parts
        while missing:
            actors = [(part, part.actor(deadline)) for part in missing]
            asked = time.monotonic()
            if asked > deadline:
                raise VotersUnavailable(
                    "some models did not vote in time: there is no answer without all of them"
                )
            answers = [(part, actor, actor.votes.remote(shared)) for part, actor in actors]
            missing = [
                part
                for part, actor, answer in answers
                if not part.take_down(actor, answer, asked, deadline, votes)
            ]
        return votes

    def arrays(self) -> Arrays:
        return {}

    def close(self) -> None:
        for part in self._parts:
            part.close()
        if not self._had_connection:
            self._ray.shutdown()

    def _await_all(self) -> None:
        """Wait until all actors have their models; as long as models are loaded there is no hurry."""
        seen, since = -1, time.monotonic()
        while not all(part.is_ready for part in self._parts):
            if (n_loaded := sum(part.n_loaded for part in self._parts)) != seen:
                seen, since = n_loaded, time.monotonic()
            if time.monotonic() - since > self.patience:
                left = self._ray.available_resources()
                raise VotersUnavailable(
                    f"{n_loaded} of {self._n_models} models found a place on the cluster within "
                    f"{self.patience:g} s, and then no more; it has {left.get('CPU', 0):g} CPUs, "
                    f"{left.get('GPU', 0):g} GPUs and {left.get('memory', 0) / 1e9:.1f} GB left"
                )
            time.sleep(_BETWEEN_LOOKS)


def _silent() -> VotersUnavailable:
    return VotersUnavailable("Ray does not answer: there is no answer without the votes of all models")


class _Actor:
    """Holds some of the models, on some node."""

    def __init__(self, config: dict[str, Any], n_classes: int, schema: AnySchema) -> None:
        self._learner, self._n_classes, self._schema = learner_of_config(config), n_classes, schema
        self._models: list[Any] = []
        self._classes: list[IntArray] = []
        self._voter: Any = None

    def take(self, file: bytes | None, classes: IntArray) -> None:
        self._models.append(None if file is None else self._learner.load(file))
        self._classes.append(classes)

    def gather(self) -> None:
        self._voter = self._learner.voter(self._models, self._classes, self._n_classes, self._schema)
        self._models = []  # a voter that needs them has them

    def votes(self, prepared: Prepared) -> Votes:
        return np.asarray(self._voter.votes(prepared), np.int16)


class _Part:
    """The models of one actor, and the actor that has them now, if there is one."""

    def __init__(self, ray: Any, cluster: Cluster, stored: Stored, models: list[int]) -> None:
        self._ray, self._stored, self._models = ray, stored, models
        self._kind = ray.remote(_Actor).options(
            num_cpus=cluster.cpus_per_model,
            num_gpus=cluster.gpus_per_model,
            memory=_MEMORY_PER_BYTE * sum(stored.sizes[i] for i in models),
            scheduling_strategy="SPREAD",
        )
        self._changed = threading.Condition()
        self._actor: Any = None
        self._starting: Any = None
        self._problem: PacPredictError | None = None
        self._is_closed = False
        self._heard = 0.0  # when an actor last voted
        self.n_loaded = 0
        self._load_in_background()

    @property
    def is_ready(self) -> bool:
        with self._changed:
            if self._problem is not None:
                raise self._problem
            return self._actor is not None

    def actor(self, deadline: float) -> Any:
        """Return the actor, when it has its models."""
        with self._changed:
            self._changed.wait_for(lambda: self._actor or self._problem, deadline - time.monotonic())
            if self._problem is not None:
                raise self._problem
            if self._actor is None:
                raise VotersUnavailable(
                    "some models are not back yet: there is no answer without all of them"
                )
            return self._actor

    def take_down(self, actor: Any, answer: Any, asked: float, deadline: float, votes: Votes) -> bool:
        """Write the votes of these models into their columns; False if there are none, and others must be asked for.

        An actor that is gone, or hangs, is replaced.
        """
        errors = self._ray.exceptions
        try:
            voted = self._ray.get(answer, timeout=max(0.0, deadline - time.monotonic()))
        except errors.RayActorError:
            self._lose(actor)
            return False
        except errors.GetTimeoutError:
            if time.monotonic() - max(asked, self._heard) >= _SILENCE * Spread.patience:
                self._lose(actor)
            return False
        except errors.RayTaskError as problem:
            if isinstance(problem.cause, PacPredictError):
                raise problem.cause from None
            raise
        self._heard = time.monotonic()
        if voted.shape != (len(votes), len(self._models)):
            raise VotersUnavailable("an actor voted for other models than its own")
        votes[:, self._models] = voted
        return True

    def close(self) -> None:
        """Let the actor go, also one that waits for its place or its models."""
        with self._changed:
            self._is_closed = True
            for actor in {self._actor, self._starting} - {None}:
                self._ray.kill(actor)
        self._loader.join()

    def _lose(self, actor: Any) -> None:
        with self._changed:
            if actor is not self._actor:
                return  # somebody else has noticed
            self._actor, self.n_loaded = None, 0
        self._load_in_background(actor)

    def _load_in_background(self, lost: Any = None) -> None:
        self._loader = threading.Thread(target=self._load, args=[lost], daemon=True)
        self._loader.start()

    def _load(self, lost: Any) -> None:
        """Start an actor and give it its models, one after another, until that succeeds."""
        if lost is not None:  # if it hangs, or is only out of reach, it would keep the place of the next
            self._ray.kill(lost)
        while (actor := self._start()) is not None:
            try:
                self._fill(actor)
            except (self._ray.exceptions.RayActorError, self._ray.exceptions.GetTimeoutError):
                pass
            except Exception as problem:  # noqa: BLE001  # whoever asks is told, until its cause is gone
                self._fail(problem)
            else:
                self._settle(actor)
                return
            self._ray.kill(actor)  # it would keep the place of the next
            time.sleep(_BETWEEN_ATTEMPTS)

    def _start(self) -> Any:
        with self._changed:
            if self._is_closed:
                return None
            stored = self._stored
            self._starting = self._kind.remote(stored.config, stored.n_classes, stored.schema)
            return self._starting

    def _fill(self, actor: Any) -> None:
        stored, self.n_loaded = self._stored, 0
        for i in self._models:  # one at a time: all of them at once may be more than the object store holds
            self._ray.get(actor.take.remote(stored.files[i], stored.classes[i]), timeout=Spread.patience)
            self.n_loaded += 1
        self._ray.get(actor.gather.remote(), timeout=Spread.patience)

    def _settle(self, actor: Any) -> None:
        with self._changed:
            self._actor, self._starting, self._problem = actor, None, None
            self._changed.notify_all()

    def _fail(self, problem: Exception) -> None:
        cause = getattr(problem, "cause", problem)
        if not isinstance(cause, PacPredictError):
            cause = VotersUnavailable(f"models cannot be loaded on the cluster: {cause}")
        with self._changed:
            self._problem = cause
            self._changed.notify_all()
