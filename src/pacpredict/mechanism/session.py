"""Algorithm 1 as a state machine: ask, and get an answer that is on the ledger before you see it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pacpredict.core.belief import Belief
from pacpredict.core.calibrate import calibrate
from pacpredict.core.decode import Decoder, check_decoder
from pacpredict.core.release import answer_votes, count_voted
from pacpredict.core.scalars import check_model_count
from pacpredict.core.validate import MOST_CLASSES, FloatArray, Votes, check_outputs, check_votes
from pacpredict.exceptions import InvalidInput, InvalidVotes, PacPredictError
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.entropy import NormalSource, SystemEntropy
from pacpredict.mechanism.guarantee import Guarantee
from pacpredict.mechanism.ledger import (
    NO_REQUESTS,
    Answer,
    Entry,
    Failpoints,
    Ledger,
    MemoryLedger,
    State,
    nowhere,
)
from pacpredict.mechanism.request import Asked, Group, Place, Release, Request, Tag, check_request
from pacpredict.mechanism.resume import (
    check_moved_on,
    check_state,
    describe_origin,
    first_state,
    settle_secret,
)
from pacpredict.mechanism.secret import Secret

X = TypeVar("X")
Y = TypeVar("Y")

_UNTAGGED = Tag()


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
        Where the session continues and records. By default in memory. Several sessions of one deployment, also in
        other processes, may share a durable one; each then passes the same secret.
    snapshot
        A state to continue from, of this secret and prior; only with a ledger that is still empty.
    generator
        A seeded generator makes an experiment repeatable. Without one, the secret and the noise come from the
        operating system's entropy, as they must when answers leave the building.
    deployment
        The identity of the artifact that the secret belongs to. A ledger or snapshot of another one is refused.
    at
        Called with `"before-draw"` and `"after-draw"` in each turn, for tests that interrupt a session there.
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
        deployment: str | None = None,
        at: Failpoints = nowhere,
    ) -> None:
        if not hasattr(n_classes, "__index__") or not 2 <= n_classes <= MOST_CLASSES:
            raise InvalidInput(f"n_classes must be an integer from 2 to {MOST_CLASSES}, got {n_classes!r}")
        self.prior = prior if isinstance(prior, Belief) else Belief.uniform(check_model_count(prior))
        check_model_count(self.prior.n_models)
        self.n_classes = int(n_classes)
        self.budget = budget
        self._decoder = check_decoder(decode)
        self._ledger = MemoryLedger() if ledger is None else ledger
        self._normals: NormalSource = SystemEntropy() if generator is None else generator
        self._at = at
        origin = describe_origin(self.prior, self.n_classes)
        self._fresh = State(0, 0, 0, self.prior.log_probabilities.copy(), budget.step, deployment, origin)
        with self._ledger.turn():
            recorded = self._ledger.load()
            self._state = first_state(recorded, snapshot, self._fresh)
            is_new = recorded is None and self._state.sequence == 0
            self._secret = settle_secret(secret, is_new, self.prior, generator)
            if recorded is None:
                self._ledger.commit([], self._state)

    @property
    def belief(self) -> Belief:
        return Belief(self.snapshot().log_belief)

    def snapshot(self) -> State:
        """Return the state after the last release. A seeded generator's own state is the caller's to keep."""
        return self._checked(self._ledger.load())

    def guarantee(self, prior: float = 0.5) -> Guarantee:
        """Bound the success of any attack with this prior (0.5: is a given record in the training set?)."""
        return Guarantee.of(self.budget, self.snapshot(), prior)

    def answer(self, votes: npt.ArrayLike) -> Release:
        """Answer one query, given the labels of all models (n_models,)."""
        row = check_votes(votes, self.n_classes, self.prior.n_models)
        if row.shape[0] != 1:
            raise InvalidVotes(f"answer takes one query, got {row.shape[0]}; use answer_all")
        return self._answer(row)[0]

    def answer_all(self, votes: npt.ArrayLike) -> list[Release]:
        """Answer queries (n_queries, n_models) in turn; all of them, or none if the budget is short."""
        return self._answer(check_votes(votes, self.n_classes, self.prior.n_models))

    def serve(self, requests: Sequence[Request]) -> list[list[Release] | PacPredictError]:
        """Answer the requests of several clients in one turn and one commit.

        Each is answered whole, or as far as the budget goes if it says so, or refused with the error that stands in
        its place; a refused one does not disturb the others. Queries that were answered before, here or by another
        session, get the same answer at no charge. What is raised concerns all of them: nothing was answered.
        """
        asked = [_or_error(self._check, request) for request in requests]
        with self._ledger.turn():
            before = self._resume()
            group = self._group([one for one in asked if isinstance(one, Asked)], before)
            places = [_or_error(group.admit, one) if isinstance(one, Asked) else one for one in asked]
            labels: list[int] = []
            if group.votes:
                votes = np.stack(group.votes)
                labels = self._release(before, votes, group.n_voted, group.charged, group.tags, group.new_ids)
            elif group.new_ids:
                self._ledger.commit([], before, group.new_ids)
        return [
            each if isinstance(each, PacPredictError) else self._fill_in(each, before.sequence + 1, labels)
            for each in places
        ]

    def release(self, outputs: npt.ArrayLike) -> FloatArray:
        """Release a noisy vector, given the outputs of all models (n_models, n_outputs).

        For statistics and iterative algorithms inside the owner's walls; the server releases labels only.
        """
        y = check_outputs(outputs, self.prior.n_models)
        contested = bool((y != y[0]).any())
        with self._ledger.turn():
            state = self._resume()
            charged = self.budget.charge([contested], state.spent_steps)[0]
            released, belief, question, record = y[0].copy(), Belief(state.log_belief), None, None
            if contested:
                noise = calibrate(y, belief, self.budget.step)
                noisy = noise.draw(self._secret.reveal(), self._draw(noise.variances.size))
                released, belief = noise.vector(noisy), belief.updated(noise.log_likelihood(noisy))
                question, record = y, noisy
            entry = Entry(state.sequence + 1, charged, None, question, record)
            self._commit([entry], charged, int(contested), belief.log_probabilities, NO_REQUESTS)
        return released

    def _answer(self, votes: Votes) -> list[Release]:
        n_voted: list[int] = count_voted(votes, self.n_classes).tolist()
        with self._ledger.turn():
            before = self._resume()
            charged = self.budget.charge([k > 1 for k in n_voted], before.spent_steps)
            labels = self._release(before, votes, n_voted, charged, repeat(_UNTAGGED), NO_REQUESTS)
        first, step = before.sequence + 1, self.budget.step
        return [
            Release(first + q, label, steps * step)
            for q, (label, steps) in enumerate(zip(labels, charged, strict=True))
        ]

    def _resume(self) -> State:
        """Load the state, in a turn: another session may have moved it since the last."""
        recorded = self._ledger.load()
        if recorded is not self._state:
            self._state = self._checked(recorded)
        return self._state

    def _checked(self, recorded: State | None) -> State:
        if recorded is not None and recorded is self._state:
            return recorded
        state = check_moved_on(recorded, self._state)
        check_state(state, self._fresh)
        return state

    def _check(self, request: Request) -> Asked:
        return check_request(request, self.n_classes, self.prior.n_models)

    def _group(self, asked: Sequence[Asked], before: State) -> Group:
        """Look up, in the turn, what these requests repeat."""
        digests = {q.digest for one in asked for q in one.request.questions if q.digest is not None}
        known = self._ledger.recall(digests) if digests else {}
        ids = {one.request.id for one in asked if one.request.id is not None}
        used = {name: digest for name in ids if (digest := self._ledger.request(name)) is not None}
        return Group(self.budget, before.spent_steps, known, used)

    def _fill_in(self, places: Sequence[Answer | Place], first: int, labels: Sequence[int]) -> list[Release]:
        return [
            Release(place.sequence, place.label, 0.0)
            if isinstance(place, Answer)
            else Release(first + place.row, labels[place.row], place.charged * self.budget.step)
            for place in places
        ]

    def _release(
        self,
        before: State,
        votes: Votes,
        n_voted: Sequence[int],
        charged: Sequence[int],
        tags: Iterable[Tag],
        requests: Mapping[str, bytes],
    ) -> list[int]:
        """Draw, decode, update and commit, in a turn and after the charge was found to fit."""
        sizes = [k - 1 for k in n_voted]  # one noisy coordinate less than classes voted for
        noisy, log_belief = np.empty(sum(sizes)), before.log_belief.copy()
        self._at("before-draw")
        normals = self._draw(noisy.size)
        labels: list[int] = answer_votes(
            votes, self.n_classes, self._secret.reveal(), self.budget.step, normals, log_belief, noisy
        )[self._decoder].tolist()
        self._at("after-draw")
        entries = _entries(before.sequence, votes, sizes, charged, labels, noisy, tags)
        self._commit(entries, sum(charged), len(sizes) - sizes.count(0), log_belief, requests)
        return labels

    def _draw(self, size: int) -> FloatArray:
        normals = self._normals.standard_normal(size)
        if normals.shape != (size,):
            raise InvalidInput(f"the source of noise gave {normals.shape} numbers instead of {size}")
        return normals

    def _commit(
        self,
        entries: Sequence[Entry],
        charged: int,
        contested: int,
        log_belief: FloatArray,
        requests: Mapping[str, bytes],
    ) -> None:
        """Record first, then remember: if the ledger fails, the next turn continues where the ledger is."""
        before, fresh = self._state, self._fresh
        after = State(
            before.sequence + len(entries),
            before.contested + contested,
            before.spent_steps + charged,
            log_belief,
            fresh.step,
            fresh.deployment,
            fresh.origin,
        )
        self._ledger.commit(entries, after, requests)
        self._state = after


def _or_error(function: Callable[[X], Y], argument: X) -> Y | PacPredictError:
    try:
        return function(argument)
    except PacPredictError as refusal:
        return refusal


def _entries(
    sequence: int,
    votes: Votes,
    sizes: Sequence[int],
    charged: Sequence[int],
    labels: Sequence[int],
    noisy: FloatArray,
    tags: Iterable[Tag],
) -> list[Entry]:
    votes.setflags(write=False)
    noisy.setflags(write=False)
    entries, read = [], 0
    for q, (size, steps, label, tag) in enumerate(zip(sizes, charged, labels, tags, strict=False)):
        question, record = (votes[q], noisy[read : read + size]) if size else (None, None)
        entries.append(Entry(sequence + 1 + q, steps, label, question, record, *tag))
        read += size
    return entries
