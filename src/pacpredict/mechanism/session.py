"""Algorithm 1 as a state machine: ask, and get an answer that is on the ledger before you see it."""

import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pacpredict.core.belief import Belief
from pacpredict.core.calibrate import calibrate
from pacpredict.core.decode import Decoder, check_decoder
from pacpredict.core.release import REPLAY, answer_votes, count_voted
from pacpredict.core.scalars import check_model_count
from pacpredict.core.validate import MOST_CLASSES, FloatArray, Votes, check_outputs, check_votes
from pacpredict.exceptions import (
    InvalidBelief,
    InvalidBudget,
    InvalidInput,
    InvalidVotes,
    LedgerConflict,
    LedgerError,
)
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.entropy import NormalSource, SystemEntropy
from pacpredict.mechanism.guarantee import Guarantee
from pacpredict.mechanism.ledger import Entry, Ledger, MemoryLedger, State
from pacpredict.mechanism.secret import Secret


class Release(NamedTuple):
    """An answer: the label, its number in the history and what it was charged, in nats."""

    sequence: int
    label: int
    charge: float


class Session:
    """Answers questions about one secret, each noised to what an all-knowing adversary believes by now.

    Parameters
    ----------
    n_classes
        Labels are 0 to n_classes - 1.
    budget
        What may be revealed per release and in all.
    prior
        The distribution that the secret was drawn from: a number of models for the uniform one, or a belief.
    secret
        By default drawn from the prior. Give the old one to continue from a ledger or a snapshot.
    decode
        `"argmax"` (the paper's) or `"map"`, which is more accurate; docs/threat-model.md says what it means.
    ledger
        Where the session continues and records. By default in memory.
    snapshot
        A state to continue from, of this secret and prior; only with a ledger that is still empty.
    generator
        A seeded generator makes an experiment repeatable. Without one, the secret and the noise come from the
        operating system's entropy, as they must when answers leave the building.
    """

    def __init__(
        self,
        n_classes: int,
        budget: Budget,
        prior: int | Belief = 128,
        *,
        secret: Secret | None = None,
        decode: Decoder = "argmax",
        ledger: Ledger | None = None,
        snapshot: State | None = None,
        generator: np.random.Generator | None = None,
    ) -> None:
        if not hasattr(n_classes, "__index__") or not 2 <= n_classes <= MOST_CLASSES:
            raise InvalidInput(f"n_classes must be an integer from 2 to {MOST_CLASSES}, got {n_classes!r}")
        self.prior = prior if isinstance(prior, Belief) else Belief.uniform(check_model_count(prior))
        check_model_count(self.prior.n_models)
        self.n_classes = int(n_classes)
        self.budget = budget
        self._decoder = check_decoder(decode)
        self._ledger = MemoryLedger() if ledger is None else ledger
        recorded = self._ledger.load()
        self._state = _first_state(recorded, snapshot, self.prior, budget)
        self._secret = _settle_secret(secret, self._state, self.prior, generator)
        self._normals: NormalSource = SystemEntropy() if generator is None else generator
        self._lock = threading.Lock()  # one deployment has one belief: releases are serial
        if recorded is None:
            self._ledger.commit([], self._state)

    @property
    def belief(self) -> Belief:
        return Belief(self._state.log_belief)

    def snapshot(self) -> State:
        """Return the state after the last release. A seeded generator's own state is the caller's to keep."""
        return self._state

    def guarantee(self, prior: float = 0.5) -> Guarantee:
        """Bound the success of any attack with this prior (0.5: is a given record in the training set?)."""
        return Guarantee.of(self.budget, self._state, prior)

    def answer(self, votes: npt.ArrayLike) -> Release:
        """Answer one query, given the labels of all models (n_models,)."""
        row = check_votes(votes, self.n_classes, self.prior.n_models)
        if row.shape[0] != 1:
            raise InvalidVotes(f"answer takes one query, got {row.shape[0]}; use answer_all")
        return self._answer(row)[0]

    def answer_all(self, votes: npt.ArrayLike) -> list[Release]:
        """Answer queries (n_queries, n_models) in turn; all of them, or none if the budget is short."""
        return self._answer(check_votes(votes, self.n_classes, self.prior.n_models))

    def release(self, outputs: npt.ArrayLike) -> FloatArray:
        """Release a noisy vector, given the outputs of all models (n_models, n_outputs).

        For statistics and iterative algorithms inside the owner's walls; the server releases labels only.
        """
        y = check_outputs(outputs, self.prior.n_models)
        contested = bool((y != y[0]).any())
        with self._lock:
            state = self._state
            charged = self.budget.charge([contested], state.spent_steps)[0]
            released, belief, question, record = y[0].copy(), self.belief, None, None
            if contested:
                noise = calibrate(y, belief, self.budget.step)
                noisy = noise.draw(self._secret.reveal(), self._draw(noise.variances.size))
                released, belief = noise.vector(noisy), belief.updated(noise.log_likelihood(noisy))
                question, record = y, noisy
            entry = Entry(state.sequence + 1, charged, None, question, record)
            self._commit([entry], int(contested), belief.log_probabilities)
        return released

    def _answer(self, votes: Votes) -> list[Release]:
        n_voted: list[int] = count_voted(votes, self.n_classes).tolist()
        with self._lock:
            before = self._state
            charged = self.budget.charge([k > 1 for k in n_voted], before.spent_steps)
            sizes = [
                k - 1 for k in n_voted
            ]  # of the release: one noisy coordinate less than classes voted for
            contested = len(sizes) - sizes.count(0)
            noisy, log_belief = np.empty(sum(sizes)), before.log_belief.copy()
            normals = self._draw(noisy.size)
            labels = answer_votes(
                votes, self.n_classes, self._secret.reveal(), self.budget.step, normals, log_belief, noisy
            )[self._decoder].tolist()
            self._commit(
                _entries(before.sequence, votes, sizes, charged, labels, noisy), contested, log_belief
            )
        first, step = before.sequence + 1, self.budget.step
        return [
            Release(first + q, label, steps * step)
            for q, (label, steps) in enumerate(zip(labels, charged, strict=True))
        ]

    def _draw(self, size: int) -> FloatArray:
        normals = self._normals.standard_normal(size)
        if normals.shape != (size,):
            raise InvalidInput(f"the source of noise gave {normals.shape} numbers instead of {size}")
        return normals

    def _commit(self, entries: Sequence[Entry], contested: int, log_belief: FloatArray) -> None:
        """Record first, then remember: if the ledger refuses, nothing has happened."""
        before = self._state
        after = State(
            before.sequence + len(entries),
            before.contested + contested,
            before.spent_steps + sum([entry.charged_steps for entry in entries]),
            log_belief,
            self.budget.step,
        )
        self._ledger.commit(entries, after)
        self._state = after


def _first_state(recorded: State | None, snapshot: State | None, prior: Belief, budget: Budget) -> State:
    """Choose the state to continue from, and refuse one that no session of this prior can have left."""
    if recorded is not None and snapshot is not None:
        raise LedgerConflict("the ledger has a state of its own: pass a snapshot or a used ledger, not both")
    state = recorded or snapshot
    if state is None:
        return State(0, 0, 0, prior.log_probabilities.copy(), budget.step)
    if state.log_belief.shape != prior.log_probabilities.shape:
        raise InvalidBelief(
            f"the state is about {state.log_belief.size} models, this session about {prior.n_models}"
        )
    if state.step not in (None, budget.step):
        raise InvalidBudget(
            f"the state was charged in steps of {state.step!r} nats; steps of {budget.step!r} would count what is "
            "spent anew: continue with the old step budget"
        )
    Belief(state.log_belief)  # refuses what is no distribution
    if not (0 <= state.contested <= state.sequence and 0 <= state.spent_steps <= state.sequence):
        raise InvalidInput(
            f"the state counts {state.sequence} releases, {state.contested} contested and {state.spent_steps} "
            "charged, which no session can have left; restore it from the ledger"
        )
    return state


def _settle_secret(
    secret: Secret | None, state: State, prior: Belief, generator: np.random.Generator | None
) -> Secret:
    if secret is None and state.sequence:
        raise InvalidInput("this history has a secret already: pass it; a new one would void the guarantee")
    if secret is not None and secret.n_models != prior.n_models:
        raise InvalidInput(
            f"the secret is one of {secret.n_models} models, this session has {prior.n_models}"
        )
    return Secret.draw(prior, generator) if secret is None else secret


def _entries(
    sequence: int, votes: Votes, sizes: list[int], charged: list[int], labels: list[int], noisy: FloatArray
) -> list[Entry]:
    votes.setflags(write=False)
    noisy.setflags(write=False)
    entries, read = [], 0
    for q, (size, steps, label) in enumerate(zip(sizes, charged, labels, strict=True)):
        question, record = (votes[q], noisy[read : read + size]) if size else (None, None)
        entries.append(Entry(sequence + 1 + q, steps, label, question, record))
        read += size
    return entries


def replay(entries: Iterable[Entry], n_classes: int, step_budget: float, prior: Belief) -> State:
    """Recompute the state from a ledger's entries, bit for bit."""
    log_belief = prior.log_probabilities.copy()
    sequence = contested = spent = 0
    for entry in entries:
        if entry.sequence != sequence + 1:
            raise LedgerError(f"entry {entry.sequence} follows entry {sequence}: the history is not complete")
        sequence, spent = entry.sequence, spent + entry.charged_steps
        if entry.question is None or entry.noisy is None:
            continue
        contested += 1
        if entry.label is None:
            noise = calibrate(entry.question, Belief(log_belief), step_budget)
            _check_size(entry, noise.variances.size)
            log_belief = (
                Belief(log_belief).updated(noise.log_likelihood(entry.noisy)).log_probabilities.copy()
            )
        else:
            votes = check_votes(entry.question, n_classes, prior.n_models)
            _check_size(entry, int(count_voted(votes, n_classes)[0]) - 1)
            answer_votes(votes, n_classes, REPLAY, step_budget, np.empty(0), log_belief, entry.noisy.copy())
    return State(sequence, contested, spent, log_belief, step_budget)


def _check_size(entry: Entry, size: int) -> None:
    if entry.noisy is None or entry.noisy.shape != (size,):
        raise LedgerError(f"entry {entry.sequence} is damaged: its release does not have {size} numbers")
